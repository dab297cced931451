"""The FactReasoner experiment's tables and page, all from its run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eval.report.declare import Cell, Page, TextTable, cell, interval, number
from eval.report.tables import by
from records import Result, ResultFile

# Titles, what stands below them, and metrics with the heading of their column.
_SCORES = {
    "supported": "#S",
    "not_supported": "#NS",
    "contradicted": "#C",
    "undecided": "#U",
    "precision": "Pr",
    "recall_at_k": "R@K",
    "f1_at_k": "F1@K",
    "f1_at_k_responding": "F1@K, responding",
    "e_measure": "E",
}
_AGAINST_LABELS = {
    "f1": "F1",
    "f1_micro": "F1, micro",
    "accuracy": "accuracy",
    "accuracy_micro": "accuracy, micro",
    "balanced_accuracy": "balanced accuracy",
    "precision_mae": "MAE of Pr",
}
_PROBABILITIES = {
    "graded_precision": "graded Pr",
    "e_measure": "E",
    "binary_entropy": "entropy, bits",
    "negative_log_p": "−ln P, nats",
    "brier_of_texts": "Brier of texts",
    "brier": "Brier",
    "ece": "ECE",
}
_NOTES = {
    "scores": "Mean ± standard deviation over documents. #S, #NS, #C and #U are the numbers of "
    "claims of a document that are supported, not supported, contradicted and undecided. E is Eq. "
    "1 with the logarithm of base 10 (0.1505 where all P = 0.5). A document that does not respond "
    "has 0 in R@K and F1@K, and is left out of F1@K, responding.",
    "labels": "Against the claims’ labels, positive is supported: mean ± standard deviation over "
    "documents, or over the claims of all documents (micro, balanced accuracy). Where all claims "
    "are true, accuracy is the share that is called supported.",
    "probabilities": "Of assessors that give probabilities: mean ± standard deviation over "
    "documents; Brier and ECE against the claims’ labels, over the claims of all documents, Brier "
    "of texts over those of a document. Graded Pr is the mean P. "
    "E is as low where all P = 0 as where all are 1; −ln P tells them apart.",
    "tests": "A > B: A is better than B. p is that of the one-sided paired t-test over documents, "
    "Holm’s the one corrected over all lines of the table; of balanced accuracy and Brier, over "
    "the claims that both judged, there is an interval only. Dropped are documents of which one "
    "of the two has no value (it could judge no claim; F1: none is true or called supported), or "
    "claims that one of them could not judge.",
}
_NAMES = _SCORES | _AGAINST_LABELS | _PROBABILITIES
GIVEN = "given"
_COUNTS = ("supported", "not_supported", "contradicted", "undecided")


def tables_of(file: ResultFile) -> list[TextTable]:
    """Those of each set and source of evidence, in the order of the results; its tests last."""
    found = []
    ks = file.provenance.get("k") or {}
    for domain, group in dict.fromkeys((row.domain, row.group) for row in file.results):
        rows = [row for row in file.results if (row.domain, row.group) == (domain, group)]
        own = by(rows, "metric", "assessor", "against", "variant")
        # The documents' own passages need no name.
        place = domain if group == GIVEN else f"{domain}, {group}"
        k = f" K = {ks[place]}." if place in ks else ""
        tables = [
            _table(f"Scores, {place}", _NOTES["scores"] + k, _SCORES, own),
            _table(f"Against labels, {place}", _NOTES["labels"], _AGAINST_LABELS, own),
            _table(f"Probabilities, {place}", _NOTES["probabilities"], _PROBABILITIES, own),
        ]
        tests = [table for metric in _NAMES if (table := _tests(metric, place, own)).rows]
        head = [TextTable(f"Tests, {place}", _NOTES["tests"])] if tests else []
        found += [*(table for table in tables if table.rows), *head, *tests]
    return found


def _table(
    title: str, note: str, names: Mapping[str, str], own: Mapping[tuple, Result]
) -> TextTable:
    means = {key[:2]: row for key, row in own.items() if key[2:] == (None, None)}
    columns = [metric for metric in names if any(metric == name for name, _ in means)]
    rows = []
    for assessor in dict.fromkeys(whose for name, whose in means if name in columns):
        cells = [means.get((metric, assessor)) for metric in columns]
        spreads = [own.get((metric, assessor, None, "sd")) for metric in columns]
        there = [row for row in cells if row is not None]
        most = max([row.n for row in spreads if row is not None] or [row.n for row in there])
        shown = [_cell(*three, most) for three in zip(columns, cells, spreads, strict=True)]
        counts = [str(most), str(max(row.failed for row in there))]
        rows.append([assessor, *shown, *counts])
    head = ["assessor", *(names[metric] for metric in columns), "n", "failed"]
    return TextTable(title, note, head, rows)


def _cell(metric: str, row: Result | None, spread: Result | None, most: int) -> Cell:
    if row is None:
        return Cell("–")
    unit = "tenth" if metric in _COUNTS else "score"
    sd = f" ± {number(spread.value, unit)}" if spread and spread.value is not None else ""
    note = f"n = {spread.n}" if spread and spread.n != most else ""
    return Cell(number(row.value, unit) + sd, interval(row, unit), note)


def _tests(metric: str, place: str, own: Mapping[tuple, Result]) -> TextTable:
    rows = []
    for (name, one, other, variant), row in own.items():
        if (name, variant) == (metric, None) and other is not None:
            ps = [own.get((metric, one, other, title)) for title in ("p", "p_holm")]
            counts = [str(row.n), str(row.failed)]
            rows.append([f"{one} > {other}", cell(row), *map(_p, ps), *counts])
    head = ["A > B", "difference", "p", "Holm’s p", "n", "dropped"]
    return TextTable(f"{_NAMES[metric]}, {place}", "", head, rows, within=True)


def _p(row: Result | None) -> str:
    if row is None or row.value is None:
        return "–"
    return f"{row.value:.4f}" if row.value >= 1e-4 else f"{row.value:.1e}"


def _page_tables(file: ResultFile, folder: Path) -> list[TextTable]:
    """Of every set and source of evidence."""
    return tables_of(file)


FactReasonerPage = Page("FactReasoner and other assessors", "", [_page_tables], documents=True)
