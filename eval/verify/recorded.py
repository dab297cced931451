"""Verdicts that the documents bring: what another program's assessor said of their claims."""

from __future__ import annotations

from collections.abc import Sequence

from eval.verify.claim_by_claim import Asked, ClaimByClaim
from records import Verdict


class Recorded(ClaimByClaim):
    """Take each claim's ``recorded`` verdict; a claim without one is ``failed``.

    FactReasoner's output files, and its baselines', are read with them (``predictions`` and
    ``marginals``), so that their tables follow from what was released, without a model.

    The field is ``{label, p}``: a label of our verdicts and, where there is one, a probability.
    """

    assessor = "recorded"
    reads_passages = False

    def judge(self, asked: Sequence[Asked]) -> list[Verdict]:
        """The recorded verdicts."""
        return [
            self.verdict(one.claim, **found)
            if (found := (one.claim.model_extra or {}).get("recorded"))
            else self.failed(one.claim, "no verdict was recorded")
            for one in asked
        ]
