"""The pairs of the LSS metrics experiment: what is read, and what is found out about each."""

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

# Of the three experiments' pages.
QUESTION = "What of a claim is supported?"
ABOUT = (
    "The longest supported subsequence (LSS) of a claim is what is left of it when every word goes "
    "that its reference does not support (arXiv 2308.12157). Brackets hold 95 % bootstrap "
    "intervals over references, which n counts. What failed has no answer; it is counted and "
    "never inside a value."
)

# The columns that make a row more than a reference and a claim: ours, and WiCE's token rows.
_ANNOTATED = {"annotations", "claim_tokens"}


class GroundedClaim(Record):
    """A claim that somebody wrote on the ground of a reference, and nobody has annotated."""

    reference: Text
    claim: Text
    id: str | None = None


class ClaimPair(Record):
    """A claim and its reference, with what people said of it where it is known.

    Attributes:
        factual: share of raters who judged that the claim is true, where ``summaries`` has it.
        group: what is resampled: the row's own ``group``, else its reference.
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
        """The pair as an LSS record; only one with annotations is one."""
        return LssExample(
            reference=self.reference,
            claim=self.claim,
            annotations=self.annotations,
            keep=self.keep,
        )


class Judgement(BaseModel):
    """One engine's answer for a pair, or the people's.

    Attributes:
        lss: the LSS; of several people the words that at least half of them keep.
        keep: per word of ``split_words(claim)``; none for a text with words of its own.
        lss_star: the LSS*; of several people the first one's.
        scores: form to metric to score, the mean over people; ``None`` where the metric failed or
            the engine had no answer.
    """

    lss: str | None = None
    keep: list[bool] | None = None
    lss_star: str | None = None
    scores: dict[str, dict[str, float | None]] = {}


class Measured(BaseModel):
    """A pair with all that was found out about it.

    Attributes:
        engines: engine to its answer; metric(reference, claim) is the one of no engine.
    """

    pair: ClaimPair
    engines: dict[str, Judgement]


def read_pairs(path: str, generator: str | None) -> list[ClaimPair]:
    """The pairs of a file: LSS records, WiCE's token rows, or just references and claims.

    Args:
        path: JSONL, JSON, CSV or Parquet; where one row is annotated, all are.
        generator: who wrote the claims; else the rows' own ``generator`` or ``system``.

    Raises:
        BadInput: a row that lacks a field.
    """
    columns = {column for _, row in iter_rows(path) for column in row}
    if "Statement" in columns:
        raise UserError(
            f"{path}: the published table has a row an answer; put the answers together with "
            "python -m data_builders lss --annotations"
        )
    kind = LssExample if _ANNOTATED & columns else GroundedClaim
    found = []
    for line, row in enumerate(read_records(path, kind), 1):
        more = row.model_extra or {}
        found.append(
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
    return found


def _share(value: object) -> float | None:
    there = isinstance(value, int | float) and 0 <= value <= 1
    return float(value) if there else None


def distinct(pairs: Sequence[ClaimPair]) -> list[ClaimPair]:
    """The pairs with ids that differ: of several generators with the generator's name before it."""
    generators = {pair.generator for pair in pairs}
    several = len(generators) > 1
    if several and ALL in generators:
        raise UserError(f"pairs: {ALL!r} is a name of the experiment's own; rename that generator")
    named = [
        pair.model_copy(update={"id": f"{pair.generator}/{pair.id}"}) if several else pair
        for pair in pairs
    ]
    twice, times = (Counter(pair.id for pair in named).most_common(1) or [("", 0)])[0]
    if times > 1:
        raise UserError(f"pairs: id {twice!r} occurs more than once; ids must be unique")
    return named


def by_people(pair: ClaimPair) -> Judgement:
    """The people's LSS and LSS* of an annotated pair, without scores."""
    words, kept, _ = keep_targets(pair.example())
    half = [2 * sum(column) >= len(kept) for column in zip(*kept, strict=True)]
    stars = [a.lss_star for a in pair.annotations if a.lss_star is not None]
    return Judgement(
        lss=join_words(pair.claim, words, half) if kept else pair.annotations[0].lss,
        keep=half if kept else None,
        lss_star=stars[0] if stars else None,
    )


def excerpts(folder: Path) -> Iterator[Excerpt]:
    """The claims of ``pairs.jsonl`` with what engines and annotators keep; none of no file."""
    found: dict[tuple, list[Line]] = {}
    for row in rows_in(folder / "pairs.jsonl"):
        key = row["reference"], row["claim"], row.get("generator")
        if key not in found:
            found[key] = list(_human_lines(row))
        found[key] += _engine_lines(row)
    for (reference, claim, generator), lines in found.items():
        short = reference[:1500] + " …" * (len(reference) > 1500)
        yield Excerpt(claim, lines, generator or "", notes=[f"Reference: {short}"])


def _human_lines(row: dict) -> Iterator[Line]:
    words = split_words(row["claim"])
    for place, one in enumerate(row.get("annotations") or [], 1):
        rating = "" if one.get("rating") is None else f"rating {one['rating']:g}"
        runs = _runs(row["claim"], one["lss"], align(one["lss"], words))
        yield Line(f"annotator {place}", runs, note=rating)


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
