"""Base classes of defences that use another verifier and withdraw support from some claims."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from eval.stages import Verifier, run_verifier
from records import Claim, Document, Passage, Verdict
from records.types import VerdictLabel


@dataclass(eq=False)
class WrappedVerifier:
    """A verifier that uses another one.

    Args:
        verify: the verifier.
    """

    verify: Verifier

    @property
    def judges_sets(self) -> bool:
        return self.verify.judges_sets


@dataclass(eq=False)
class WithdrawsSupport(WrappedVerifier, ABC):
    """Withdraws support from the claims that :meth:`rejects` selects; other verdicts stay.

    Attributes:
        withdrawn: label of a verdict whose support is withdrawn.
    """

    withdrawn: ClassVar[VerdictLabel] = "not_supported"

    @abstractmethod
    def rejects(self, document: Document, passages: Sequence[Passage]) -> Callable[[Claim], bool]:
        """Return a test of supported claims of a document; true withdraws the support."""

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        judged = run_verifier(self.verify, documents, claims, passages)
        rows = []
        for document, listed, texts, verdicts in zip(
            documents, claims, passages, judged, strict=True
        ):
            by_id = {claim.id: claim for claim in listed}
            is_rejected = self.rejects(document, texts)
            rows.append(
                [
                    verdict.model_copy(update={"label": self.withdrawn})
                    if verdict.label == "supported" and is_rejected(by_id[verdict.claim])
                    else verdict
                    for verdict in verdicts
                ]
            )
        return rows
