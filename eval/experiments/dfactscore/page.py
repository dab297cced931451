"""The D-FActScore experiment's tables, figures and page, all from its run folder."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path

from eval.experiments.decomposition.figures import bars
from eval.experiments.dfactscore.texts import (
    TYPES,
    JudgedText,
    factual_precision,
    output_type,
    people_of,
)
from eval.report.tables import TextTable, markdown_table, number_with_interval, results_csv
from records import Result, ResultFile, read_records, read_results, write_text

MAX_EXAMPLES = 30
MARKS = {True: "✓", False: "✗", None: "?"}

# Metric to the head of its column.
_VALUES = {
    "factual_precision:independent": "FActScore",
    "factual_precision:grouped": "D-FActScore",
    "gap": "difference",
    "biographies": "biographies",
    "entities": "entities",
    "linked_people": "linked people",
    "respond_ratio": "respond ratio",
    "citation_recall": "citation recall",
    "citation_precision": "citation precision",
}
_TYPES = {f"output_type:{name}": name for name in TYPES}
_VERDICTS = {
    "balanced_accuracy:independent": "FActScore’s verdicts",
    "balanced_accuracy:grouped": "D-FActScore’s verdicts",
    "balanced_accuracy:several_people": "several people",
    "linked_alike": "title alike",
    "citation_auroc": "citations, AUROC",
    "citation_accuracy": "citations, accuracy",
}
_CORRELATIONS = {
    "factual_precision:independent": "FActScore",
    "factual_precision:grouped": "D-FActScore",
    "gap": "difference",
    "biographies": "biographies",
    "entities": "entities",
    "linked_people": "linked people",
    "citation_recall": "citation recall",
}
_VIEWS = {
    "most_viewed": "tells most of the most-viewed person",
    "most_viewed_by_chance": "by chance",
    "views_of_the_person": "log10(1 + views)",
    "spearman:grouped_and_views": "views and D-FActScore",
    "spearman:gap_and_views": "views and difference",
}


Cells = Mapping[tuple[str, str, str], Result]


def tables_of(results: Sequence[Result]) -> list[TextTable]:
    """The tables that have a value, in reading order."""
    own = {(row.metric, row.kind, row.generator): row for row in results}
    found = [
        _by_source(
            own,
            _VALUES,
            "FActScore, D-FActScore, people and citations",
            "Tables 3, 4 and 6 of the paper. Automatic: this run’s verifier. File: the verdicts "
            "that the texts came with. Biographies: groups of claims. Entities: distinct pages "
            "where each claim is linked by itself. Linked people: distinct pages of the groups.",
        ),
        _by_source(
            own,
            _TYPES,
            "Types of output",
            "Shares of the texts that respond (section 2.4). Merged: one biography whose claims "
            "only several people’s pages support. Kept apart: several biographies, several people. "
            "Split: several biographies of one person. Nobody: no claim is supported.",
        ),
    ]
    for source in ("file", "people"):
        verdicts = {f"{name}~{source}": head for name, head in _VERDICTS.items()}
        found.append(
            _by_source(
                own,
                verdicts,
                f"Automatic verdicts against {_whose(source)}",
                "Balanced accuracy, but for the last three columns: share of the claims that are "
                "supported there whose page is the same here; AUROC and accuracy of the citations’ "
                "entailment.",
            )
        )
        for kind, name in (("pearson", "Pearson"), ("spearman", "Spearman")):
            columns = {f"{kind}:{m}~{source}": head for m, head in _CORRELATIONS.items()}
            title = f"{name} correlation with {_whose(source)}, text by text"
            found.append(_by_source(own, columns, title, "Of the values of the texts."))
    found.append(
        _by_source(
            own,
            _VIEWS,
            "Page views",
            "Section 5.3. Of texts whose main person’s page has views; failed counts the others. "
            "The last two columns are Spearman correlations.",
        )
    )
    return [table for table in found if table.rows]


def _whose(source: str) -> str:
    return "the file’s" if source == "file" else "people’s"


def _by_source(own: Cells, columns: Mapping[str, str], title: str, note: str) -> TextTable:
    """A row a generator and source; columns that are empty throughout are left out."""
    shown = {m: head for m, head in columns.items() if any(name == m for name, _, _ in own)}
    keys = dict.fromkeys((g, kind) for metric, kind, g in own if metric in shown)
    rows = []
    for generator in dict.fromkeys(g for g, _ in keys):
        for kind in (kind for g, kind in keys if g == generator):
            cells = [own.get((metric, kind, generator)) for metric in shown]
            rows.append([generator, kind, *map(_cell, cells)])
    return TextTable(title, note, ["generator", "source", *shown.values()], rows)


def _cell(row: Result | None) -> str:
    if row is None:
        return "–"
    lost = f", {row.failed} failed" if row.failed else ""
    return f"{number_with_interval(row)} (n = {row.n}{lost})"


# Figures


def figures_of(results: Sequence[Result]) -> dict[str, tuple[str, str]]:
    """File name without its ending to a title and the SVG."""
    own = {(row.metric, row.kind, row.generator): row for row in results}
    generators = list(dict.fromkeys(r.generator for r in results if r.kind == "automatic"))
    found = {}
    scores = {}
    for kind in ("automatic", "file", "people"):
        for metric in ("factual_precision:independent", "factual_precision:grouped"):
            cells = [own.get((metric, kind, generator)) for generator in generators]
            if any(cells):
                scores[f"{_VALUES[metric]}, {kind}"] = [_value(cell) for cell in cells]
    title = "FActScore and D-FActScore by generator"
    if scores:
        found["01_scores"] = (title, bars(scores, generators, "supported claims"))
    shares = {
        generator: [_value(own.get((metric, "automatic", generator))) for metric in _TYPES]
        for generator in generators
    }
    title = "Types of output by generator"
    found["02_output_types"] = (title, bars(shares, list(TYPES), "share of the texts"))
    return found


def _value(row: Result | None) -> tuple[float | None, tuple[float, float] | None]:
    return (None, None) if row is None else (row.value, row.ci95)


# Files and the page


def write_tables_and_figures(folder: Path) -> None:
    """Write ``tables.md``, ``tables.csv`` and ``figures/*.svg`` into a run folder."""
    results = read_results(folder / "results.json").results
    parts = ["n counts names; brackets hold 95 % bootstrap intervals over names.\n"]
    for table in tables_of(results):
        parts.append(
            f"## {table.title}\n\n{table.note}\n\n{markdown_table(table.head, table.rows)}"
        )
    write_text(folder / "tables.md", "\n".join(parts))
    write_text(folder / "tables.csv", results_csv(results))
    for name, (_, svg) in figures_of(results).items():
        write_text(folder / "figures" / f"{name}.svg", svg)


def examples_of(texts: Sequence[JudgedText]) -> list[tuple[JudgedText, list]]:
    """The texts that lose most between FActScore and D-FActScore, with their people."""
    ranked = []
    for text in texts:
        pair = [factual_precision(text, name) for name in ("independent", "grouped")]
        if text.source == "automatic" and None not in pair and pair[0] > pair[1]:
            ranked.append((pair[1] - pair[0], text.id, text))
    ranked.sort(key=lambda entry: entry[:2])
    return [(text, people_of(text)) for _, _, text in ranked[:MAX_EXAMPLES]]


def _share(text: JudgedText, name: str) -> str:
    value = factual_precision(text, name)
    return "–" if value is None else f"{value:.2f}"


def page_context(file: ResultFile, folder: Path) -> dict:
    """What the page's template shows."""
    there = (folder / "texts.jsonl").is_file()
    texts = read_records(folder / "texts.jsonl", JudgedText) if there else []
    drawn = figures_of(file.results)
    return {
        "tables": tables_of(file.results),
        "examples": examples_of(texts),
        "precision": _share,
        "type_of": output_type,
        "marks": MARKS,
        "images": {
            title: base64.b64encode(svg.encode("utf-8")).decode() for title, svg in drawn.values()
        },
    }
