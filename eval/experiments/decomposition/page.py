"""The decomposition experiment's tables, figures and page, all from its run folder.

One table a quantity: rows are decomposers, columns generators and the mean over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from pathlib import Path

from pydantic import BaseModel

from eval.experiments.decomposition.values import ALL, MACRO
from eval.report.figures import (
    COLOURS,
    MARKERS,
    Drawing,
    Line,
    as_svg,
    bars,
    drawing,
    lines,
    new_axes,
    plain_label,
)
from eval.report.page import Page
from eval.report.tables import TextTable, cell
from records import Result, ResultFile, read_records
from records.types import Record, VerdictLabel

MAX_SENTENCES = 50  # shown with every decomposer's subclaims
MOST = 30  # larger numbers of subclaims count as this in a drawing

# Metric: title, what it is, and how it is read.
TITLES = {
    "subclaims": ("Subclaims a passage", "Mean number of subclaims.", "mean"),
    "subclaims_distinct": (
        "Distinct subclaims a passage",
        "Mean number of subclaims, those that entail each other counted once.",
        "mean",
    ),
    "decomp_score": (
        "DecompScore",
        "Mean number of subclaims a passage that their source sentence supports (section 3.2).",
        "mean",
    ),
    "decomp_score_distinct": (
        "DecompScore without duplicates",
        "DecompScore with one of each set of subclaims that entail each other.",
        "mean",
    ),
    "coherence": (
        "Coherence, pooled",
        "Share of all passages’ subclaims together that their source sentence supports.",
        "share",
    ),
    "coherence_per_passage": (
        "Coherence, mean over passages",
        "Mean of the passages’ own shares, each passage counting the same (as in Table 6).",
        "share",
    ),
    "claim_recall": (
        "People’s claims that are found",
        "Share of people’s claims that a subclaim of its own says, matched by meaning.",
        "share",
    ),
    "claim_precision": (
        "Subclaims that are people’s",
        "Share of the subclaims that say a claim of people’s, each claim matched once.",
        "share",
    ),
    "claim_f1": ("F1 of both", "Of all texts together.", "share"),
    "element_coverage": (
        "Coverage of people’s claims",
        "Share of people’s claims that some subclaim entails (after 2502.10855, section 4.2).",
        "share",
    ),
    "context_changes": (
        "Decisions that the added context changes",
        "Share of the subclaims that the sentence in its form that stands alone supports and the "
        "sentence as it stood does not, or the other way round.",
        "share",
    ),
    "factual_precision": (
        "Factual precision",
        "Mean share of a passage’s subclaims that the evidence supports, without length penalty.",
        "score",
    ),
    "factual_precision_supported_only": (
        "Factual precision of supported subclaims",
        "The same over those subclaims only that their source sentence supports. Passages without "
        "such are left out.",
        "score",
    ),
    "factscore": (
        "FActScore",
        "Mean over passages of factual precision times FActScore’s length penalty, exp(1 − γ/n) "
        "where a passage has n < γ subclaims.",
        "score",
    ),
    "factscore_supported_only": (
        "FActScore of supported subclaims",
        "The same over those subclaims only that their source sentence supports, of which n is the "
        "number. Passages without such are left out.",
        "score",
    ),
    "pearson_with_reported": (
        "Pearson correlation with what another setup reported",
        "Over the generators that were reported (as in Table 7).",
        "score",
    ),
    "agreement": (
        "Agreement of two judges",
        "Share of the subclaims that both judges decide alike.",
        "share",
    ),
    "kappa": ("Cohen’s kappa of two judges", "The same, corrected for chance.", "score"),
    "pearson": (
        "Pearson correlation of two judges",
        "Of the numbers of supported subclaims of the passages.",
        "score",
    ),
    "spearman": (
        "Spearman correlation of two judges",
        "Of the numbers of supported subclaims of the passages.",
        "score",
    ),
    "pearson_of_means": (
        "Pearson correlation of two judges’ DecompScores",
        "Over the cells of decomposer and generator.",
        "score",
    ),
}
_PRECISIONS = ("factual_precision", "factscore")
_COLUMNS = {MACRO: "mean over generators", ALL: "all passages"}


class Subclaim(BaseModel):
    """A subclaim of ``subclaims.jsonl`` and what each judge said of it."""

    text: str
    sentence: int
    failed: str | None = None
    support: dict[str, VerdictLabel] = {}


class PassageRow(Record):
    """A line of ``subclaims.jsonl`` or ``sentences.jsonl``: a passage by one decomposer."""

    id: str
    topic: str
    generator: str
    decomposer: str
    text: str
    subclaims: list[Subclaim]


@dataclass(frozen=True)
class Grid:
    """A quantity's table.

    Attributes:
        metric, selection: as in the results.
        title, note: what it shows.
        unit: how its values are read.
        columns: generators, the mean over them last.
        rows: decomposer and one result a column; ``None`` where there is none.
    """

    metric: str
    selection: str
    title: str
    note: str
    unit: str
    columns: list[str]
    rows: list[tuple[str, list[Result | None]]]

    @property
    def heads(self) -> list[str]:
        """The columns' headings."""
        return [_COLUMNS.get(column, column) for column in self.columns]


