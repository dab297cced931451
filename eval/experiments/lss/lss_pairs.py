"""Pairs of claims and references for the LSS experiments, and their judgements."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from components.words import align, join_words, keep_targets, split_words
from eval.experiments.lss.lss_metrics_values import ALL
from eval.report.declare import Excerpt, Line, Runs, number, rows_in
from eval.report.highlighted import highlighted
from records import Annotation, LssExample, UserError, iter_rows, read_records
from records.types import Record, Text

# Title and introduction of the pages of the three LSS experiments.
QUESTION = "Which part of a claim is supported?"
ABOUT = (
    "The longest supported subsequence (LSS) of a claim is the claim without the words that its "
    "reference does not support (arXiv 2308.12157). n counts references; brackets are 95 % "
    "bootstrap intervals over references. Failures are counted and excluded from the values."
)

# Columns of annotated rows: in our format, and in WiCE's token rows.
_ANNOTATED = {"annotations", "claim_tokens"}


class GroundedClaim(Record):
    """A claim and its reference, without annotations."""

    reference: Text
    claim: Text
    id: str | None = None


class ClaimPair(Record):
    """A claim and its reference, optionally with annotations.

    Attributes:
        factual: share of raters who judged the claim true, from ``data_builders summaries``.
        group: the unit of resampling: the row's ``group``, by default its reference.
    """

    id: Text
    reference: Text
    claim: Text
    annotations: list[Annotation] = Field(default_factory=list)
    keep: list[bool] | None = None
    generator: Text = "given"
    factual: float | None = None
    group: Text

    def example(self) -> LssExample:
        """Convert an annotated pair to an LSS record."""
        return LssExample(
            reference=self.reference, claim=self.claim, annotations=self.annotations, keep=self.keep
        )


class Judgement(BaseModel):
    """The LSS of a pair from one engine, or from people.

    Attributes:
        lss: the LSS; with several annotators, the words that at least half of them keep.
        keep: one flag per word of ``split_words(claim)``; ``None`` for texts with other words.
        lss_star: the LSS*; with several annotators, the first one.
        scores: form to metric to score, the mean over annotators; ``None`` if the metric or the
            engine failed.
    """

    lss: str | None = None
    keep: list[bool] | None = None
    lss_star: str | None = None
    scores: dict[str, dict[str, float | None]] = {}


class Measured(BaseModel):
    """A pair with each engine's judgement; ``NO_LSS`` scores metric(reference, claim)."""

    pair: ClaimPair
    engines: dict[str, Judgement]


def read_pairs(path: str, generator: str | None) -> list[ClaimPair]:
    """Read pairs from LSS records, WiCE's token rows, or rows of references and claims.

    Args:
        path: JSONL, JSON, CSV or Parquet; either all rows are annotated or none.
        generator: generator of the claims; by default the rows' ``generator`` or ``system``.
    """
    columns = {column for _, row in iter_rows(path) for column in row}
    if "Statement" in columns:
        raise UserError(
            f"{path}: the published table has one row per answer; convert it with "
            "python -m data_builders lss --annotations"
        )
    kind = LssExample if _ANNOTATED & columns else GroundedClaim
    pairs = []
    for line, row in enumerate(read_records(path, kind), 1):
        more = row.model_extra or {}
        pairs.append(
            ClaimPair(
                id=str(row.id or f"{Path(path).stem}-{line}"),
                reference=row.reference,
                claim=row.claim,
                annotations=getattr(row, "annotations", []),
                keep=getattr(row, "keep", None),
                factual=_share(more.get("factual")),
                generator=str(generator or more.get("generator") or more.get("system") or "given"),
                group=str(more.get("group") or row.reference),
            )
        )
    return pairs


def _share(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


def make_ids_unique(pairs: Sequence[ClaimPair]) -> list[ClaimPair]:
    """Check that ids are unique, after prefixing them with the generator if there are several."""
    generators = {pair.generator for pair in pairs}
    several = len(generators) > 1
    if several and ALL in generators:
        raise UserError(f"pairs: {ALL!r} is a reserved name; rename that generator")
    named = [
        pair.model_copy(update={"id": f"{pair.generator}/{pair.id}"}) if several else pair
        for pair in pairs
    ]
    twice, times = (Counter(pair.id for pair in named).most_common(1) or [("", 0)])[0]
    if times > 1:
        raise UserError(f"pairs: id {twice!r} occurs more than once; ids must be unique")
    return named


def merge_annotations(pair: ClaimPair) -> Judgement:
    """Merge the annotators' LSS and LSS* of a pair, without scores."""
    words, kept, _ = keep_targets(pair.example())
    half = [2 * sum(column) >= len(kept) for column in zip(*kept, strict=True)]
    stars = [a.lss_star for a in pair.annotations if a.lss_star is not None]
    return Judgement(
        lss=join_words(pair.claim, words, half) if kept else pair.annotations[0].lss,
        keep=half if kept else None,
        lss_star=stars[0] if stars else None,
    )


def excerpts(folder: Path) -> Iterator[Excerpt]:
    """Yield the claims of ``pairs.jsonl`` with the LSS of engines and annotators."""
    by_claim: dict[tuple, list[Line]] = {}
    for row in rows_in(folder / "pairs.jsonl"):
        key = row["reference"], row["claim"], row.get("generator")
        if key not in by_claim:
            by_claim[key] = list(_human_lines(row))
        by_claim[key] += _engine_lines(row)
    for (reference, claim, generator), lines in by_claim.items():
        short = reference[:1500] + " …" * (len(reference) > 1500)
        yield Excerpt(claim, lines, generator or "", notes=[f"Reference: {short}"])


def _human_lines(row: dict) -> Iterator[Line]:
    words = split_words(row["claim"])
    for index, annotation in enumerate(row.get("annotations") or [], 1):
        rating = "" if annotation.get("rating") is None else f"rating {annotation['rating']:g}"
        runs = _runs(row["claim"], annotation["lss"], align(annotation["lss"], words))
        yield Line(f"annotator {index}", runs, note=rating)


def _engine_lines(row: dict) -> Iterator[Line]:
    name, star = row.get("engine") or "LSS", row.get("lss_star")
    scores = ", ".join(f"{key} {number(value)}" for key, value in (row.get("scores") or {}).items())
    if star is None or row.get("lss") is not None:
        runs = _runs(row["claim"], row.get("lss"), row.get("keep"))
        yield Line(name, runs, note=scores)
    if star is not None:
        yield Line(f"{name}, LSS*", [(star or "nothing", None)], note=scores)


def _runs(claim: str, text: str | None, keep: Sequence[bool] | None) -> Runs:
    if keep is not None and len(keep) == len(split_words(claim)):
        return highlighted(claim, keep)
    return [("no answer" if text is None else text or "nothing", None)]
