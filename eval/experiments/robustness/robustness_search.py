"""An adaptive attacker: the best text of each topic under one metric with one defence.

It picks among all texts that are worse by gold: all attacks and all their variants. A pick is the
maximum of many scores: its gain under its target is what the attacker reaches, not an estimate for
a new text. Topics stay the units of all tests.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from components.statistics import t_interval
from eval.experiments.robustness.robustness_cells import ALL, Pair, Value, fields_of, topic_means
from eval.experiments.robustness.robustness_values import Comparison

RANDOM = "a random text"


def search_best(comparisons: Sequence[Comparison], seed: int) -> list[Comparison]:
    """The picks of each attacker as further attacks, under all metrics with all defences.

    Args:
        comparisons: attacks under the metrics with the defences that are attacked.
        seed: of the control, which draws one text per topic.
    """
    # Metric and defence to topic to the document ids of its pairs.
    places: dict[tuple[str, str], dict[str, dict[str, Pair]]] = {}
    for c in comparisons:
        if c.role != "attack" or c.is_control:
            continue
        topics = places.setdefault((c.metric, c.column), defaultdict(dict))
        for pair in c.pairs:
            if pair.gold_gain < 0:
                topics[pair.attacked.document.topic][pair.attacked.document.id] = pair
    rng = random.Random(seed)
    first = next(iter(places.values()), {})
    picks = {RANDOM: {topic: rng.choice(sorted(pairs)) for topic, pairs in first.items()}}
    for (metric, column), topics in places.items():
        picks[f"best of {metric}, {column}"] = {
            topic: max(pairs, key=lambda name, pairs=pairs: (pairs[name].gain, name))
            for topic, pairs in topics.items()
        }
    searched = []
    for attacker, ids in picks.items():
        for (metric, column), topics in places.items():
            pairs = [topics[t][name] for t, name in ids.items() if name in topics[t]]
            failed = sum(pair.attacked.failed + pair.honest.failed for pair in pairs)
            place = (attacker, metric, column, "attack")
            searched.append(Comparison(*place, pairs, failed, attacker == RANDOM))
    return searched


def pick_values(searched: Sequence[Comparison]) -> Iterator[Value]:
    """``gold_gain`` of each attacker's picks, and the share of each kind among them."""
    for c in {c.kind: c for c in reversed(searched)}.values():
        row = {"assessor": "gold", "kind": c.kind, "generator": ALL, "failed": 0}
        gains = topic_means((pair.attacked.document.topic, pair.gold_gain) for pair in c.pairs)
        yield row | {"metric": "gold_gain"} | fields_of(t_interval(np.array([*gains.values()])))
        kinds = Counter(pair.attacked.document.kind for pair in c.pairs)
        for kind, count in kinds.most_common():
            share = {"value": count / len(c.pairs), "ci95": None, "n": len(gains)}
            yield row | {"metric": "picked_share", "variant": kind} | share
