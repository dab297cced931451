"""The informativeness experiment's page: how well UNLI models order claims, from its results."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

from eval.report.decomposition_figures import bars
from eval.report.tables import COMPONENTS
from eval.report.text_tables import TextTable, number_with_interval
from records import Result, ResultFile

DIFFERENCE = "difference of "
# Metric to its title and what stands below it.
TABLES = {
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


def tables_of(results: Sequence[Result]) -> list[TextTable]:
    """A table a metric: rows are classes or pairs of them, columns the components."""
    found = {(row.metric, row.kind, row.components): row for row in results}
    own = [name for name in COMPONENTS if any(row.components == name for row in results)]
    several = any(row.metric.startswith(DIFFERENCE) for row in results)
    head = ["Classes", *(COMPONENTS[name] for name in own), *(["difference"] if several else [])]
    tables = []
    for metric, (title, note) in TABLES.items():
        kinds = list(dict.fromkeys(row.kind for row in results if row.metric == metric))
        rows = []
        for kind in kinds:
            cells = [found.get((metric, kind, name)) for name in own]
            if several:
                cells.append(found.get((DIFFERENCE + metric, kind, "trained")))
            topics = max(cell.n for cell in cells if cell is not None)
            rows.append([kind, *map(number_with_interval, cells), f"{topics}"])
        if rows:
            tables.append(TextTable(title, note, [*head, "topics"], rows))
    return tables


def draw_auroc(results: Sequence[Result]) -> str:
    """The AUROC of every two classes as SVG: a bar a component, with intervals."""
    own = [row for row in results if row.metric == "auroc"]
    kinds = list(dict.fromkeys(row.kind for row in own))
    found = {(row.components, row.kind): (row.value, row.ci95) for row in own}
    values = {
        title: [found.get((name, kind), (None, None)) for kind in kinds]
        for name, title in COMPONENTS.items()
        if any(row.components == name for row in own)
    }
    return bars(values, kinds, "AUROC")


def page_context(file: ResultFile, folder: Path) -> dict:
    """What the page's template shows."""
    aurocs = any(row.metric == "auroc" for row in file.results)
    svg = draw_auroc(file.results) if aurocs else ""
    return {
        "tables": tables_of(file.results),
        "image": base64.b64encode(svg.encode("utf-8")).decode(),
        "control": any(row.components == "untrained" for row in file.results),
    }
