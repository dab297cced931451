"""Verdicts that are known beforehand: human labels, or sentences a knowledge base made."""

from __future__ import annotations

from collections.abc import Sequence

from eval.verify.claim_by_claim import Asked, ClaimByClaim
from records import Verdict

_VERDICT = {"S": "supported", "NS": "not_supported", "IR": "irrelevant"}


class Labels(ClaimByClaim):
    """Turn each claim's own label (S, NS, IR) into a verdict; no label is ``failed``."""

    assessor = "labels"
    reads_passages = False

    def judge(self, asked: Sequence[Asked]) -> list[Verdict]:
        """The labels as verdicts."""
        return [
            self.verdict(claim, _VERDICT[claim.label])
            if claim.label
            else self.failed(claim, "no label given")
            for _, _, claim, _ in asked
        ]
