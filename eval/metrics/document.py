"""Scores of documents from verdicts, for all assessors, with and without Core.

FActScore (2305.14251, section 3): factual precision of a text is its share of supported claims; a
model's score is the mean over the texts that respond.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from pydantic import BaseModel, ConfigDict

from eval.stages import Selection
from records import Claim, Document, Passage, Verdict

DEFAULT_GAMMA = 10
# The decision on a failed claim; others are 1 (supported) and 0.
FAILED = -1


class Penalty(NamedTuple):
    """FActScore's length penalty.

    Attributes:
        gamma: its threshold in claims; 0 for none.
        of_kept: aggregate as the released code of Core (2407.03572): the penalty counts the scored
            claims after selection, and a text that does not respond has a ``factscore`` of 0.
    """

    gamma: float = DEFAULT_GAMMA
    of_kept: bool = False


class AtK(NamedTuple):
    """A text's recall@K and F1@K; ``None`` if no claim could be judged."""

    recall: float | None
    f1: float | None


class DocumentScore(BaseModel):
    """One document's score by one assessor, with or without Core.

    Attributes:
        selection: ``none``, or the selector's name (``core`` for the pipeline's selector).
        claims: number of subclaims before selection, without failed ones.
        kept: number of scored subclaims (after selection).
        failed: claims without a verdict, and sentences whose decomposition failed; never scored.
        irrelevant: claims that the assessor labels irrelevant; not judged.
        judged: scored claims that are neither failed nor irrelevant.
        precision: supported / judged; 0 for an empty selection and for a text without relevant
            claims; ``None`` if the text does not respond, or nothing was judged and something
            failed.
        factscore: precision times the length penalty exp(1 - gamma / claims) for claims < gamma,
            with the number of claims before Core, or after it (:class:`Penalty`).
        empty_selection: the text responds and has claims, but Core selects none.
        unselectable: claims that Core could not judge; counted as failed.
        penalty: the length penalty.
        repeated: claims that were removed as duplicates, if F1@K counts them as unsupported.
    """

    model_config = ConfigDict(frozen=True)

    assessor: str
    name: str
    selection: str
    responded: bool
    claims: int
    kept: int
    supported: int
    contradicted: int
    undecided: int
    irrelevant: int
    failed: int
    judged: int
    precision: float | None = None
    factscore: float | None = None
    empty_selection: bool
    unselectable: int = 0
    penalty: float = 1.0
    repeated: int = 0

    def bound(self, is_supported: bool) -> Self:
        """Return the score if all failed claims were supported, or none."""
        if not self.failed or not self.responded:
            return self
        judged, supported = self.judged + self.failed, self.supported + is_supported * self.failed
        precision = supported / judged
        counts = {"judged": judged, "supported": supported, "failed": 0, "precision": precision}
        return self.model_copy(update=counts | {"factscore": precision * self.penalty})

    def with_unsupported(self, statements: int) -> Self:
        """Return the score with further claims that are not supported."""
        if not self.responded or self.precision is None:
            return self
        judged = self.judged + statements
        precision = self.supported / judged if judged else self.precision
        counts = {"judged": judged, "precision": precision}
        return self.model_copy(update=counts | {"factscore": precision * self.penalty})

    @property
    def kept_share(self) -> float | None:
        """Share of kept claims among those that Core could judge; ``None`` if there are none."""
        judged = self.claims - self.unselectable
        return self.kept / judged if judged else None

    def at_k(self, k: int) -> AtK:
        """Return recall@K and F1@K (SAFE, 2403.18802, section 5); 0 without a response.

        ``repeated`` claims are not in SAFE; they count as unsupported ones.
        """
        if not self.responded:
            return AtK(0.0, 0.0)
        if self.precision is None:
            return AtK(None, None)
        share = self.judged / (self.judged + self.repeated) if self.judged else 1.0
        f1 = f1_at_k(self.precision * share, self.supported, k)
        return AtK(recall_at_k(self.supported, k), f1)


class Scored(BaseModel):
    """A document with all outputs of the pipeline.

    Attributes:
        claims: all subclaims, including unselected and ``failed`` ones.
        selections: one per claim that has not failed; empty without Core.
        verdicts: on all claims.
        core_verdicts: of verifiers that judge claim sets, on the selected claims only.
        scores: one per assessor, verdict name and selection.
        removed: number of words that were removed before decomposition, by kind of text.
    """

    model_config = ConfigDict(frozen=True)

    document: Document
    claims: list[Claim]
    selections: list[Selection]
    passages: list[Passage]
    verdicts: list[Verdict]
    core_verdicts: list[Verdict] = []
    scores: list[DocumentScore]
    removed: dict[str, int] = {}

    def judged(self, assessor: str, name: str, selection: str) -> list[tuple[Claim, Verdict]]:
        """Return the claims that one assessor judged or failed on, each with its verdict.

        With Core only selected claims, with ``core_verdicts`` if the verifier judges sets.
        """
        kept, set_verdicts = None, []
        if selection != "none":
            kept = {selection.claim for selection in self.selections if selection.selected}
            set_verdicts = self.core_verdicts
        return judged_of(self.claims, self.verdicts, set_verdicts, kept, (assessor, name))


