"""Verdicts stored with the claims, from another program's assessor."""

from collections.abc import Sequence

from pydantic import ValidationError

from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge
from records import UserError, Verdict


class Recorded(ClaimByClaim):
    """Use each claim's ``recorded`` verdict; a claim without one is ``failed``.

    The field is ``{label, p}``: a verdict label and, optionally, a probability. The reader of
    FactReasoner's output files fills it from ``predictions`` and ``marginals``.
    """

    assessor = "recorded"
    reads_passages = False

    def judge(self, items: Sequence[ClaimToJudge]) -> list[Verdict]:
        return [self._recorded(item) for item in items]

    def _recorded(self, item: ClaimToJudge) -> Verdict:
        recorded = (item.claim.model_extra or {}).get("recorded")
        if not recorded:
            return self.failed(item.claim, "no verdict was recorded")
        try:
            return self.verdict(item.claim, **recorded)
        except (TypeError, ValidationError):
            raise UserError(
                f"document {item.document.id}: claim {item.claim.id}: field 'recorded': expected "
                f"{{label, p}} with a verdict label and an optional probability, got {recorded!r}"
            ) from None