def grids_of(results: Sequence[Result]) -> list[Grid]:
    """One table a quantity, in the order of ``TITLES``."""
    parts: dict[tuple, list[Result]] = {}
    for row in results:
        key = (row.metric, row.assessor, row.against, row.variant, row.selection)
        parts.setdefault(key, []).append(row)
    order = list(TITLES)
    grids = []
    for _, own in sorted(parts.items(), key=lambda part: order.index(part[0][0])):  # stable
        title, note, unit = TITLES[own[0].metric]
        columns = list(dict.fromkeys(r.generator for r in own))
        found = {(r.kind, r.generator): r for r in own}
        names = dict.fromkeys(r.kind for r in own)
        rows = [(name, [found.get((name, c)) for c in columns]) for name in names]
        place = (own[0].metric, own[0].selection)
        grids.append(Grid(*place, title + _of(own[0]), note, unit, columns, rows))
    return grids


def _of(row: Result) -> str:
    whose = row.assessor if row.against is None else f"{row.assessor}~{row.against}"
    whose = ":".join(filter(None, (row.variant, whose)))
    parts = [*filter(None, [whose]), *(["with Core"] if row.selection == "core" else [])]
    return f" ({', '.join(parts)})" if parts else ""


def rankings(grids: Sequence[Grid]) -> list[TextTable]:
    """How each decomposer orders the generators by factual precision or FActScore, best first."""
    found = []
    for grid in grids:
        if grid.metric.removesuffix("_supported_only") not in _PRECISIONS or len(grid.columns) < 3:
            continue
        rows = []
        for name, cells in grid.rows:
            there = [c for c in cells if c and c.generator != MACRO and c.value is not None]
            there.sort(key=lambda own: -own.value)
            order = "".join(
                f" {'=' if own.value == before.value else '>'} {own.generator}"
                for before, own in pairwise(there)
            )
            rows.append([name, there[0].generator + order if there else ""])
        title = f"Order by {_within(grid.title)}"
        found.append(TextTable(title, "", ["decomposer", "generators, the best first"], rows))
    return found


def _within(title: str) -> str:
    return title if title[1].isupper() else f"{title[0].lower()}{title[1:]}"


def read_passages(path: Path) -> list[PassageRow]:
    """The passages of a file; none where the run wrote none."""
    if not path.is_file() or not path.stat().st_size:
        return []
    return read_records(path, PassageRow)


def _listed(claims: Sequence[Subclaim]) -> str:
    return " / ".join(f"{claim.text} {marks_of(claim)}".strip() for claim in claims)


def marks_of(claim: Subclaim) -> str:
    """What the judges said of a subclaim, in brackets; why it failed where it has."""
    if claim.failed is not None:
        return f"[failed: {claim.failed}]"
    said = [f"{name}: {label.replace('_', ' ')}" for name, label in claim.support.items()]
    return f"[{', '.join(said)}]" if said else ""


def side_by_side(
    rows: Sequence[PassageRow],
) -> list[tuple[str, list[tuple[str, list[Subclaim]]]]]:
    """Each sentence with every decomposer's subclaims."""
    found: dict[str, tuple[str, list]] = {}
    for row in rows:
        found.setdefault(row.id, (row.text, []))[1].append((row.decomposer, row.subclaims))
    return list(found.values())[:MAX_SENTENCES]


# Figures


def _distributions(passages: Sequence[PassageRow]) -> dict[str, Drawing]:
    sentences: dict[str, list[int]] = {}
    wholes: dict[str, list[int]] = {}
    for row in passages:
        usable = [claim for claim in row.subclaims if claim.failed is None]
        counts: dict[int, int] = {}
        for claim in usable:
            counts[claim.sentence] = counts.get(claim.sentence, 0) + 1
        sentences.setdefault(row.decomposer, []).extend(counts.values())
        wholes.setdefault(row.decomposer, []).append(len(usable))
    named = {
        "subclaims_of_sentences": ("Subclaims of a sentence that has some", sentences),
        "subclaims_of_passages": ("Subclaims of a passage", wholes),
    }
    return {
        name: Drawing(title, distributions(counts, title))
        for name, (title, counts) in named.items()
        if passages
    }


