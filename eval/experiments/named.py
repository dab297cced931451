"""A verifier with a name, so that one class can be used several times in a run."""

from collections.abc import Sequence
from typing import Literal

from eval import stages
from eval.stages import Verifier
from eval.verify.claim_by_claim import NOTHING_FOUND
from records import Claim, Document, Passage, Verdict

LabelWithoutEvidence = Literal["undecided", "failed"]


class Named:
    """A verifier whose verdicts have a given ``assessor``.

    Args:
        name: the ``assessor``.
        verifier: judges the claims.
        no_evidence: label of claims without evidence; by default the verifier's.
    """

    def __init__(
        self, name: str, verifier: Verifier, no_evidence: LabelWithoutEvidence | None = None
    ):
        self.name = name
        self.verifier = verifier
        self.no_evidence = no_evidence
        self.judges_sets = verifier.judges_sets

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        verdicts = stages.run_verifier(self.verifier, documents, claims, passages)
        renamed = []
        for row, row_verdicts in zip(claims, verdicts, strict=True):
            without = {claim.id for claim in row if claim.contexts == []}
            renamed.append([self._rename(v, v.claim in without) for v in row_verdicts])
        return renamed

    def _rename(self, verdict: Verdict, is_without_evidence: bool) -> Verdict:
        update: dict = {"assessor": self.name}
        if is_without_evidence and self.no_evidence == "failed":
            update |= {"label": "failed", "p": None, "reason": NOTHING_FOUND}
        elif is_without_evidence and self.no_evidence == "undecided" and verdict.label == "failed":
            update["label"] = "undecided"
        return verdict.model_copy(update=update)


class Unverified:
    """A verifier without verdicts, for runs that only need claims or evidence."""

    judges_sets = False

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        return [[] for _ in documents]
