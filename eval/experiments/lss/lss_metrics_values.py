"""The values of the LSS metrics experiment: correlations with human ratings, and their differences.

A column is one metric in one form, e.g. bleu(claim, LSS). All columns share the bootstrap draws of
references, so that differences are paired.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from components.statistics import bootstrap, nan_mean, pearson, ranks

NO_LSS = "no LSS"
HUMAN = "human"
SHARED = "shared words"
ALL = "all"
REFERENCE, LSS, STAR = "(reference, claim)", "(claim, LSS)", "(claim, LSS*)"


class Value(NamedTuple):
    metric: str
    assessor: str
    kind: str
    variant: str
    against: str | None = None


class Column(NamedTuple):
    """Scores of one metric.

    Attributes:
        engine: engine of the LSS; ``NO_LSS`` for metric(reference, claim).
        metric: name of the metric.
        form: the compared texts.
        scores: shape (pairs,); NaN if it failed or was not due.
        due: whether the pair has the compared texts, shape (pairs,).
    """

    engine: str
    metric: str
    form: str
    scores: np.ndarray
    due: np.ndarray


def compute_values(
    columns: Sequence[Column],
    target: np.ndarray,
    groups: Sequence[str],
    generators: Sequence[str],
    seed: int,
) -> list[dict]:
    """Compute the fields of the results, without shared fields.

    - ``mean``: mean score.
    - ``pearson``, ``spearman``: correlation with the target, over pairs with both values; and its
      differences ``against`` metric(reference, claim) and against the same metric with the
      ``shared words`` engine, over pairs with all values.

    The metric is the ``assessor``, the form the ``variant``, the engine the ``kind``.

    Args:
        columns: scores of the same pairs.
        target: human ratings, shape (pairs,); NaN if missing.
        groups: references, shape (pairs,), which are resampled.
        generators: generator of each claim; several generators also have separate values.
        seed: seed of the bootstrap.
    """
    names = list(dict.fromkeys(generators))
    rows = _values(columns, target, groups, ALL, seed)
    for name in names if len(names) > 1 else []:
        chosen = np.flatnonzero([generator == name for generator in generators])
        part = [c._replace(scores=c.scores[chosen], due=c.due[chosen]) for c in columns]
        rows += _values(part, target[chosen], [groups[i] for i in chosen], name, seed)
    return rows


def _values(
    columns: Sequence[Column], target: np.ndarray, groups: Sequence[str], name: str, seed: int
) -> list[dict]:
    corr = _Correlations(target)
    columns_of: dict[Value, tuple[int, int | None]] = {}  # to its columns
    by_key = {(c.engine, c.metric, c.form): c for c in columns}
    sums: dict[tuple, np.ndarray] = {}  # NaN if one side of a difference is
    for column in columns:
        key = (column.metric, column.engine, column.form)
        columns_of[Value("", *key)] = (corr.add(column.scores, column.scores), None)
        against = {
            REFERENCE: (NO_LSS, column.metric, REFERENCE),
            SHARED: (SHARED, column.metric, column.form),
        }
        for other, other_key in against.items():
            if other_key in by_key and other_key[0] != column.engine:
                theirs = by_key[other_key].scores
                pair = corr.add(column.scores, theirs), corr.add(theirs, column.scores)
                columns_of[Value("", *key, other)] = pair
                sums[*key, other] = column.scores + theirs
    scores = np.stack([column.scores for column in columns], axis=1)

    def statistics(rows: np.ndarray) -> dict[Value, float]:
        means = nan_mean(scores[rows])
        values = {
            Value("mean", column.metric, column.engine, column.form): float(mean)
            for column, mean in zip(columns, means, strict=True)
        }
        table = corr.compute(rows)
        for value, (left, right) in columns_of.items():
            for row, measure in enumerate(("pearson", "spearman")):
                theirs = 0.0 if right is None else table[row, right]
                values[value._replace(metric=measure)] = table[row, left] - theirs
        return values

    results = []
    for value, measured in bootstrap(statistics, groups, seed=seed).items():
        column = by_key[value.kind, value.assessor, value.variant]
        due = column.due if value.metric == "mean" else column.due & ~np.isnan(target)
        missing = np.isnan(sums.get(value[1:], column.scores))
        counts = {
            "n": len({groups[i] for i in np.flatnonzero(due & ~missing)}),
            "failed": int((due & missing).sum()),
        }
        results.append({**value._asdict(), "generator": name, **counts, **measured})
    return results


class _Correlations:
    """Pearson's and Spearman's correlations of many columns with one target, shape (pairs,).

    Columns with the same missing pairs form one matrix, which is much faster than single columns.
    """

    def __init__(self, target: np.ndarray):
        self.target = target
        self.count = 0
        # Mask of the present pairs to the mask, the column indices, and the columns.
        self.parts: dict[bytes, tuple[np.ndarray, list[int], list[np.ndarray]]] = {}

    def add(self, scores: np.ndarray, other: np.ndarray) -> int:
        mask = ~(np.isnan(scores) | np.isnan(other) | np.isnan(self.target))
        _, indices, columns = self.parts.setdefault(mask.tobytes(), (mask, [], []))
        indices.append(self.count)
        columns.append(scores)
        self.count += 1
        return self.count - 1

    @cached_property
    def _matrices(self) -> list[tuple[np.ndarray, list[int], np.ndarray]]:
        return [
            (mask, indices, np.stack([self.target, *columns], axis=1))
            for mask, indices, columns in self.parts.values()
        ]

    def compute(self, rows: np.ndarray) -> np.ndarray:
        """Compute both correlations of all columns over rows, shape (2, columns)."""
        values = np.full((2, self.count), np.nan)
        for mask, indices, matrix in self._matrices:
            x = matrix[rows[mask[rows]]]
            ranked = ranks(x)
            values[0, indices] = pearson(x[:, 0], x[:, 1:])
            values[1, indices] = pearson(ranked[:, 0], ranked[:, 1:])
        return values
