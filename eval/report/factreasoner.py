"""The FactReasoner experiment's tables and page, all from its run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from eval.metrics.document import Scored
from eval.report.graph import Picture, picture_of
from eval.report.text_tables import (
    TextTable,
    markdown_table,
    number_with_interval,
    plain,
    results_csv,
)
from records import (
    Result,
    ResultFile,
    UserError,
    first_fault,
    iter_rows,
    read_results,
    write_text,
)

# Titles, what stands below them, and metrics with the heading of their column.
_SCORES = {
    "supported": "#S",
    "not_supported": "#NS",
    "contradicted": "#C",
    "undecided": "#U",
    "precision": "Pr",
    "recall_at_k": "R@K",
    "f1_at_k": "F1@K",
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
    "brier": "Brier",
    "ece": "ECE",
}
_NOTES = {
    "scores": "Mean ± standard deviation over documents. #S, #NS, #C and #U are the numbers of "
    "claims of a document that are supported, not supported, contradicted and undecided. E is Eq. "
    "1 with the logarithm of base 10 (0.1505 where all P = 0.5).",
    "labels": "Against the claims’ labels, positive is supported: mean ± standard deviation over "
    "documents, or over the claims of all documents (micro, balanced accuracy). Where all claims "
    "are true, accuracy is the share that is called supported.",
    "probabilities": "Of assessors that give probabilities: mean ± standard deviation over "
    "documents; Brier and ECE against the claims’ labels, over the claims of all documents. Graded "
    "Pr is the mean P. E is as low where all P = 0 as where all are 1; −ln P tells them apart.",
    "tests": "A > B: A is better than B. p is that of the one-sided paired t-test over documents, "
    "Holm’s the one corrected over all lines of the table; of balanced accuracy and Brier, over "
    "the claims that both judged, there is an interval only. Dropped are documents, or claims, "
    "that one of the two could not judge.",
}
_NAMES = _SCORES | _AGAINST_LABELS | _PROBABILITIES
_DIGITS = {"supported": 1, "not_supported": 1, "contradicted": 1, "undecided": 1}


@dataclass(frozen=True)
class Part:
    """One set of documents with one source of evidence: its tables and its tests."""

    title: str
    tables: list[TextTable]
    tests: list[TextTable]


def parts_of(file: ResultFile) -> list[Part]:
    """A part a set and source of evidence, in the order of the results."""
    found = []
    ks = file.provenance.get("k") or {}
    for domain, group in dict.fromkeys((row.domain, row.group) for row in file.results):
        own = {
            (r.metric, r.kind): r for r in file.results if (r.domain, r.group) == (domain, group)
        }
        # The documents' own passages need no name.
        place = domain if group == "given" else f"{domain}, {group}"
        k = f" K = {ks[place]}." if place in ks else ""
        tables = [
            _table(f"Scores, {place}", _NOTES["scores"] + k, _SCORES, own),
            _table(f"Against labels, {place}", _NOTES["labels"], _AGAINST_LABELS, own),
            _table(f"Probabilities, {place}", _NOTES["probabilities"], _PROBABILITIES, own),
        ]
        tests = [_tests(metric, place, own) for metric in _NAMES]
        found.append(Part(place, [t for t in tables if t.rows], [t for t in tests if t.rows]))
    return found


def _table(
    title: str, note: str, names: Mapping[str, str], own: Mapping[tuple[str, str], Result]
) -> TextTable:
    """Assessors in rows, those metrics in columns that any of them has."""
    columns = [metric for metric in names if any(metric == name for name, _ in own)]
    assessors = list(dict.fromkeys(kind for name, kind in own if name in columns))
    head = ["assessor", *(names[metric] for metric in columns), "n", "failed"]
    rows = []
    for kind in assessors:
        cells = [own.get((metric, kind)) for metric in columns]
        spreads = [own.get((f"sd:{metric}", kind)) for metric in columns]
        there = [cell for cell in cells if cell is not None]
        numbers = [row.n for row in spreads if row is not None] or [row.n for row in there]
        texts = [
            _cell(metric, cell, spread)
            for metric, cell, spread in zip(columns, cells, spreads, strict=True)
        ]
        rows.append([kind, *texts, str(max(numbers)), str(max(row.failed for row in there))])
    return TextTable(title, note, head, rows)


def _cell(metric: str, row: Result | None, spread: Result | None) -> str:
    digits = _DIGITS.get(metric, 3)
    value, _, ends = number_with_interval(row, digits).partition(" ")
    sd = f"± {spread.value:.{digits}f}" if spread is not None and spread.value is not None else ""
    return " ".join(filter(None, (value, sd, ends)))


def _tests(metric: str, place: str, own: Mapping[tuple[str, str], Result]) -> TextTable:
    rows = []
    for (name, kind), row in own.items():
        if name == f"difference:{metric}":
            ps = [own.get((f"{title}:{metric}", kind)) for title in ("p", "p_holm")]
            cells = [number_with_interval(row), *map(_p, ps), str(row.n), str(row.failed)]
            rows.append([kind, *cells])
    head = ["A > B", "difference", "p", "Holm’s p", "n", "dropped"]
    return TextTable(f"{_NAMES[metric]}, {place}", "", head, rows)


def _p(row: Result | None) -> str:
    if row is None or row.value is None:
        return "–"
    return f"{row.value:.4f}" if row.value >= 1e-4 else f"{row.value:.1e}"


# Files and the page


def markdown(file: ResultFile) -> str:
    """All tables as Markdown."""
    head = "n counts documents; brackets hold 95 % bootstrap intervals over topics. failed counts "
    lines = [head + "claims that could not be judged; they are in no value.\n"]
    for part in parts_of(file):
        for table in part.tables:
            rows = markdown_table(table.head, table.rows)
            lines.append(f"## {plain(table.title)}\n\n{table.note}\n\n{rows}")
        if part.tests:
            lines.append(f"## Tests, {plain(part.title)}\n\n{_NOTES['tests']}\n")
        for table in part.tests:
            lines.append(f"### {plain(table.title)}\n\n{markdown_table(table.head, table.rows)}")
    return "\n".join(lines)


def write_tables(folder: Path) -> None:
    """Write ``tables.md`` and ``tables.csv`` into a run folder."""
    file = read_results(folder / "results.json")
    write_text(folder / "tables.md", markdown(file))
    write_text(folder / "tables.csv", results_csv(file.results))


def read_picture(path: Path, document: str | None) -> tuple[str, Picture] | None:
    """The topic and the graph of one document: the named one, or the first that has a graph.

    Raises:
        UserError: no graph of the document that was asked for, or a line that is no document.
    """
    if path.is_file() and path.stat().st_size:
        for line, row in iter_rows(path):
            if document not in (None, (row.get("document") or {}).get("id")):
                continue
            try:
                scored = Scored.model_validate(row)
            except ValidationError as error:
                raise first_fault(f"{path}:{line}", error) from None
            if picture := picture_of(scored):
                return f"{scored.document.topic} ({row.get('set')}, {row.get('evidence')})", picture
    if document is not None:
        raise UserError(f"{path}: no document {document!r} that FactReasoner judged; give its id")
    return None


def page_context(file: ResultFile, folder: Path, document: str | None = None) -> dict:
    """What the page's template shows.

    Args:
        file: the results.
        folder: of the run.
        document: id of the document whose graph is drawn; by default the first that has one.
    """
    topic, picture = read_picture(folder / "scored.jsonl", document) or (None, None)
    return {
        "parts": parts_of(file),
        "test_note": _NOTES["tests"],
        "topic": topic,
        "picture": picture,
    }
