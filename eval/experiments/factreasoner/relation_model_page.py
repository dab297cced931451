"""The relation model experiment's tables, ROC curves and page, all from its run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np

from components.checkpoint import RELATIONS
from eval.experiments.factreasoner.relation_model_values import CURVES, Curve, JudgedPair
from eval.report.declare import Page, TextTable, cell
from eval.report.figures import (
    COLOURS,
    LINES,
    Drawing,
    as_svg,
    drawing,
    new_axes,
    plain_label,
)
from eval.report.tables import by, pivot
from records import Result, ResultFile, read_records

MAX_CORNERS = 400  # of a curve in a drawing
_NOTES = {
    "auroc": "Area under the ROC curve, 0.5 is chance. A curve against the opposite kind alone has "
    "pairs that differ in a few words of the hypothesis.",
    "auroc_difference": "Of two models on the same pairs.",
    "rates": "Share of the positives, and of the negatives, at or above a probability.",
    "called_so": "Share of the pairs of a kind whose likeliest relation it is.",
}


def tables_of(results: Sequence[Result], drawn: Mapping[str, Sequence[str]]) -> list[TextTable]:
    """The tables of every file, in the order of the results.

    Args:
        drawn: file to the names of its curves' drawings.
    """
    found = []
    for domain in dict.fromkeys(row.domain for row in results):
        own = [row for row in results if row.domain == domain]
        counts = f"n = {own[0].n} documents, {own[0].failed} pairs failed."
        whole = [row for row in own if row.metric == "auroc" and row.against is None]
        pairs = [row for row in own if row.metric == "auroc" and row.against is not None]
        said = [row for row in own if row.metric == "called_so"]
        for name, title, rows, kinds in (
            ("auroc", "AUROC", whole, [curve.name for curve in CURVES]),
            ("auroc_difference", "Differences of AUROC", pairs, [curve.name for curve in CURVES]),
            ("called_so", "Likeliest relation", said, RELATIONS),
        ):
            every = {(kind,): kind for kind in kinds}
            heads, found_rows = pivot(rows, ["assessor", "against"], ["kind"], every)
            lines = [
                [" − ".join(filter(None, models)), *map(cell, cells)]
                for models, cells in found_rows
            ]
            figures = drawn.get(domain, ()) if name == "auroc" else ()
            note, head = f"{_NOTES[name]} {counts}", ["model", *heads]
            found.append(TextTable(f"{title}, {domain}", note, head, lines, figures))
        rates = {("true_positive_rate",): "true positives"}
        rates |= {("false_positive_rate",): "false positives"}
        heads, rows = pivot(own, ["assessor", "kind", "variant"], ["metric"], rates)
        lines = [[m, curve, f"{at:g}", *map(cell, cells)] for (m, curve, at), cells in rows]
        head = ["model", "curve", "probability", *heads]
        note = f"{_NOTES['rates']} {counts}"
        found.append(TextTable(f"Thresholds, {domain}", note, head, lines))
    return [table for table in found if table.rows]


# Figures


def roc(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates, from (0, 0) to (1, 1), a corner a distinct score.

    Args:
        scores: shape (n,), larger for positives.
        positive: bools of shape (n,), some of them true and some false.
    """
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)  # of equal scores
    hits = np.cumsum(positive[order])[last]
    misses = last + 1 - hits
    true, false = hits / hits[-1], misses / misses[-1]
    return np.append(0.0, false), np.append(0.0, true)


def curves_of(pairs: Sequence[JudgedPair]) -> dict[tuple[str, Curve], dict[str, tuple]]:
    """File and curve to each model's false and true positive rates.

    Pairs that a model failed on are left out for all models, as in the results.
    """
    found: dict[tuple[str, Curve], dict[str, tuple]] = {}
    for file in dict.fromkeys(pair.file for pair in pairs):
        by_model: dict[str, list[JudgedPair]] = {}
        for pair in pairs:
            if pair.file == file:
                by_model.setdefault(pair.model, []).append(pair)
        every = list(zip(*by_model.values(), strict=True))
        whole = [row for row in every if all(pair.p is not None for pair in row)]
        kinds = np.asarray([row[0].label for row in whole])
        for curve in CURVES:
            chosen = np.isin(kinds, (curve.relation, *curve.others))
            positive = kinds[chosen] == curve.relation
            if not positive.any() or positive.all():
                continue
            place = RELATIONS.index(curve.relation)
            for column, model in enumerate(by_model):
                score = np.asarray([row[column].p[place] for row in whole])[chosen]
                found.setdefault((file, curve), {})[model] = roc(score, positive)
    return found


def figures_of(pairs: Sequence[JudgedPair], results: Sequence[Result]) -> dict[str, Drawing]:
    """File name without its ending to the drawing."""
    whole = [row for row in results if row.metric == "auroc" and row.against is None]
    areas = by(whole, "domain", "kind", "assessor")
    found = {}
    for number, ((file, curve), lines) in enumerate(curves_of(pairs).items(), 1):
        title = f"ROC of {curve.relation} against {curve.negatives}, {file}"
        labels = {
            model: f"{model}: {cell(areas.get((file, curve.name, model)))}" for model in lines
        }
        svg = draw_roc({labels[model]: points for model, points in lines.items()}, title)
        found[_name(number, curve)] = Drawing(title, svg)
    return found


def _name(number: int, curve: Curve) -> str:
    return f"{number:02}_{curve.relation}_against_{curve.negatives}"


def draw_roc(lines: Mapping[str, tuple[np.ndarray, np.ndarray]], title: str) -> str:
    """ROC curves in one square, a line a model, with the diagonal of chance."""
    with drawing():
        figure, axes = new_axes(width=4.4, ylabel="true positive rate")
        axes.set_xlabel("false positive rate")
        axes.set_title(plain_label(title), fontsize=10)
        axes.plot([0, 1], [0, 1], color="#7A7A7A", linewidth=0.8, linestyle=(0, (1, 3)))
        looks = zip(lines.items(), cycle(COLOURS), cycle(LINES), strict=False)
        for (name, (false, true)), colour, style in looks:
            step = max(1, len(false) // MAX_CORNERS)
            kept = np.append(np.arange(0, len(false) - 1, step), len(false) - 1)
            look = {"color": colour, "linestyle": style, "linewidth": 1.6}
            axes.plot(false[kept], true[kept], label=plain_label(name), **look)
        axes.set_aspect("equal")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        return as_svg(figure, axes, inside="lower right")


def _page_tables(file: ResultFile, folder: Path) -> list[TextTable]:
    """Areas, differences, likeliest relations and rates at thresholds."""
    names: dict[str, list[str]] = {}
    for number, (domain, curve) in enumerate(curves_of(_pairs(folder)), 1):
        names.setdefault(domain, []).append(_name(number, curve))
    return tables_of(file.results, names)


def _page_figures(file: ResultFile, folder: Path) -> dict[str, Drawing]:
    """The ROC curves."""
    return figures_of(_pairs(folder), file.results)


def _pairs(folder: Path) -> list[JudgedPair]:
    there = (folder / "pairs.jsonl").is_file()
    return read_records(folder / "pairs.jsonl", JudgedPair) if there else []


RelationModelPage = Page(
    "Which relations does the model see?",
    "",
    [_page_tables],
    [lambda file, folder: _page_figures(file, folder).values()],
)
