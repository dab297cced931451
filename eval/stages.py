"""The contracts between the stages of the pipeline; any callable with the signature will do.

Every stage takes and returns lists over the whole batch of documents, so that model calls are
batched across documents, deduplicated and cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from components.encoding import Pair
from records import Claim, Document, Passage, Verdict


class EntailmentModel(Protocol):
    """Judges the relation of (premise, hypothesis) pairs."""

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Calibrated probabilities of shape (n, 3): entailment, neutral, contradiction.

        A row of NaN is a pair that could not be judged; whoever asked counts it as failed.
        """


def called(probabilities: np.ndarray) -> np.ndarray:
    """Which relation probabilities call a pair: the likeliest; where two are, it is left open.

    Args:
        probabilities: shape (…, 3): entailment, neutral, contradiction.

    Returns:
        Indices of shape (…): 0 or 2 where entailment or contradiction is likelier than both others,
        else 1. A row of NaN is 1; whoever asks leaves such rows out.
    """
    p = np.asarray(probabilities, dtype=float)
    entailed = p[..., 0] > p[..., 1:].max(axis=-1)
    contradicted = p[..., 2] > p[..., :2].max(axis=-1)
    return np.where(entailed, 0, np.where(contradicted, 2, 1))


def entails(probabilities: np.ndarray, threshold: float | None = None) -> np.ndarray:
    """Whether relations count as entailment; all that judge by a relation model decide it here.

    Args:
        probabilities: shape (…, 3): entailment, neutral, contradiction.
        threshold: the least probability of entailment; with None it must be the largest of the
            three (a tie is no entailment).

    Returns:
        bool of shape (…); false for rows of NaN.
    """
    if threshold is not None:
        return np.asarray(probabilities, dtype=float)[..., 0] >= threshold
    return called(probabilities) == 0


class UnliModel(Protocol):
    """Judges how likely a hypothesis is given a premise."""

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Probabilities p(hypothesis | premise) in [0, 1] of shape (n,)."""


class Selection(BaseModel):
    """What Core decided about one claim.

    Attributes:
        claim: the claim's id.
        selected: whether it stays.
        weight: its weight in the objective of Eq. 1 (natural logarithm for CPMI weights).
        document_entailment: probability that the source sentence entails it; ``None`` where the
            claim was out before that was asked.
        reason: why it stays or goes; ``failed``: its relevance could not be judged.
        duplicate_of: the selected claim that excluded it, where one did.
    """

    model_config = ConfigDict(frozen=True)

    claim: str
    selected: bool
    weight: float
    document_entailment: Annotated[float, Field(ge=0, le=1)] | None = None
    reason: Literal["selected", "uninformative", "irrelevant", "duplicate", "incoherent", "failed"]
    duplicate_of: str | None = None


class Decomposer(Protocol):
    """Texts to claims, in the order of the text and with ids that are unique in a document.

    A sentence that could not be decomposed is a claim with ``failed``; one that says nothing to be
    verified has no claims.
    """

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]: ...


class Reviser(Protocol):
    """Claims to claims that stand alone: as many, in the same order and with the same ids.

    A changed claim keeps its former text in ``original``; one that could not be revised gets
    ``failed``. The pipeline gives it no claims that have failed before.
    """

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Claim]]: ...


class Selector(Protocol):
    """Claims to selections, one a claim and in the claims' order."""

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Selection]]: ...


class Retriever(Protocol):
    """Finds evidence: the claims with ``contexts`` filled in, and each document's passages.

    ``contexts=None`` after retrieval means that retrieval failed for the claim, ``[]`` that
    nothing was found.
    """

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]: ...


class Searcher(Protocol):
    """Finds passages for queries; what an assessor that asks its own questions searches with.

    ``identity`` holds everything that decides the answers, and no secret.
    """

    identity: dict[str, Any]

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        """Up to ``k`` passages a query, best first; ``None`` where the search failed."""


@runtime_checkable
class AsksInSteps(Protocol):
    """A stage that asks a language model several times for one answer, at most ``most_calls``."""

    most_calls: int


class Verifier(Protocol):
    """Judges claims against passages: one or more named verdicts a claim.

    ``judges_sets`` is true for verifiers whose verdict on a claim depends on the other claims;
    those run once on all claims and once on the selected ones.
    """

    judges_sets: bool

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]: ...
