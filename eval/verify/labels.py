"""Verdicts from labels: human annotations, or the ground truth of generated sentences."""

from collections.abc import Sequence

from eval.stages import Verifier
from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge
from records import Claim, Document, Passage, UserError, Verdict

_VERDICT = {"S": "supported", "NS": "not_supported", "IR": "irrelevant"}


class Labels(ClaimByClaim):
    """Turn each claim's ``label`` (S, NS, IR) into a verdict; without a label it is ``failed``.

    Args:
        otherwise: verifier for documents without any labelled claim.
    """

    assessor = "labels"
    reads_passages = False

    def __init__(self, otherwise: Verifier | None = None):
        if otherwise is not None and otherwise.judges_sets:
            raise UserError("otherwise: expected a verifier that judges claim by claim")
        self.otherwise = otherwise

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        verdicts = super().__call__(documents, claims, passages)
        rows = [
            row for row, listed in enumerate(claims) if listed and not any(c.label for c in listed)
        ]
        if self.otherwise is None or not rows:
            return verdicts
        replacements = self.otherwise(
            *([part[row] for row in rows] for part in (documents, claims, passages))
        )
        for row, row_verdicts in zip(rows, replacements, strict=True):
            if len(row_verdicts) != len(claims[row]):
                raise UserError("otherwise: expected a verifier with one verdict per claim")
            assessor = {"assessor": self.assessor, "name": self.name}
            verdicts[row] = [verdict.model_copy(update=assessor) for verdict in row_verdicts]
        return verdicts

    def judge(self, items: Sequence[ClaimToJudge]) -> list[Verdict]:
        return [
            self.verdict(claim, _VERDICT[claim.label])
            if claim.label
            else self.failed(claim, "no label given")
            for _, claim, _ in items
        ]
