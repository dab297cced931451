"""The relation model experiment's tables, ROC curves and page, all from its run folder."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

import matplotlib
import numpy as np

from components.checkpoint import RELATIONS
from eval.experiments.factreasoner.relation_model_values import CURVES, JudgedPair
from eval.report.figures import COLOURS, LINES, STYLE, as_svg, new_axes, plain_label
from eval.report.tables import (
    TextTable,
    markdown_table,
    number_with_interval,
    plain,
    results_csv,
)
from records import Result, ResultFile, read_records, read_results, write_text

MAX_CORNERS = 400  # of a curve in a drawing
_NOTES = {
    "auroc": "Area under the ROC curve, 0.5 is chance. A curve against the opposite kind alone has "
    "pairs that differ in a few words of the hypothesis.",
    "auroc_difference": "Of two models on the same pairs.",
    "rates": "Share of the positives, and of the negatives, at or above a probability.",
    "called_so": "Share of the pairs of a kind whose likeliest relation it is.",
}


def tables_of(results: Sequence[Result]) -> list[TextTable]:
    """The tables of every file, in the order of the results."""
    found = []
    for domain in dict.fromkeys(row.domain for row in results):
        own = {(r.metric, r.kind, r.generator): r for r in results if r.domain == domain}
        first = next(iter(own.values()))
        counts = f"n = {first.n} documents, {first.failed} pairs failed."
        for metric, title in (
            ("auroc", "AUROC"),
            ("auroc_difference", "Differences of AUROC"),
            ("called_so", "Likeliest relation"),
        ):
            columns = list(RELATIONS) if metric == "called_so" else list(CURVES)
            rows = _rows(own, metric, columns)
            if rows:
                head = ["model", *columns]
                note = f"{_NOTES[metric]} {counts}"
                found.append(TextTable(f"{title}, {domain}", note, head, rows))
        rows = _rates(own)
        if rows:
            head = ["model", "curve", "probability", "true positives", "false positives"]
            note = f"{_NOTES['rates']} {counts}"
            found.append(TextTable(f"Thresholds, {domain}", note, head, rows))
    return found


def _rows(
    own: Mapping[tuple[str, str, str], Result], metric: str, columns: Sequence[str]
) -> list[list[str]]:
    models = dict.fromkeys(model for name, _, model in own if name == metric)
    return [
        [model, *(number_with_interval(own.get((metric, column, model))) for column in columns)]
        for model in models
    ]


def _rates(own: Mapping[tuple[str, str, str], Result]) -> list[list[str]]:
    rows = []
    for metric, curve, model in own:
        name, _, threshold = metric.partition("@")
        if name == "true_positive_rate":
            cells = (
                own[metric, curve, model],
                own[f"false_positive_rate@{threshold}", curve, model],
            )
            rows.append([model, curve, threshold, *map(number_with_interval, cells)])
    return rows


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


def curves_of(pairs: Sequence[JudgedPair]) -> dict[tuple[str, str], dict[str, tuple]]:
    """File and curve to each model's false and true positive rates.

    Pairs that a model failed on are left out for all models, as in the results.
    """
    found: dict[tuple[str, str], dict[str, tuple]] = {}
    for file in dict.fromkeys(pair.file for pair in pairs):
        by_model: dict[str, list[JudgedPair]] = {}
        for pair in pairs:
            if pair.file == file:
                by_model.setdefault(pair.model, []).append(pair)
        every = list(zip(*by_model.values(), strict=True))
        whole = [row for row in every if all(pair.p is not None for pair in row)]
        kinds = np.asarray([row[0].label for row in whole])
        for curve, (relation, others) in CURVES.items():
            chosen = np.isin(kinds, (relation, *others))
            positive = kinds[chosen] == relation
            if not positive.any() or positive.all():
                continue
            place = RELATIONS.index(relation)
            for column, model in enumerate(by_model):
                score = np.asarray([row[column].p[place] for row in whole])[chosen]
                found.setdefault((file, curve), {})[model] = roc(score, positive)
    return found


def figures_of(
    pairs: Sequence[JudgedPair], results: Sequence[Result]
) -> dict[str, tuple[str, str]]:
    """File name without its ending to a title and the SVG."""
    areas = {(r.domain, r.kind, r.generator): r for r in results if r.metric == "auroc"}
    found = {}
    for number, ((file, curve), lines) in enumerate(curves_of(pairs).items(), 1):
        title = f"ROC of {curve.replace('>', 'against')}, {file}"
        labels = {
            model: f"{model}: {number_with_interval(areas.get((file, curve, model)))}"
            for model in lines
        }
        name = f"{number:02}_{curve.replace(' > ', '_against_')}"
        found[name] = (title, draw_roc({labels[m]: points for m, points in lines.items()}, title))
    return found


def draw_roc(lines: Mapping[str, tuple[np.ndarray, np.ndarray]], title: str) -> str:
    """ROC curves in one square, a line a model, with the diagonal of chance."""
    with matplotlib.rc_context(STYLE):
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


# Files and the page


def write_tables_and_figures(folder: Path) -> None:
    """Write ``tables.md``, ``tables.csv`` and ``figures/*.svg`` into a run folder."""
    results = read_results(folder / "results.json").results
    parts = ["n counts documents; brackets hold 95 % bootstrap intervals over documents.\n"]
    for table in tables_of(results):
        rows = markdown_table(table.head, table.rows)
        parts.append(f"## {plain(table.title)}\n\n{table.note}\n\n{rows}")
    write_text(folder / "tables.md", "\n".join(parts))
    write_text(folder / "tables.csv", results_csv(results))
    drawn = figures_of(read_records(folder / "pairs.jsonl", JudgedPair), results)
    for old in (folder / "figures").glob("*.svg"):  # of a run with other options
        if old.stem not in drawn:
            old.unlink()
    for name, (_, svg) in drawn.items():
        write_text(folder / "figures" / f"{name}.svg", svg)


def page_context(file: ResultFile, folder: Path) -> dict:
    """What the page's template shows."""
    there = (folder / "pairs.jsonl").is_file()
    pairs = read_records(folder / "pairs.jsonl", JudgedPair) if there else []
    drawn = figures_of(pairs, file.results)
    return {
        "tables": tables_of(file.results),
        "left_out": {k: v for k, v in (file.provenance.get("left_out") or {}).items() if v},
        "images": {
            title: base64.b64encode(svg.encode("utf-8")).decode() for title, svg in drawn.values()
        },
    }
