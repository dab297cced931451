"""A verifier under a name of the run's own."""

from collections.abc import Sequence
from typing import Literal

from eval import stages
from eval.stages import Verifier
from eval.verify.claim_by_claim import NOTHING_FOUND
from records import Claim, Document, Passage, Verdict

NoEvidence = Literal["undecided", "failed"]


class Named:
    """A verifier under a name of the run's own, so that one class may stand in it several times.

    Args:
        name: the ``assessor`` of its verdicts.
        verifier: gives them.
        no_evidence: what a claim of which nothing was found gets; by default what the verifier
            gives it.
    """

    def __init__(self, name: str, verifier: Verifier, no_evidence: NoEvidence | None = None):
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
        found = []
        for own, said in zip(claims, verdicts, strict=True):
            alone = {claim.id for claim in own if claim.contexts == []}
            found.append([self._mended(v, v.claim in alone) for v in said])
        return found

    def _mended(self, verdict: Verdict, alone: bool) -> Verdict:
        more: dict = {"assessor": self.name}
        if alone and self.no_evidence == "failed":
            more |= {"label": "failed", "p": None, "reason": NOTHING_FOUND}
        elif alone and self.no_evidence == "undecided" and verdict.label == "failed":
            more["label"] = "undecided"
        return verdict.model_copy(update=more)
