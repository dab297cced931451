"""Corrupted texts with k adversarial sentences appended, against their clean twins.

Source: Core (2407.03572), section 5.3 with Figure 4.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from components.statistics import RESAMPLES
from eval.defences import NO_DEFENCE, Defence
from eval.experiments.robustness.robustness_cells import ALL, Cells, Text, Value, mean
from eval.experiments.robustness.robustness_texts import twin_of
from eval.experiments.robustness.robustness_values import SCORES


def curve_values(
    name: str, cells: Cells, defences: Mapping[str, Defence], seed: int
) -> Iterator[Value]:
    """Scores along a curve, of the documents that have a score at every k and as clean twin.

    - ``score`` or ``f1_at_k`` by ``variant``: ``clean``, or k;
    - ``gain`` at k against ``clean``;
    - ``break_even``: the smallest k at which corrupted texts score higher than their clean twins on
      average; no value if there is none. Its interval resamples topics, with whole curves; a
      resample without a break-even counts as infinity, so an end that is infinite is no number.
    """
    for (metric, column), texts in cells.items():
        curves: dict[str, dict[int | None, Text]] = defaultdict(dict)
        for text in texts:
            twin, k = twin_of(text.document)
            curves[twin][k] = text
        steps = sorted({k for curve in curves.values() for k in curve if k is not None})
        complete = [
            curve
            for curve in curves.values()
            if all(k in curve and not math.isnan(curve[k].value) for k in (None, *steps))
        ]
        shared = {"assessor": metric, "selection": column, "kind": name, "generator": ALL}
        shared["failed"] = sum(text.failed for curve in complete for text in curve.values())
        clean = np.array([curve[None].value for curve in complete])
        score = SCORES[defences.get(column, NO_DEFENCE).score]
        gains = []
        for k in (None, *steps):
            members = [curve[k] for curve in complete]
            values = np.array([text.value for text in members])
            row = shared | {"variant": "clean" if k is None else k}
            yield row | {"metric": score} | mean(values, members, seed)
            if k is not None:
                gains.append(values - clean)
                gain = mean(values - clean, members, seed)
                yield row | {"metric": "gain", "against": "clean"} | gain
        topics = [curve[None].document.topic for curve in complete]
        row = shared | {"metric": "break_even", "against": "clean", "n": len({*topics})}
        yield row | _break_even(np.array(gains), steps, topics, seed)


def _break_even(gains: np.ndarray, steps: Sequence[int], topics: Sequence[str], seed: int) -> Value:
    """The first of ``steps`` with a mean gain above 0; gains have shape (steps, texts)."""
    if not len(topics):
        return {"value": None, "ci95": None}
    names = sorted({*topics})
    sums = np.stack([gains[:, [t == name for t in topics]].sum(axis=1) for name in names], axis=1)

    def first(totals: np.ndarray) -> float:
        return next((k for k, total in zip(steps, totals, strict=True) if total > 1e-12), math.inf)

    draws = np.random.default_rng(seed).integers(0, len(names), (RESAMPLES, len(names)))
    resampled = [first(sums[:, draw].sum(axis=1)) for draw in draws]
    low, high = np.quantile(resampled, [0.025, 0.975], method="nearest").tolist()
    value = first(sums.sum(axis=1))
    is_finite = len(names) > 1 and math.isfinite(high)
    return {
        "value": value if math.isfinite(value) else None,
        "ci95": (low, high) if is_finite else None,
    }
