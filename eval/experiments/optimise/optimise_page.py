"""How the results of optimise are shown: tables and figures over the steps of training."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from eval.experiments.robustness.robustness_page import (
    OF_ALL,
    UNITS,
    excerpts,
    matrices,
    shown_results,
    summary,
)
from eval.report.declare import Figure, Page, Plot, Table, TextTable
from records import ResultFile

_STEP = {"assessor": "Metric", "kind": "Adversary", "variant": "Step"}
TABLES = [
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
        ("Excess inflation", "excess_inflation", ("assessor",)),
        ("Precision", "score", ("assessor",)),
        ("Subclaims of a text", "claims", ("assessor",)),
        ("Kept share", "kept_share", ("assessor",)),
        ("Different texts", "distinct_share", ()),
        ("Relevant sentences", "relevance", ()),
    )
]


def _tables(file: ResultFile, folder: Path) -> Iterator[TextTable]:
    of_steps = [
        row.model_copy(update={"kind": f"{row.kind}, step {row.variant}"})
        if row.metric in ("asr", "excess_inflation", "units_needed")
        else row
        for row in file.results
    ]
    yield from matrices(file.model_copy(update={"results": of_steps}))
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


PAGE = Page(
    "Does the defence hold under optimisation?",
    "The least step is the start of the training. n counts topics; brackets hold 95 % intervals "
    "over topics; claims that could not be judged are counted as failed and never scored.",
    [_tables],
    [_figures],
    summary,
    excerpts,
    lead_lines=1,
    terminal=OF_ALL | {"metric": ["worst_excess_inflation", "worst_asr"]},
)
