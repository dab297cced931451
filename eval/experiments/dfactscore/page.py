"""The D-FActScore experiment's tables, figures and page, all from its run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from eval.experiments.dfactscore.texts import (
    TYPES,
    JudgedText,
    factual_precision,
    people_of,
)
from eval.report.declare import Cell, Page, TextTable, cell, number
from eval.report.figures import Drawing, Value, bars
from eval.report.tables import by, pivot
from records import Result, ResultFile

MAX_EXAMPLES = 30
MARKS = {True: "✓", False: "✗", None: "?"}

# Metric and variant to the head of its column.
_SCORES = {
    ("factual_precision", "independent"): "FActScore",
    ("factual_precision", "grouped"): "D-FActScore",
}
_PEOPLE = {
    ("gap", None): "difference",
    ("biographies", None): "biographies",
    ("entities", None): "entities",
    ("linked_people", None): "linked people",
}
_RECALL = {("citation_recall", None): "citation recall"}
_VALUES = {
    **_SCORES,
    **_PEOPLE,
    ("respond_ratio", None): "respond ratio",
    **_RECALL,
    ("citation_precision", None): "citation precision",
}
_TYPES = {("output_type", name): name for name in TYPES}
_VERDICTS = {
    ("balanced_accuracy", "independent"): "FActScore’s verdicts",
    ("balanced_accuracy", "grouped"): "D-FActScore’s verdicts",
    ("balanced_accuracy", "several_people"): "several people",
    ("linked_alike", None): "title alike",
    ("citation_auroc", None): "citations, AUROC",
    ("citation_accuracy", None): "citations, accuracy",
}
_VIEWS = {
    ("most_viewed", None, None): "tells most of the most-viewed person",
    ("most_viewed_by_chance", None, None): "by chance",
    ("views_of_the_person", None, None): "log10(1 + views)",
    ("spearman_of_factual_precision", "grouped", "views"): "views and D-FActScore",
    ("spearman_of_gap", None, "views"): "views and difference",
}
_PEARSON = {f"pearson_of_{metric}" for metric, _ in _SCORES | _PEOPLE | _RECALL}
_WHOSE = {"file": "the file’s", "people": "people’s"}


def tables_of(results: Sequence[Result]) -> list[TextTable]:
    """The tables that have a value, in reading order."""
    found = [
        _by_source(
            results,
            _with(_VALUES),
            "FActScore, D-FActScore, people and citations",
            "Tables 3, 4 and 6 of the paper. Automatic: this run’s verifier. File: the verdicts "
            "that the texts came with. Biographies: groups of claims. Entities: distinct pages "
            "where each claim is linked by itself. Linked people: distinct pages of the groups, "
            "the least number of biographies where the groups are not told (released verdicts).",
            ["01_scores"],
        ),
        _by_source(
            results,
            _with(_TYPES),
            "Types of output",
            "Shares of the texts that respond (section 2.4). Merged: one biography whose claims "
            "only several people’s pages support. Kept apart: several biographies, several people. "
            "Split: several biographies of one person. Nobody: no claim is supported.",
            ["02_output_types"],
        ),
    ]
    for source, whose in _WHOSE.items():
        found.append(
            _by_source(
                results,
                _with(_VERDICTS, source),
                f"Automatic verdicts against {whose}",
                "Balanced accuracy, but for the last three columns: share of the claims that are "
                "supported there whose page is the same here; AUROC and accuracy of the citations’ "
                "entailment.",
            )
        )
        for name in ("pearson", "spearman"):
            compared = _SCORES | _PEOPLE | _RECALL
            columns = {(f"{name}_of_{m}", v): head for (m, v), head in compared.items()}
            title = f"{name.capitalize()} correlation with {whose}, text by text"
            note = "Of the values of the texts."
            found.append(_by_source(results, _with(columns, source), title, note))
    note = (
        "Section 5.3. The first two columns: of texts with one biography where several people of "
        "the name were retrieved; the others: of all whose person’s page has views. "
        "The last two columns are Spearman correlations."
    )
    found.append(_by_source(results, _VIEWS, "Page views", note))
    return [table for table in found if table.rows]


def reported_of(heads: Mapping[str, Mapping[str, float]]) -> list[TextTable]:
    """What the files say of themselves, over all the texts that their authors had."""
    columns = list(dict.fromkeys(name for own in heads.values() for name in own))
    rows = [
        [generator, *(number(own.get(name)) for name in columns)]
        for generator, own in heads.items()
    ]
    note = "The values that stand in the files, by their authors’ codes; not computed here."
    return [TextTable("As the files report", note, ["generator", *columns], rows)] if rows else []


def _with(columns: Mapping[tuple, str], against: str | None = None) -> dict[tuple, str]:
    return {(*name, against): head for name, head in columns.items()}


def _by_source(
    results: Sequence[Result],
    columns: Mapping[tuple, str],
    title: str,
    note: str,
    figures: Sequence[str] = (),
) -> TextTable:
    heads, rows = pivot(results, ["generator", "kind"], ["metric", "variant", "against"], columns)
    order = list(dict.fromkeys(place[0] for place, _ in rows))
    rows.sort(key=lambda row: order.index(row[0][0]))  # stable: sources as the run has them
    cells = [[*place, *map(_cell, own)] for place, own in rows]
    return TextTable(title, note, ["generator", "source", *heads], cells, figures)


def _cell(row: Result | None) -> Cell:
    return cell(row, note="n = {n}, {failed} failed" if row and row.failed else "n = {n}")


def figures_of(results: Sequence[Result]) -> dict[str, Drawing]:
    """FActScore and D-FActScore, and the types of output, by generator."""
    own = by(
        [row for row in results if row.against is None], "metric", "variant", "kind", "generator"
    )
    every = list(dict.fromkeys((r.kind, r.generator) for r in results))
    generators = list(dict.fromkeys(who for kind, who in every if kind == "automatic"))
    generators = generators or list(dict.fromkeys(who for _, who in every))  # given verdicts alone
    found, scores = {}, {}
    for kind in ("automatic", *_WHOSE):
        for name, head in _SCORES.items():
            cells = [own.get((*name, kind, generator)) for generator in generators]
            if any(cells):
                scores[f"{head}, {kind}"] = [_value(one) for one in cells]
    if scores:
        title = "FActScore and D-FActScore by generator"
        found["01_scores"] = Drawing(title, bars(scores, generators, "supported claims"))
    shares = {
        generator: [_value(own.get((*name, "automatic", generator))) for name in _TYPES]
        for generator in generators
    }
    if any(value is not None for own_shares in shares.values() for value, _ in own_shares):
        svg = bars(shares, list(_TYPES.values()), "share of the texts")
        found["02_output_types"] = Drawing("Types of output by generator", svg)
    return found


def _value(row: Result | None) -> Value:
    return (None, None) if row is None else (row.value, row.ci95)


def examples_of(texts: Sequence[JudgedText]) -> list[tuple[JudgedText, list]]:
    """The texts that lose most between FActScore and D-FActScore, with their people."""
    judged = {text.source for text in texts}
    source = next((name for name in ("automatic", "file", "people") if name in judged), None)
    ranked = []
    for text in texts:
        pair = [factual_precision(text, name) for name in ("independent", "grouped")]
        if text.source == source and None not in pair and pair[0] > pair[1]:
            ranked.append((pair[1] - pair[0], text.id, text))
    ranked.sort(key=lambda entry: entry[:2])
    return [(text, people_of(text)) for _, _, text in ranked[:MAX_EXAMPLES]]


def _share(text: JudgedText, name: str) -> str:
    value = factual_precision(text, name)
    return "–" if value is None else f"{value:.2f}"


def _page_tables(file: ResultFile, folder: Path) -> list[TextTable]:
    """By source, and of one source against another."""
    return tables_of(file.results) + reported_of(file.provenance.get("reported", {}))


def _page_figures(file: ResultFile, folder: Path) -> dict[str, Drawing]:
    """Scores and types of output."""
    return figures_of(file.results)


DFActScorePage = Page(
    "Whose facts are these?",
    "",
    [_page_tables],
    [lambda file, folder: _page_figures(file, folder).values()],
)
