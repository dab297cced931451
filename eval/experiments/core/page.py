"""The informativeness experiment's tables, figure and page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eval.report.figures import Drawing, bars
from eval.report.page import Page
from eval.report.tables import TextTable, by, cell
from records import Result, ResultFile

# Metric to title and note.
_TABLES = {
    "auroc": (
        "AUROC of the likelihoods",
        "p(claim) = the largest p(claim | bleached claim). That a claim of the first class is "
        "likelier than one of the others; 0.5 is chance.",
    ),
    "in_order": (
        "Pairs in order",
        "Share of the pairs of claims about one topic, one of each class, whose likelihoods are in "
        "the expected order; ties are half.",
    ),
    "likelihood": ("Mean likelihood", "Of the claims of a class."),
}
# Variant and what it is compared with, to the head of its column.
_MODELS = {
    ("trained", None): "model",
    ("untrained", None): "control",
    ("trained", "untrained"): "difference",
}


class InformativenessPage(Page):
    """Does the likelihood of a claim say how many people it holds for?"""

    template = "experiments/core/informativeness.html.j2"
    question = "Are claims in order of how many people they hold for?"

    def tables(self, file: ResultFile, folder: Path) -> list[TextTable]:
        """A table a metric: classes by model."""
        own = by(file.results, "metric", "kind", "variant", "against")
        found = [_table(own, metric) for metric in _TABLES]
        return [table for table in found if table.rows]

    def figures(self, file: ResultFile, folder: Path) -> dict[str, Drawing]:
        """AUROC of every two classes."""
        rows = [r for r in file.results if r.metric == "auroc" and r.against is None]
        if not rows:
            return {}
        own = by(rows, "kind", "variant")
        kinds = list(dict.fromkeys(row.kind for row in rows))
        names = {name: head for (name, against), head in _MODELS.items() if against is None}
        shown = {name: head for name, head in names.items() if any(r.variant == name for r in rows)}
        values, hints = {}, {}
        for name, head in shown.items():
            cells = [own.get((kind, name)) for kind in kinds]
            values[head] = [(row.value, row.ci95) if row else (None, None) for row in cells]
            hints[head] = [f"{kind}, {head}: {cell(own.get((kind, name)))}" for kind in kinds]
        return {"auroc": Drawing("AUROC of the likelihoods", bars(values, kinds, "AUROC", hints))}


def _table(own: Mapping[tuple, Result], metric: str) -> TextTable:
    shown = {
        key: head
        for key, head in _MODELS.items()
        if any((name, *rest) == (metric, *key) for name, _, *rest in own)
    }
    rows = [
        [kind, *(cell(own.get((metric, kind, *key)), note="n = {n}") for key in shown)]
        for kind in dict.fromkeys(kind for name, kind, *_ in own if name == metric)
    ]
    title, note = _TABLES[metric]
    figures = ["auroc"] if metric == "auroc" else []
    return TextTable(title, note, ["classes", *shown.values()], rows, figures)
