"""How metrics and defences agree with each other, and verdicts with the claims' labels."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from components.statistics import ratio
from eval.experiments.robustness.robustness_cells import (
    ALL,
    Cells,
    Text,
    Value,
    by_kind,
    metric_labels,
    verdict_names,
)
from eval.experiments.robustness.robustness_grid import NONE, TextScores
from eval.experiments.robustness.robustness_values import correlation, fisher
from eval.metrics.document import judged_of


def truth(rows: Sequence[TextScores], verdicts: Mapping[str, str], seed: int) -> Iterator[Value]:
    """``supported_if_true`` and ``supported_if_false``: how verdicts fit the claims' labels.

    The share of the claims with that label that are called supported, over all texts of a kind. A
    claim has the label of the claim with the same words in its text. Claims without a label, and
    with the verdict ``irrelevant`` or ``failed``, are not counted.
    """
    for metric in rows[0].metrics if rows else ():
        names = verdict_names(rows, metric, NONE, verdicts)
        for label, name in metric_labels(metric, names).items():
            judged: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
            for row in rows:
                truths = {claim.text: claim.label for claim in row.document.claims or []}
                outcome = row.metrics[metric]
                pairs = judged_of(outcome.claims, outcome.verdicts[NONE], [], None, name)
                for claim, verdict in pairs:
                    is_true = truths.get(claim.text)
                    if is_true in ("S", "NS") and verdict.label != "irrelevant":
                        kind = row.document.kind or "normal"
                        judged[kind, is_true].append((row.document.topic, verdict.label))
            for (kind, is_true), claims in judged.items():
                usable = [(topic, verdict) for topic, verdict in claims if verdict != "failed"]
                parts = np.array([float(verdict == "supported") for _, verdict in usable])
                value, ci95, n = ratio(parts, np.ones(len(parts)), [t for t, _ in usable], seed)
                yield {
                    "metric": "supported_if_true" if is_true == "S" else "supported_if_false",
                    "assessor": label,
                    "kind": kind,
                    "generator": ALL,
                    "n": n,
                    "failed": len(claims) - len(usable),
                    "value": value,
                    "ci95": ci95,
                }


def agreement(cells: Cells, kind: str, columns: Collection[str]) -> Iterator[Value]:
    """``pearson`` of the scores of honest texts between two metrics, and between two defences.

    Defences that differ in nothing but their entailment model give Core's Table 2, metrics Table 4.

    Args:
        columns: defences to compare.
    """
    scored = {
        place: {t.document.id: t for t in by_kind(texts).get(kind, [])}
        for place, texts in cells.items()
        if place[1] in columns
    }
    places = list(scored)
    for number, (metric, defence) in enumerate(places):
        for other_metric, other in places[number + 1 :]:
            if (metric == other_metric) == (defence == other):
                continue  # compare two metrics with one defence, or two defences of one metric
            pairs = _paired(scored[metric, defence], scored[other_metric, other])
            if len(pairs) < 3:
                continue
            value = correlation([(first.value, second.value) for first, second in pairs])
            topics = len({first.document.topic for first, _ in pairs})
            yield {
                "metric": "pearson",
                "assessor": metric,
                "selection": defence,
                "against": other if metric == other_metric else other_metric,
                "kind": kind,
                "generator": ALL,
                "n": topics,
                "failed": sum(first.failed + second.failed for first, second in pairs),
                "value": value,
                "ci95": fisher(value, topics),
            }


def _paired(first: Mapping[str, Text], second: Mapping[str, Text]) -> list[tuple[Text, Text]]:
    pairs = [(first[name], second[name]) for name in first if name in second]
    return [(a, b) for a, b in pairs if not math.isnan(a.value + b.value)]
