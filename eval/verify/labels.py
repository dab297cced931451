"""Verdicts that are known beforehand: human labels, or sentences a knowledge base made."""

from collections.abc import Sequence

from eval.stages import Verifier
from eval.verify.claim_by_claim import ClaimByClaim, ClaimToJudge
from records import Claim, Document, Passage, UserError, Verdict

_VERDICT = {"S": "supported", "NS": "not_supported", "IR": "irrelevant"}


class Labels(ClaimByClaim):
    """Turn each claim's own label (S, NS, IR) into a verdict; no label is ``failed``.

    Args:
        otherwise: judges the claims of documents without a single label, by passages if it reads
            any, such as texts that nobody has labelled beside those that people have. Its verdicts
            count as this one's; their ``reason`` or ``answer`` is kept.
    """

    assessor = "labels"
    reads_passages = False

    def __init__(self, otherwise: Verifier | None = None):
        if otherwise is not None and otherwise.judges_sets:
            raise UserError("otherwise: give a verifier that judges claim by claim")
        self.otherwise = otherwise

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        found = super().__call__(documents, claims, passages)
        rows = [row for row, own in enumerate(claims) if own and not any(c.label for c in own)]
        if self.otherwise is None or not rows:
            return found
        others = self.otherwise(
            *([part[row] for row in rows] for part in (documents, claims, passages))
        )
        for row, verdicts in zip(rows, others, strict=True):
            if len(verdicts) != len(claims[row]):
                raise UserError("otherwise: give a verifier of one verdict a claim")
            told = {"assessor": self.assessor, "name": self.name}
            found[row] = [verdict.model_copy(update=told) for verdict in verdicts]
        return found

    def judge(self, asked: Sequence[ClaimToJudge]) -> list[Verdict]:
        return [
            self.verdict(claim, _VERDICT[claim.label])
            if claim.label
            else self.failed(claim, "no label given")
            for _, _, claim, _ in asked
        ]
