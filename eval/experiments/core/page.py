"""The informativeness experiment's tables, figure and page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eval.report.declare import Page, TextTable, cell
from eval.report.figures import Drawing, bars
from eval.report.tables import COMPONENTS, by, pivot
from records import Result, ResultFile

# Metric to its title and what stands below it.
_TABLES = {
    "auroc": (
        "AUROC",
        "Probability that a claim of the left class is called likelier than one of the right; 0.5 "
        "is chance. Classes are compared over all topics.",
    ),
    "in_order": (
        "Pairs in order",
        "Share of the pairs of claims of one topic, one of each class, whose likelihoods are in "
        "the expected order; ties are half.",
    ),
    "likelihood": ("Likelihood", "Mean likelihood of a class's claims."),
}
# Variant and what it is compared with, to the head of its column.
_MODELS = {(name, None): title for name, title in COMPONENTS.items()}
_MODELS["trained", "untrained"] = "difference"


def _page_tables(file: ResultFile, folder: Path) -> list[TextTable]:
    """A table a metric: rows are classes or pairs of them, columns the components."""
    return [table for metric in _TABLES if (table := _table(file.results, metric)).rows]


def _page_figures(file: ResultFile, folder: Path) -> dict[str, Drawing]:
    """AUROC of every two classes: a bar a component, with intervals."""
    own = [row for row in file.results if row.metric == "auroc" and row.against is None]
    kinds = list(dict.fromkeys(row.kind for row in own))
    found = by(own, "kind", "variant")
    values, hints = {}, {}
    for name, title in COMPONENTS.items():
        rows = [found.get((kind, name)) for kind in kinds]
        if any(rows):
            values[title] = [(row.value, row.ci95) if row else (None, None) for row in rows]
            hints[title] = [f"{k}: {cell(row)}" for k, row in zip(kinds, rows, strict=True)]
    if not values:
        return {}
    return {"auroc": Drawing("AUROC by classes", bars(values, kinds, "AUROC", hints))}


def _table(results: Sequence[Result], metric: str) -> TextTable:
    own = [row for row in results if row.metric == metric]
    heads, found = pivot(own, ["kind"], ["variant", "against"], _MODELS)
    rows = [
        [*place, *map(cell, cells), str(max(row.n for row in cells if row is not None))]
        for place, cells in found
    ]
    title, note = _TABLES[metric]
    figures = ["auroc"] if metric == "auroc" else []
    return TextTable(title, note, ["Classes", *heads, "topics"], rows, figures)


InformativenessPage = Page(
    "Do likelihoods order claims by whom they hold for?",
    "",
    [_page_tables],
    [lambda file, folder: _page_figures(file, folder).values()],
)
