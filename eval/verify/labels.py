"""Verdicts that are known beforehand: human labels, or sentences a knowledge base made."""

from __future__ import annotations

from collections.abc import Sequence

from records import Claim, Document, Passage, Verdict

_VERDICT = {"S": "supported", "NS": "not_supported", "IR": "irrelevant"}


class Labels:
    """Turn each claim's own label (S, NS, IR) into a verdict; no label is ``failed``."""

    judges_sets = False

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        """One verdict a claim."""
        return [
            [
                Verdict(claim=claim.id, assessor="labels", label=_VERDICT[claim.label])
                if claim.label
                else Verdict(
                    claim=claim.id, assessor="labels", label="failed", reason="no label given"
                )
                for claim in own
            ]
            for own in claims
        ]
