"""The protocols of the pipeline's stages, and validation of their outputs.

A stage is any callable with the protocol's signature. Each stage maps lists over the whole batch of
documents, so model calls are batched across documents, deduplicated and cached.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Protocol, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from components.encoding import Pair
from records import Claim, Document, Passage, UserError, Verdict, to_bad_input
from records.stage_outputs import class_path_of, require_one_each

R = TypeVar("R", bound=BaseModel)

# Tolerance for float32 probabilities slightly outside [0, 1].
_ROUNDING = 1e-3


class EntailmentModel(Protocol):
    """Judges the relation of (premise, hypothesis) pairs."""

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Calibrated probabilities of shape (n, 3): entailment, neutral, contradiction.

        A row of NaN is a pair that could not be judged; callers count it as failed. An attribute
        ``no_answer`` of the model can give the reason.
        """


def call_relation(probabilities: np.ndarray) -> np.ndarray:
    """Return the most likely relation; a tie counts as neutral.

    Args:
        probabilities: shape (…, 3): entailment, neutral, contradiction.

    Returns:
        Indices of shape (…): 0 or 2 if entailment or contradiction is more likely than both others,
        else 1. A row of NaN gives 1; callers exclude such rows.
    """
    p = np.asarray(probabilities, dtype=float)
    entailed = p[..., 0] > p[..., 1:].max(axis=-1)
    contradicted = p[..., 2] > p[..., :2].max(axis=-1)
    return np.where(entailed, 0, np.where(contradicted, 2, 1))


def entails(probabilities: np.ndarray, threshold: float | None = None) -> np.ndarray:
    """Return whether probabilities count as entailment, by the same rule in all stages.

    Args:
        probabilities: shape (…, 3): entailment, neutral, contradiction.
        threshold: minimum probability of entailment; with None it must be the largest of the three
            (a tie is not entailment).

    Returns:
        bool of shape (…); false for rows of NaN.
    """
    if threshold is not None:
        return np.asarray(probabilities, dtype=float)[..., 0] >= threshold
    return call_relation(probabilities) == 0


class UnliModel(Protocol):
    """Estimates the probability of a hypothesis given a premise."""

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Probabilities p(hypothesis | premise) in [0, 1] of shape (n,); NaN: not judged."""


class Selection(BaseModel):
    """Core's decision on one claim, by its id."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    claim: str
    selected: bool
    weight: float  # in the objective of Eq. 1 (natural logarithm for CPMI weights)
    # Probability that the source sentence entails the claim; None if excluded before this check.
    document_entailment: Annotated[float, Field(ge=0, le=1)] | None = None
    reason: Literal["selected", "uninformative", "irrelevant", "duplicate", "incoherent", "failed"]
    duplicate_of: str | None = None  # the selected claim that excluded it as a duplicate


class Decomposer(Protocol):
    """Maps texts to claims, in the order of the text, with ids that are unique in a document.

    A sentence that could not be decomposed is a claim with ``failed``; a sentence without
    verifiable content has no claims.
    """

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]: ...


class Reviser(Protocol):
    """Makes claims self-contained: same number, order and ids.

    A changed claim keeps its former text in ``original``; a claim that could not be revised gets
    ``failed``. The pipeline passes no failed claims.
    """

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Claim]]: ...


class Selector(Protocol):
    """Maps claims to one selection per claim, in order."""

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[Selection]]: ...


class Relevance(Protocol):
    """Judges whether sentences are relevant to their document's topic (Rel)."""

    def __call__(
        self, documents: Sequence[Document], sentences: Sequence[Sequence[str]]
    ) -> list[Sequence[int | None]]:
        """Return 1 (relevant), 0 or ``None`` (failed) for each source sentence of each document."""


class Retriever(Protocol):
    """Finds evidence: returns the claims with ``contexts``, and each document's passages.

    ``contexts=None`` after retrieval means that retrieval failed for the claim, ``[]`` that it
    returned nothing.
    """

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]: ...


class RetrieverWrapper:
    """Base class of retrievers that use another one and change what it returns.

    Args:
        retrieve: the retriever that is wrapped.
    """

    def __init__(self, retrieve: Retriever):
        self.retrieve = retrieve

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        retrieved, passages = self.retrieve(documents, claims)
        return retrieved, [[self.change(passage) for passage in group] for group in passages]

    def change(self, passage: Passage) -> Passage:
        """Return what becomes of a passage, for wrappers that do not look at the claims."""
        raise NotImplementedError


class Searcher(Protocol):
    """Finds passages for queries, for verifiers that write their own queries.

    ``identity`` holds everything that decides the results, and no secrets.
    """

    identity: dict[str, Any]

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        """Return up to ``k`` passages per query, best first; ``None`` if the search failed."""


class Verifier(Protocol):
    """Judges claims against passages: one or more named verdicts per claim.

    ``judges_sets`` is true if the verdict on a claim depends on the other claims; such a verifier
    runs once on all claims and once on the selected ones.
    """

    judges_sets: bool

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]: ...


# Stage outputs are validated here once. Output that skips a document or has an unknown claim id
# ends the run with an error and never changes a score.


def run_decomposer(stage: Decomposer, documents: Sequence[Document]) -> list[list[Claim]]:
    """Return the claims of each document."""
    rows = _rows(stage, _output(stage, documents), documents, Claim)
    for document, claims in zip(documents, rows, strict=True):
        _check_once(stage, document, [claim.id for claim in claims], "claims of one id")
    return rows


