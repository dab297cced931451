"""The decomposition experiment's tables, figures and page, all from its run folder.

One table a quantity: rows are decomposers, columns generators and the mean over them. The figures
are SVG files, in which every text is a text of the drawing; the page shows them as images, where
nothing in them can run.
"""

from __future__ import annotations

import base64
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from pydantic import BaseModel

from eval.experiments.decomposition import figures as draw
from eval.report.tables import markdown_table, plain
from records import Result, ResultFile, read_records, read_results, write_text
from records.types import Record, VerdictLabel

MACRO, ALL = "macro", "all"
MAX_SENTENCES = 50  # shown with every decomposer's subclaims

# Metric, without what stands behind its colon: title, what it is, and how it is read.
TITLES = {
    "subclaims": ("Subclaims a passage", "Mean number of subclaims.", "count"),
    "subclaims_distinct": (
        "Distinct subclaims a passage",
        "Mean number of subclaims, those that entail each other counted once.",
        "count",
    ),
    "decomp_score": (
        "DecompScore",
        "Mean number of subclaims a passage that their source sentence supports (section 3.2).",
        "count",
    ),
    "decomp_score_distinct": (
        "DecompScore without duplicates",
        "DecompScore with one of each set of subclaims that entail each other.",
        "count",
    ),
    "coherence": (
        "Coherence",
        "Share of the subclaims that their source sentence supports.",
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
_DIGITS = {"count": 2, "score": 3}


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
        unit: how its values are read: ``count``, ``share`` or ``score``.
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


def grids_of(results: Sequence[Result]) -> list[Grid]:
    """One table a metric and selection, in the order of ``TITLES``."""
    order = list(TITLES)
    keys = list(dict.fromkeys((r.metric, r.selection) for r in results))
    keys.sort(key=lambda key: order.index(key[0].partition(":")[0]))  # stable
    grids = []
    for metric, selection in keys:
        own = [r for r in results if (r.metric, r.selection) == (metric, selection)]
        base, _, of = metric.partition(":")
        title, note, unit = TITLES[base]
        more = [of] if of else []
        more += ["with Core"] if selection == "core" else []
        columns = list(dict.fromkeys(r.generator for r in own))
        found = {(r.kind, r.generator): r for r in own}
        names = dict.fromkeys(r.kind for r in own)
        grids.append(
            Grid(
                metric=metric,
                selection=selection,
                title=title + (f" ({', '.join(more)})" if more else ""),
                note=note,
                unit=unit,
                columns=columns,
                rows=[(name, [found.get((name, column)) for column in columns]) for name in names],
            )
        )
    return grids


def column_name(generator: str) -> str:
    """A column's heading."""
    return {MACRO: "mean over generators", ALL: "all passages"}.get(generator, generator)


def value_text(value: float | None, unit: str) -> str:
    """A value as its unit is read; a dash for none."""
    if value is None:
        return "–"
    return f"{100 * value:.1f} %" if unit == "share" else f"{value:.{_DIGITS[unit]}f}"


def interval_text(row: Result, unit: str) -> str:
    """The 95 % interval in brackets; nothing without one."""
    if row.ci95 is None:
        return ""
    low, high = (value_text(end, unit).removesuffix(" %") for end in row.ci95)
    return f"[{low}, {high}]"


def rankings(grids: Sequence[Grid]) -> list[tuple[str, list[tuple[str, str]]]]:
    """How each decomposer orders the generators by factual precision, the best first."""
    found = []
    for grid in grids:
        if not grid.metric.startswith("factual_precision") or len(grid.columns) < 3:
            continue
        rows = []
        for name, cells in grid.rows:
            there = [c for c in cells if c and c.generator != MACRO and c.value is not None]
            there.sort(key=lambda cell: -cell.value)
            rows.append((name, " > ".join(cell.generator for cell in there)))
        found.append((grid.title, rows))
    return found


# Files beside the results


def write_tables_and_figures(folder: Path) -> None:
    """Write ``tables.md``, ``tables.csv`` and ``figures/*.svg`` into a run folder."""
    results = read_results(folder / "results.json").results
    grids = grids_of(results)
    write_text(folder / "tables.md", markdown(grids, read_passages(folder / "sentences.jsonl")))
    write_text(folder / "tables.csv", table_csv(grids))
    drawn = figures_of(grids, read_passages(folder / "subclaims.jsonl"))
    for old in (folder / "figures").glob("*.svg"):  # of a run with other options
        if old.stem not in drawn:
            old.unlink()
    for name, (_, svg) in drawn.items():
        write_text(folder / "figures" / f"{name}.svg", svg)


def read_passages(path: Path) -> list[PassageRow]:
    """The passages of a file; none where the run wrote none."""
    if not path.is_file() or not path.stat().st_size:
        return []
    return read_records(path, PassageRow)


def markdown(grids: Sequence[Grid], sentences: Sequence[PassageRow]) -> str:
    """All tables as Markdown."""
    parts = ["n counts topics; brackets hold 95 % bootstrap intervals over topics.\n"]
    for grid in grids:
        head = ["decomposer", *map(column_name, grid.columns)]
        rows = [[name, *(_cell_text(c, grid.unit) for c in cells)] for name, cells in grid.rows]
        parts.append(f"## {plain(grid.title)}\n\n{grid.note}\n\n{markdown_table(head, rows)}")
    for title, ranked in rankings(grids):
        table = markdown_table(["decomposer", "generators, the best first"], ranked)
        parts.append(f"## Order by {plain(title[0].lower() + title[1:])}\n\n{table}")
    for text, rows in side_by_side(sentences):
        table = markdown_table(["decomposer", "subclaims"], [[n, _listed(c)] for n, c in rows])
        parts.append(f"## {plain(text)}\n\n{table}")
    return "\n".join(parts)


def _cell_text(row: Result | None, unit: str) -> str:
    if row is None:
        return "–"
    value = f"{value_text(row.value, unit)} {interval_text(row, unit)}".strip()
    return f"{value} (n = {row.n}, failed {row.failed})"


def _listed(claims: Sequence[Subclaim]) -> str:
    marks = [f"{claim.text} {marks_of(claim)}".strip() for claim in claims]
    return " / ".join(marks)


def marks_of(claim: Subclaim) -> str:
    """What the judges said of a subclaim, in brackets; why it failed where it has."""
    if claim.failed is not None:
        return f"[failed: {claim.failed}]"
    said = [f"{name}: {label.replace('_', ' ')}" for name, label in claim.support.items()]
    return f"[{', '.join(said)}]" if said else ""


def table_csv(grids: Sequence[Grid]) -> str:
    """All values, one a line."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = ("metric", "selection", "decomposer", "generator", "value", "low", "high")
    writer.writerow([*fields, "n", "failed"])
    for grid in grids:
        for name, cells in grid.rows:
            for row in filter(None, cells):
                ends = row.ci95 or ("", "")
                value = "" if row.value is None else row.value
                own = [row.metric, row.selection, name, row.generator, value]
                writer.writerow([*own, *ends, row.n, row.failed])
    return out.getvalue()


def side_by_side(
    rows: Sequence[PassageRow],
) -> list[tuple[str, list[tuple[str, list[Subclaim]]]]]:
    """Each sentence with every decomposer's subclaims."""
    found: dict[str, tuple[str, list]] = {}
    for row in rows:
        found.setdefault(row.id, (row.text, []))[1].append((row.decomposer, row.subclaims))
    return list(found.values())[:MAX_SENTENCES]


# Figures


def figures_of(grids: Sequence[Grid], passages: Sequence[PassageRow]) -> dict[str, tuple[str, str]]:
    """File name without its ending to a title and the SVG."""
    found = {}
    for number, grid in enumerate(g for g in grids if MACRO in g.columns):
        bars = {
            name: [(c.value, c.ci95) if c else (None, None) for c in cells]
            for name, cells in grid.rows
        }
        columns = [column_name(column) for column in grid.columns]
        base = grid.metric.partition(":")[0]
        name = f"{number + 1:02}_{base}" + ("_core" if grid.selection == "core" else "")
        found[name] = (grid.title, draw.bars(bars, columns, grid.title))
    for name, title, counts in _distributions(passages):
        found[name] = (title, draw.distributions(counts, title))
    for number, (title, points, x, y) in enumerate(_scatters(grids), 1):
        found[f"decomp_score_and_precision_{number}"] = (title, draw.scatter(points, x, y))
    return found


def _distributions(
    passages: Sequence[PassageRow],
) -> list[tuple[str, str, dict[str, list[int]]]]:
    """Subclaims of each sentence that has some, and of each passage, by decomposer."""
    sentences: dict[str, list[int]] = {}
    wholes: dict[str, list[int]] = {}
    for row in passages:
        usable = [claim for claim in row.subclaims if claim.failed is None]
        counts: dict[int, int] = {}
        for claim in usable:
            counts[claim.sentence] = counts.get(claim.sentence, 0) + 1
        sentences.setdefault(row.decomposer, []).extend(counts.values())
        wholes.setdefault(row.decomposer, []).append(len(usable))
    if not passages:
        return []
    return [
        ("subclaims_of_sentences", "Subclaims of a sentence that has some", sentences),
        ("subclaims_of_passages", "Subclaims of a passage", wholes),
    ]


def _scatters(
    grids: Sequence[Grid],
) -> list[tuple[str, Mapping[str, tuple[float, float]], str, str]]:
    """DecompScore against factual precision, a point a decomposer, means over generators."""
    found = []
    for precision in (g for g in grids if g.metric.startswith("factual_precision")):
        if precision.selection == "core" or "supported_only" in precision.metric:
            continue
        for score in (g for g in grids if g.metric.startswith("decomp_score:")):
            ours, theirs = _macro(score), _macro(precision)
            points = {name: (ours[name], theirs[name]) for name in ours if name in theirs}
            title = f"{precision.title} against {score.title}"
            found.append((title, points, score.title, precision.title))
    return found


def _macro(grid: Grid) -> dict[str, float]:
    cells = ((name, c) for name, cells in grid.rows for c in cells if c and c.generator == MACRO)
    return {name: cell.value for name, cell in cells if cell.value is not None}


# The page


def page_context(file: ResultFile, folder: Path) -> dict:
    """What the page's template shows."""
    grids = grids_of(file.results)
    drawn = figures_of(grids, read_passages(folder / "subclaims.jsonl"))
    return {
        "grids": grids,
        "rankings": rankings(grids),
        "sentences": side_by_side(read_passages(folder / "sentences.jsonl")),
        "left_out": {k: v for k, v in (file.provenance.get("left_out") or {}).items() if v},
        "images": {
            title: base64.b64encode(svg.encode("utf-8")).decode() for title, svg in drawn.values()
        },
        "column_name": column_name,
        "value_text": value_text,
        "interval_text": interval_text,
        "marks_of": marks_of,
    }