def distributions(counts: Mapping[str, Sequence[int]], label: str) -> str:
    """Share of the sentences, or passages, with so many subclaims."""
    series = {}
    for name, own in counts.items():
        seen = Counter(min(count, MOST) for count in own)
        places = range(max(seen, default=0) + 1)
        series[name] = Line([(place, seen[place] / max(1, len(own))) for place in places])
    return lines(series, f"{plain_label(label)} ({MOST}: as many or more)", "share")


def _scatters(grids: Sequence[Grid]) -> dict[str, Drawing]:
    found = {}
    for precision in (g for g in grids if g.metric in _PRECISIONS):
        for score in (g for g in grids if g.metric == "decomp_score"):
            if precision.selection == "none":
                ours, theirs = _macro(score), _macro(precision)
                points = {name: (ours[name], theirs[name]) for name in ours if name in theirs}
                svg = scatter(points, score.title, precision.title)
                name = f"decomp_score_and_precision_{len(found) + 1}"
                found[name] = Drawing(f"{precision.title} against {score.title}", svg)
    return found


def _macro(grid: Grid) -> dict[str, float]:
    cells = ((name, c) for name, cells in grid.rows for c in cells if c and c.generator == MACRO)
    return {name: own.value for name, own in cells if own.value is not None}


def scatter(points: Mapping[str, tuple[float, float]], x: str, y: str) -> str:
    """A point a decomposer."""
    with drawing():
        figure, axes = new_axes(width=6, ylabel=y)
        axes.set_xlabel(plain_label(x))
        looks = zip(points.items(), cycle(COLOURS), cycle(MARKERS), strict=False)
        for (name, (left, up)), colour, marker in looks:
            axes.scatter([left], [up], label=plain_label(name), color=colour, marker=marker)
        return as_svg(figure, axes)


class DecompositionPage(Page):
    """How much does the decomposer decide?"""

    template = "experiments/decomposition/decomposition.html.j2"
    question = "How much does the decomposer decide?"

    def tables(self, file: ResultFile, folder: Path) -> list[TextTable]:
        """A table a quantity, and the orders of the generators."""
        grids = grids_of(file.results)
        drawn = _named(grids)
        found = []
        for grid in grids:
            rows = [
                [name, *(cell(c, grid.unit, "n = {n}, failed {failed}") for c in cells)]
                for name, cells in grid.rows
            ]
            figures = [name for name, own in drawn.items() if own is grid]
            head = ["decomposer", *grid.heads]
            found.append(TextTable(grid.title, grid.note, head, rows, figures))
        return [*found, *rankings(grids)]

    def appendix(self, file: ResultFile, folder: Path) -> list[TextTable]:
        """Sentences with every decomposer's subclaims."""
        return [
            TextTable(text, "", ["decomposer", "subclaims"], [[n, _listed(c)] for n, c in rows])
            for text, rows in side_by_side(read_passages(folder / "sentences.jsonl"))
        ]

    def context(self, file: ResultFile, folder: Path, document: str | None) -> dict:
        """The same sentences."""
        sentences = side_by_side(read_passages(folder / "sentences.jsonl"))
        return {"sentences": sentences, "marks_of": marks_of}

    def figures(self, file: ResultFile, folder: Path) -> dict[str, Drawing]:
        """Bars of every quantity, distributions of subclaims, DecompScore against precision."""
        grids = grids_of(file.results)
        found = {name: Drawing(grid.title, _bars(grid)) for name, grid in _named(grids).items()}
        passages = read_passages(folder / "subclaims.jsonl")
        return found | _distributions(passages) | _scatters(grids)

    def in_terminal(self, row: Result) -> bool:
        """What is over all generators."""
        return row.generator in {MACRO, ALL}


def _named(grids: Sequence[Grid]) -> dict[str, Grid]:
    drawn = [grid for grid in grids if MACRO in grid.columns]
    return {
        f"{number:02}_{grid.metric}" + ("_core" if grid.selection == "core" else ""): grid
        for number, grid in enumerate(drawn, 1)
    }


def _bars(grid: Grid) -> str:
    values = {
        name: [(c.value, c.ci95) if c else (None, None) for c in cells] for name, cells in grid.rows
    }
    return bars(values, grid.heads, grid.title)
