"""How metrics and defences agree with each other, and with what is known of the claims."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from components.statistics import ratio
from eval.experiments.robustness.robustness_grid import Row
from eval.experiments.robustness.robustness_values import (
    ALL,
    Cells,
    Text,
    Value,
    by_k,
    by_kind,
    correlation,
    fisher,
    label_of,
    names_of,
)
from eval.metrics.document import judged_of


def truth(rows: Sequence[Row], seed: int) -> Iterator[Value]:
    """``supported_if_true`` and ``supported_if_false``: how a metric's verdicts fit known labels.

    The share of the claims of that label, of all texts of a kind, that are called supported. A
    claim has the label of the claim of its text that has the same words; others do not count, nor
    do, as in factual precision, those whose verdict is ``irrelevant`` or ``failed``.
    """
    for metric in rows[0].metrics if rows else ():
        names = names_of(row.metrics[metric] for row in rows)
        for name in names:
            found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
            for row in rows:
                labels = {claim.text: claim.label for claim in row.document.claims or []}
                judged = row.metrics[metric]
                for claim, verdict in judged_of(judged.claims, judged.verdicts, [], None, name):
                    label = labels.get(claim.text)
                    if label in ("S", "NS") and verdict.label != "irrelevant":
                        kind = row.document.kind or "normal"
                        found[kind, label].append((row.document.topic, verdict.label))
            for (kind, label), own in found.items():
                usable = [(topic, said) for topic, said in own if said != "failed"]
                parts = np.array([float(said == "supported") for _, said in usable])
                value, ci95, n = ratio(parts, np.ones(len(parts)), [t for t, _ in usable], seed)
                yield {
                    "metric": "supported_if_true" if label == "S" else "supported_if_false",
                    "assessor": label_of(metric, name, names),
                    "kind": kind,
                    "generator": ALL,
                    "n": n,
                    "failed": len(own) - len(usable),
                    "value": value,
                    "ci95": ci95,
                }


def agreement(cells: Cells, kind: str) -> Iterator[Value]:
    """``pearson`` of the texts' precision between any two metrics, and any two defences.

    Defences that differ in their entailment model alone give Table 2.
    """
    scored = {
        place: {t.document.id: t for t in by_kind(texts).get(kind, [])}
        for place, texts in cells.items()
        if not by_k(texts)
    }
    places = list(scored)
    for index, (metric, defence) in enumerate(places):
        for other_metric, other in places[index + 1 :]:
            if (metric == other_metric) == (defence == other):
                continue  # both differ, or neither
            pairs = _paired(scored[metric, defence], scored[other_metric, other])
            if len(pairs) < 3:
                continue
            value = correlation([(one.value, two.value) for one, two in pairs])
            topics = len({one.document.topic for one, _ in pairs})
            yield {
                "metric": "pearson",
                "assessor": metric,
                "selection": defence,
                "against": other if metric == other_metric else other_metric,
                "kind": kind,
                "generator": ALL,
                "n": topics,
                "failed": sum(one.score.failed + two.score.failed for one, two in pairs),
                "value": value,
                "ci95": fisher(value, topics),
            }


def _paired(first: Mapping[str, Text], second: Mapping[str, Text]) -> list[tuple[Text, Text]]:
    pairs = [(first[i], second[i]) for i in first if i in second]
    return [(a, b) for a, b in pairs if not math.isnan(a.value + b.value)]
