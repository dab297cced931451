"""How the results of optimise are shown: tables and figures over the steps of training."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from eval.experiments.optimise.optimise_values import START
from eval.experiments.robustness.robustness_page import (
    NO_DEFENCE,
    UNITS,
    excerpts,
    shown_results,
    signed,
)
from eval.report.declare import Figure, Page, Plot, Table, TextTable
from records import Result, ResultFile

_STEP = {"assessor": "Metric", "kind": "Adversary", "variant": "Step"}
TABLES = [
    Table(
        "Gain",
        _STEP,
        ("against", "selection"),
        {"gain": "Gain"},
        "Precision of a step’s texts minus that of the first step’s (start), and of honest texts, "
        "paired by topic. Brackets hold 95 % t intervals, not corrected for the number of steps.",
    ),
    Table(
        "Scores",
        _STEP,
        ("metric", "selection"),
        {
            "score": "Precision",
            "claims": "Subclaims",
            "kept_share": "Kept",
            "respond_ratio": "Texts that respond",
        },
        "Mean share of supported subclaims; mean number of subclaims of a text that responds, with "
        "a defence of those it keeps; mean share of a text’s subclaims that a defence keeps.",
        unit=UNITS,
    ),
    Table(
        "The texts",
        {"kind": "Adversary", "variant": "Step"},
        metrics={"distinct_share": "Different texts", "relevance": "Relevant sentences"},
        note="Of the texts that respond the share of different ones, the topic’s name aside; where "
        "a judge is configured, the mean share of a text’s sentences that are relevant.",
        unit="share",
    ),
    Table(
        "Best of N",
        {"assessor": "Metric", "selection": "Defence", "kind": "Adversary", "variant": "N"},
        ("metric", "against"),
        {"proxy": "Proxy", "gold": "Gold F1", "transfer": "Transfer"},
        "Of N texts on a topic the best by the metric with the defence: this score, gold F1, and "
        "its score by the other metrics. N = 1 is a random text. Expectation over all subsets of N "
        "texts; brackets hold 95 % bootstrap intervals over topics.",
    ),
]
_BEST_OF = Figure(
    "Best of N",
    "variant",
    ("metric", "selection"),
    {"proxy": "Proxy", "gold": "Gold F1"},
    each=("assessor",),
    label="score",
    kind="lines",
)
FIGURES = [
    Figure(title, "variant", ("kind", "selection"), {metric: title}, {}, each, kind="lines")
    for title, metric, each in (
        ("Precision", "score", ("assessor",)),
        ("Subclaims of a text", "claims", ("assessor",)),
        ("Kept share", "kept_share", ("assessor",)),
        ("Different texts", "distinct_share", ()),
        ("Relevant sentences", "relevance", ()),
    )
]


def _tables(file: ResultFile, folder: Path) -> Iterator[TextTable]:
    rows = shown_results(file)
    yield from (written for table in TABLES if (written := table.of(rows)).rows)


def _figures(file: ResultFile, folder: Path) -> Iterator[Plot]:
    rows = shown_results(file)
    for figure in FIGURES:
        yield from (replace(plot, x="step of training") for plot in figure.of(rows))
    # The divergence of the best of N from a random text (2210.10760, section 2.3).
    best = [row for row in rows if row.metric in _BEST_OF.metrics]
    best = [
        row.model_copy(update={"variant": math.log(row.variant) - 1 + 1 / row.variant})
        for row in best
    ]
    yield from (replace(plot, x="log N − (N−1)/N, nats") for plot in _BEST_OF.of(best))


def _summary(file: ResultFile) -> Iterator[str]:
    most: dict[tuple, dict[str, Result]] = {}
    for row in shown_results(file):
        if row.metric == "gain" and row.against == START and row.value is not None:
            gains = most.setdefault((row.assessor, row.kind), {})
            if row.selection not in gains or row.value > gains[row.selection].value:
                gains[row.selection] = row
    for (metric, adversary), gains in most.items():
        parts = [
            f"{'' if defence == NO_DEFENCE else f'with {defence} '}{signed(row)} "
            f"at step {row.variant}"
            for defence, row in gains.items()
        ]
        yield f"{metric}, {adversary}: largest gain over the start {'; '.join(parts)}."


PAGE = Page(
    "Does the defence hold under optimisation?",
    "The least step is the start of the training. n counts topics; brackets hold 95 % intervals "
    "over topics; claims that could not be judged are counted as failed and never scored.",
    [_tables],
    [_figures],
    lambda file: list(_summary(file)),
    excerpts,
    terminal={"metric": "gain", "against": START},
)
