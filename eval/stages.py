"""The contracts between the stages of the pipeline; any callable with the signature will do.

Every stage takes and returns lists over the whole batch of documents, so that model calls are
batched across documents, deduplicated and cached.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from components.encoding import Pair
from records import Claim, Document, Passage, UserError, Verdict, to_bad_input
from records.stage_outputs import class_path_of, require_one_each

R = TypeVar("R", bound=BaseModel)

# A float32 probability may be outside [0, 1] by its last bits.
_ROUNDING = 1e-3


class EntailmentModel(Protocol):
    """Judges the relation of (premise, hypothesis) pairs."""

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Calibrated probabilities of shape (n, 3): entailment, neutral, contradiction.

        A row of NaN is a pair that could not be judged; whoever asked counts it as failed.
        """


def call_relation(probabilities: np.ndarray) -> np.ndarray:
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
    return call_relation(probabilities) == 0


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

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

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


# Stage outputs, validated once, where they leave the stage: one that skips a document, or judges
# claims that nobody made, ends the run in a line that names it, and never becomes a score.


def run_decomposer(stage: Decomposer, documents: Sequence[Document]) -> list[list[Claim]]:
    """The claims of each document."""
    rows = _rows(stage, _output(stage, documents), documents, Claim)
    for document, claims in zip(documents, rows, strict=True):
        _check_once(stage, document, [claim.id for claim in claims], "claims of one id")
    return rows


def run_reviser(
    stage: Reviser, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
) -> list[list[Claim]]:
    """The claims in their new form."""
    return _same_claims(stage, _output(stage, documents, claims), documents, claims)


def run_selector(
    stage: Selector, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
) -> list[list[Selection]]:
    """The selections of each document."""
    rows = _rows(stage, _output(stage, documents, claims), documents, Selection)
    for document, row, selections in zip(documents, claims, rows, strict=True):
        expected, ids = [claim.id for claim in row], [s.claim for s in selections]
        if ids != expected:
            raise _breach(
                stage, document, f"selections of {_list(ids)} for the claims {_list(expected)}"
            )
    return rows


def run_retriever(
    stage: Retriever, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
) -> tuple[list[list[Claim]], list[list[Passage]]]:
    """The claims with their contexts, and the passages of each document."""
    output = _output(stage, documents, claims)
    if not isinstance(output, tuple | list) or len(output) != 2:
        raise UserError(
            f"{class_path_of(stage)}: returned a {type(output).__name__}; return two lists, the "
            "claims and the passages of each document"
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
    """The verdicts on the claims of each document; a claim without one counts as failed."""
    rows = _rows(stage, _output(stage, documents, claims, passages), documents, Verdict)
    for document, row, verdicts in zip(documents, claims, rows, strict=True):
        expected = [claim.id for claim in row]
        if strange := {v.claim for v in verdicts} - {*expected}:
            raise _breach(
                stage, document, f"verdicts on {_list(strange)} for the claims {_list(expected)}"
            )
        names = [f"{v.claim}: {v.assessor}.{v.name}" for v in verdicts]
        _check_once(stage, document, names, "verdicts of one name on a claim")
    return rows


def model_probabilities(
    ask: Callable[[Sequence[Pair]], object], pairs: Sequence[Pair], *classes: int
) -> np.ndarray:
    """What a model says of pairs, shape (n, *classes); rows of NaN where it has no answer.

    Args:
        ask: its method.
        pairs: what it is asked.
        classes: 3 of relations, none of likelihoods.
    """
    answers = np.asarray(ask(pairs), dtype=float)
    who, shape = class_path_of(getattr(ask, "__self__", ask)), (len(pairs), *classes)
    if answers.shape != shape:
        raise UserError(f"{who}: gave an array of shape {answers.shape} for pairs; give {shape}")
    if ((answers < -_ROUNDING) | (answers > 1 + _ROUNDING)).any():
        raise UserError(
            f"{who}: gave {np.nanmin(answers):.3g} to {np.nanmax(answers):.3g} for pairs; give "
            "probabilities in [0, 1]"
        )
    return answers


def _output(stage: Callable, *given: Sequence) -> object:
    try:
        return stage(*given)
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
    stage: object,
    output: object,
    documents: Sequence[Document],
    claims: Sequence[Sequence[Claim]],
) -> list[list[Claim]]:
    rows = _rows(stage, output, documents, Claim)
    for document, row, changed in zip(documents, claims, rows, strict=True):
        expected, ids = (sorted(claim.id for claim in some) for some in (row, changed))
        if ids != expected:
            raise _breach(stage, document, f"the claims {_list(ids)} for {_list(expected)}")
    return rows


def _check_once(stage: object, document: Document, names: Sequence[str], what: str) -> None:
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise _breach(stage, document, f"several {what} ({twice[0]})")


def _breach(stage: object, document: Document, what: str) -> UserError:
    return UserError(f"{class_path_of(stage)}: document {document.id!r}: returned {what}")


def _list(ids: Iterable[str]) -> str:
    return ", ".join(sorted(ids)[:3]) or "none"