def judged_of(
    claims: Sequence[Claim],
    verdicts: Sequence[Verdict],
    set_verdicts: Sequence[Verdict],
    kept: set[str] | None,
    named: tuple[str, str],
) -> list[tuple[Claim, Verdict]]:
    """Return the claims that one assessor judged, each with its verdict.

    Args:
        claims: all claims.
        verdicts: of all assessors, on all claims.
        set_verdicts: of assessors that judge sets, on the kept claims.
        kept: ids of the kept claims; ``None`` for all.
        named: the assessor and the name of its verdict.
    """
    verdicts_by = [v for v in set_verdicts if (v.assessor, v.name) == named]
    verdicts_by = verdicts_by or [v for v in verdicts if (v.assessor, v.name) == named]
    by_claim = {verdict.claim: verdict for verdict in verdicts_by}
    return [
        (claim, by_claim[claim.id])
        for claim in claims
        if claim.id in by_claim and (kept is None or claim.id in kept)
    ]


def named(assessor: str, name: str) -> str:
    """Join assessor and verdict name: ``nli``, ``dfactscore.grouped``."""
    return assessor if name == "default" else f"{assessor}.{name}"


def length_penalty(claims: int, gamma: float = DEFAULT_GAMMA) -> float:
    """exp(1 - gamma / claims) below gamma claims, else 1 (FActScore's released code)."""
    if claims == 0:
        return 0.0
    return 1.0 if gamma <= 0 or claims >= gamma else math.exp(1 - gamma / claims)


class Tally(NamedTuple):
    """Numbers of judged, supported and failed claims of a text."""

    judged: int
    supported: int
    failed: int

    @property
    def scored(self) -> bool:
        """Whether the text is in the means: it has no claims, or some were judged."""
        return self.judged > 0 or self.failed == 0


def tally(decisions: Sequence[int]) -> Tally:
    """Count a text's decisions (1, 0, or -1 for failed)."""
    failed = sum(value < 0 for value in decisions)
    return Tally(len(decisions) - failed, sum(value > 0 for value in decisions), failed)


def median_claims(numbers: Iterable[int]) -> int:
    """Return the default K of recall@K: the median number of claims of texts with claims.

    VeriScore (2406.19276, section 3.3) and FactReasoner (2502.18573, section 4) take the median
    over responses. Departure: VeriScore's code counts a response without a verifiable claim as 1;
    here it is excluded because its decomposition may have failed. For an even number of texts the
    upper median is used, as in that code. 1 if no text has a claim.

    Args:
        numbers: claims of each text.
    """
    counts = [number for number in numbers if number]
    return statistics.median_high(counts) if counts else 1


def recall_at_k(supported: int, k: int) -> float:
    """Return min(supported / K, 1) (SAFE, 2403.18802, section 5)."""
    return min(supported / k, 1.0)


def f1_at_k(precision: float, supported: int, k: int) -> float:
    """Harmonic mean of precision and recall@K; 0 if supported = 0 (2403.18802, eq. 1)."""
    recall = recall_at_k(supported, k)
    return 2 * precision * recall / (precision + recall) if supported else 0.0


def score_document(
    responded: bool,
    claims: Sequence[Claim],
    verdicts: Sequence[Verdict],
    selected: set[str] | None,
    gamma: float | Penalty = DEFAULT_GAMMA,
    unselectable: int = 0,
    selection: str = "core",
) -> DocumentScore:
    """Score one document by the verdicts of one assessor.

    Args:
        responded: whether the text is not an abstention.
        claims: all subclaims before Core, including failed ones.
        verdicts: one per scored claim.
        selected: ids of the claims that Core kept, or ``None`` without Core.
        gamma: threshold of the length penalty, 0 for none; or the whole penalty.
        unselectable: number of claims that Core could not judge; counted as failed.
        selection: name of the selector.
    """
    gamma, of_kept = gamma if isinstance(gamma, Penalty) else Penalty(gamma)
    scored = [v for v in verdicts if selected is None or v.claim in selected]
    counts = {label: sum(v.label == label for v in scored) for label in _COUNTED}
    judged = len(scored) - counts["failed"] - counts["irrelevant"]
    usable_ids = {claim.id for claim in claims if claim.failed is None}
    usable = len(usable_ids)
    due = usable_ids if selected is None else usable_ids & selected
    forgotten = len(due - {verdict.claim for verdict in scored})
    counts["failed"] += len(claims) - usable + unselectable + forgotten
    none_kept = selected is not None and not selected and not unselectable
    empty = bool(responded and usable and none_kept)
    precision: float | None = None
    if responded and (empty or (judged == 0 and not counts["failed"])):
        precision = 0.0
    elif responded and judged:
        precision = counts["supported"] / judged
    penalty = length_penalty(len(scored) - counts["irrelevant"] if of_kept else usable, gamma)
    silent = 0.0 if of_kept and not responded else None
    return DocumentScore(
        assessor=verdicts[0].assessor if verdicts else "",
        name=verdicts[0].name if verdicts else "default",
        selection="none" if selected is None else selection,
        responded=responded,
        claims=usable,
        kept=len(scored),
        supported=counts["supported"],
        contradicted=counts["contradicted"],
        undecided=counts["undecided"],
        irrelevant=counts["irrelevant"],
        judged=judged,
        failed=counts["failed"],
        precision=precision,
        factscore=silent if precision is None else precision * penalty,
        penalty=penalty,
        empty_selection=empty,
        unselectable=unselectable,
    )


_COUNTED = ("supported", "contradicted", "undecided", "failed", "irrelevant")