def run_reviser(
    stage: Reviser, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
) -> list[list[Claim]]:
    """Return the revised claims."""
    return _same_claims(stage, _output(stage, documents, claims), documents, claims)


def run_selector(
    stage: Selector, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
) -> list[list[Selection]]:
    """Return the selections of each document."""
    rows = _rows(stage, _output(stage, documents, claims), documents, Selection)
    for document, row, selections in zip(documents, claims, rows, strict=True):
        expected, ids = [claim.id for claim in row], [s.claim for s in selections]
        if ids != expected:
            raise _invalid_output(
                stage, document, f"selections of {_list(ids)} for the claims {_list(expected)}"
            )
    return rows


def run_retriever(
    stage: Retriever, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
) -> tuple[list[list[Claim]], list[list[Passage]]]:
    """Return the claims with their contexts, and the passages of each document."""
    output = _output(stage, documents, claims)
    if not isinstance(output, tuple | list) or len(output) != 2:
        raise UserError(
            f"{class_path_of(stage)}: expected two lists, the claims and the passages of each "
            f"document, got a {type(output).__name__}"
        )
    rows = _same_claims(stage, output[0], documents, claims)
    passages = _rows(stage, output[1], documents, Passage)
    for document, row in zip(documents, passages, strict=True):
        texts = {(passage.id, passage.text) for passage in row}
        _check_once(stage, document, [name for name, _ in texts], "passages of one id")
    return rows, passages


def run_verifier(
    stage: Verifier,
    documents: Sequence[Document],
    claims: Sequence[Sequence[Claim]],
    passages: Sequence[Sequence[Passage]],
) -> list[list[Verdict]]:
    """Return the verdicts per document; a claim without a verdict counts as failed."""
    rows = _rows(stage, _output(stage, documents, claims, passages), documents, Verdict)
    for document, row, verdicts in zip(documents, claims, rows, strict=True):
        expected = [claim.id for claim in row]
        if unknown := {v.claim for v in verdicts} - {*expected}:
            raise _invalid_output(
                stage, document, f"verdicts on {_list(unknown)} for the claims {_list(expected)}"
            )
        names = [f"{v.claim}: {v.assessor}.{v.name}" for v in verdicts]
        _check_once(stage, document, names, "verdicts of one name on a claim")
    return rows


def model_probabilities(
    method: Callable[[Sequence[Pair]], object], pairs: Sequence[Pair], *classes: int
) -> np.ndarray:
    """Call a model's method on pairs and validate its probabilities, shape (n, *classes).

    ``classes`` is 3 for relations and empty for likelihoods. Failed pairs are rows of NaN.
    """
    answers = np.asarray(method(pairs), dtype=float)
    model, shape = class_path_of(getattr(method, "__self__", method)), (len(pairs), *classes)
    if answers.shape != shape:
        raise UserError(f"{model}: expected an array of shape {shape}, got {answers.shape}")
    if ((answers < -_ROUNDING) | (answers > 1 + _ROUNDING)).any():
        raise UserError(
            f"{model}: expected probabilities in [0, 1], got {np.nanmin(answers):.3g} to "
            f"{np.nanmax(answers):.3g}"
        )
    return answers


def no_answer(model: object, reason: str) -> str:
    """Return why a model leaves pairs without an answer: its ``no_answer``, or ``reason``."""
    return getattr(model, "no_answer", reason)


def _output(stage: Callable, *args: Sequence) -> object:
    try:
        return stage(*args)
    except Exception as error:
        error.add_note(f"raised in the stage {class_path_of(stage)}")
        raise


@cache
def _adapter(record: type[R]) -> TypeAdapter[list[R]]:
    # As a dict, since ``model_copy(update=…)`` validates nothing.
    as_dict = BeforeValidator(lambda row: dict(row) if isinstance(row, BaseModel) else row)
    return TypeAdapter(list[Annotated[record, as_dict]])


def _rows(
    stage: object, output: object, documents: Sequence[Document], record: type[R]
) -> list[list[R]]:
    rows = require_one_each(class_path_of(stage), output, documents, "document")
    validated = []
    for document, row in zip(documents, rows, strict=True):
        try:
            validated.append(_adapter(record).validate_python(row))
        except ValidationError as error:
            where = f"{class_path_of(stage)}: document {document.id!r}: {record.__name__}"
            raise to_bad_input(where, error) from None
    return validated


def _same_claims(
    stage: object, output: object, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
) -> list[list[Claim]]:
    rows = _rows(stage, output, documents, Claim)
    for document, row, changed in zip(documents, claims, rows, strict=True):
        expected, ids = (sorted(claim.id for claim in batch) for batch in (row, changed))
        if ids != expected:
            raise _invalid_output(stage, document, f"the claims {_list(ids)} for {_list(expected)}")
    return rows


def _check_once(stage: object, document: Document, names: Sequence[str], kind: str) -> None:
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise _invalid_output(stage, document, f"several {kind} ({repeated[0]})")


def _invalid_output(stage: object, document: Document, content: str) -> UserError:
    return UserError(f"{class_path_of(stage)}: document {document.id!r}: returned {content}")


def _list(ids: Iterable[str]) -> str:
    return ", ".join(sorted(ids)[:3]) or "none"
