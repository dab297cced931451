"""From verdicts to scores: one aggregation for all assessors, with and without Core.

FActScore (2305.14251, section 3): factual precision of a text is the share of its claims that are
supported; a model's score is the mean over the texts that respond.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from eval.stages import Selection
from records import Claim, Document, Passage, Verdict
from records.abstention import responds

DEFAULT_GAMMA = 10
# The decision on a claim that could not be judged; others are 1 (supported) and 0.
FAILED = -1


class AtK(NamedTuple):
    """A text's recall@K and F1@K; ``None`` where nothing of it could be judged."""

    recall: float | None
    f1: float | None


class DocumentScore(BaseModel):
    """One document's score by one assessor, with or without Core.

    Attributes:
        selection: ``none``, or the selector's name; of a pipeline's own selector ``core``.
        claims: number of subclaims before selection; what failed to become one is none.
        kept: number of subclaims that were scored (after selection).
        failed: claims without a verdict, and sentences without claims because their decomposition
            failed; never inside the score.
        irrelevant: claims that the assessor finds beside the point; not judged.
        judged: claims that enter the score: neither failed nor irrelevant.
        precision: supported / judged; 0 for an empty selection, and for a text without a claim to
            judge, be it that it has none or irrelevant ones alone; ``None`` when the text does not
            respond, or nothing was judged and something failed.
        factscore: precision times the length penalty exp(1 - gamma / claims) for claims < gamma;
            the number of claims is the one before Core.
        empty_selection: the text responds and has claims, but Core selects none.
        unselectable: claims of which Core could not judge whether to select them; they have failed.
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

    @property
    def kept_share(self) -> float | None:
        """Share of the claims that Core keeps, of those that it could judge; ``None`` of none."""
        judged = self.claims - self.unselectable
        return self.kept / judged if judged else None

    def at_k(self, k: int) -> AtK:
        """Recall@K and F1@K (SAFE, 2403.18802, section 5); 0 of a text that does not respond."""
        if not self.responded:
            return AtK(0.0, 0.0)
        if self.precision is None:
            return AtK(None, None)
        f1 = f1_at_k(self.precision, self.supported, k)
        return AtK(recall_at_k(self.supported, k), f1)


class Scored(BaseModel):
    """A document with everything that the pipeline found out about it.

    Attributes:
        claims: all subclaims, selected or not, and what ``failed`` to become one.
        selections: one a claim that has not failed, or none without Core.
        verdicts: of verifiers that judge one claim at a time, or that judged all claims.
        core_verdicts: of verifiers that judge the set, on the selected claims only.
        scores: one an assessor's named verdict and selection.
    """

    model_config = ConfigDict(frozen=True)

    document: Document
    claims: list[Claim]
    selections: list[Selection]
    passages: list[Passage]
    verdicts: list[Verdict]
    core_verdicts: list[Verdict] = []
    scores: list[DocumentScore]

    def judged(self, assessor: str, name: str, selection: str) -> list[tuple[Claim, Verdict]]:
        """The claims that one assessor judged, or failed to, each with its verdict.

        With Core the selected ones, with the verdicts of a verifier that judges the set on them.
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
    """The claims that one assessor judged, each with its verdict.

    Args:
        claims: all of them.
        verdicts: of all assessors, on all claims.
        again: of those that judge sets, on the claims that were kept.
        kept: ids of these; ``None`` where all count.
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
    """An assessor and its named verdict in one: ``nli``, ``dfactscore.grouped``."""
    return assessor if name == "default" else f"{assessor}.{name}"


def length_penalty(claims: int, gamma: float = DEFAULT_GAMMA) -> float:
    """exp(1 - gamma / claims) below gamma claims, else 1 (FActScore's released code)."""
    if claims == 0:
        return 0.0
    return 1.0 if gamma <= 0 or claims >= gamma else math.exp(1 - gamma / claims)


class Tally(NamedTuple):
    """A text's counts: claims that were judged, those supported, and those that failed."""

    judged: int
    supported: int
    failed: int

    @property
    def scored(self) -> bool:
        """Whether the text enters the means: it has no claims, or some could be judged."""
        return self.judged > 0 or self.failed == 0


def tally(decisions: Sequence[int]) -> Tally:
    """Count a text's decisions (1, 0, or -1 for failed)."""
    failed = sum(value < 0 for value in decisions)
    return Tally(len(decisions) - failed, sum(value > 0 for value in decisions), failed)


def median_claims(numbers: Iterable[int]) -> int:
    """K of recall@K where none is given: the median number of claims of the texts that have any.

    VeriScore (2406.19276, section 3.3) and FactReasoner (2502.18573, section 4) take the median
    over a set's responses; VeriScore's code leaves out those that do not respond, and counts one
    without a verifiable claim as one of one claim. Here such a text does not count: it may have
    none because its decomposition failed. Of an even number of texts the larger of the two in the
    middle is taken, as by that code, so that nothing is rounded. 1 where no text has a claim.

    Args:
        numbers: claims of each text.
    """
    counts = [number for number in numbers if number]
    return statistics.median_high(counts) if counts else 1


def recall_at_k(supported: int, k: int) -> float:
    """min(supported / K, 1) (SAFE, 2403.18802, section 5): how much of a full answer is there."""
    return min(supported / k, 1.0)


def f1_at_k(precision: float, supported: int, k: int) -> float:
    """Harmonic mean of precision and recall@K; 0 where nothing is supported (2403.18802, eq. 1)."""
    recall = recall_at_k(supported, k)
    return 2 * precision * recall / (precision + recall) if supported else 0.0


def score_document(
    document: Document,
    claims: Sequence[Claim],
    verdicts: Sequence[Verdict],
    selected: set[str] | None,
    gamma: float = DEFAULT_GAMMA,
    unselectable: int = 0,
    selection: str = "core",
) -> DocumentScore:
    """Score one document by the verdicts of one assessor.

    Args:
        document: the text.
        claims: all of its subclaims before Core, with what failed to become one.
        verdicts: one a scored claim.
        selected: ids of the claims that Core kept, or ``None`` without Core.
        gamma: the length penalty's threshold; 0 for none.
        unselectable: number of claims that Core could not judge; counted as failed.
        selection: name of what kept the selected claims.
    """
    scored = [v for v in verdicts if selected is None or v.claim in selected]
    counts = {label: sum(v.label == label for v in scored) for label in _COUNTED}
    judged = len(scored) - counts["failed"] - counts["irrelevant"]
    usable_ids = {claim.id for claim in claims if claim.failed is None}
    usable = len(usable_ids)
    due = usable_ids if selected is None else usable_ids & selected
    forgotten = len(due - {verdict.claim for verdict in scored})
    counts["failed"] += len(claims) - usable + unselectable + forgotten
    responded = responds(document)
    none_kept = selected is not None and not selected and not unselectable
    empty = bool(responded and usable and none_kept)
    precision: float | None = None
    if responded and (empty or (judged == 0 and not counts["failed"])):
        precision = 0.0
    elif responded and judged:
        precision = counts["supported"] / judged
    penalised = None if precision is None else precision * length_penalty(usable, gamma)
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
        factscore=penalised,
        empty_selection=empty,
        unselectable=unselectable,
    )


_COUNTED = ("supported", "contradicted", "undecided", "failed", "irrelevant")
