"""Verdicts that the documents bring: what another program's assessor said of their claims."""

from collections.abc import Sequence

from pydantic import ValidationError

from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge
from records import UserError, Verdict


class Recorded(ClaimByClaim):
    """Take each claim's ``recorded`` verdict; a claim without one is ``failed``.

    FactReasoner's output files, and its baselines', are read with them (``predictions`` and
    ``marginals``), so that their tables follow from what was released, without a model.

    The field is ``{label, p}``: a label of our verdicts and, where there is one, a probability.
    """

    assessor = "recorded"
    reads_passages = False

    def judge(self, asked: Sequence[ClaimToJudge]) -> list[Verdict]:
        return [self._recorded(one) for one in asked]

    def _recorded(self, one: ClaimToJudge) -> Verdict:
        found = (one.claim.model_extra or {}).get("recorded")
        if not found:
            return self.failed(one.claim, "no verdict was recorded")
        try:
            return self.verdict(one.claim, **found)
        except (TypeError, ValidationError):
            raise UserError(
                f"document {one.document.id}: claim {one.claim.id}: recorded: {found!r} is no "
                "verdict; give {label, p}, a label of our verdicts and a probability or no p"
            ) from None
