"""The values of the LSS metrics experiment: correlations with human ratings, and their differences.

A column is one metric in one form, e.g. bleu(claim, LSS), over all pairs; NaN where it failed. In
every bootstrap draw of references all columns are taken from the same pairs, so that differences
are paired.
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
        engine: whose LSS; ``NO_LSS`` for metric(reference, claim).
        metric: its name.
        form: what it was asked with.
        scores: shape (pairs,); NaN where it failed or was not due.
        due: which pairs have the texts that it compares, shape (pairs,).
    """

    engine: str
    metric: str
    form: str
    scores: np.ndarray
    due: np.ndarray


def values_of(
    columns: Sequence[Column],
    target: np.ndarray,
    groups: Sequence[str],
    generators: Sequence[str],
    seed: int,
) -> list[dict]:
    """The results' fields, without those that all of them share.

    - ``mean``: of the scores.
    - ``pearson``, ``spearman``: with the target, over pairs that have both; their differences
      ``against`` metric(reference, claim), over pairs that have all, and against the same metric on
      the LSS that has the words which the reference has.

    The metric is the ``assessor``, what it was asked with the ``variant``, the engine the ``kind``.

    Args:
        columns: all of the same pairs.
        target: human ratings of shape (pairs,); NaN where there is none.
        groups: references, shape (pairs,); they are resampled.
        generators: who wrote each claim; each has values of its own where there are several.
        seed: of the bootstrap.
    """
    names = list(dict.fromkeys(generators))
    rows = _values(columns, target, groups, ALL, seed)
    for name in names if len(names) > 1 else []:
        own = np.flatnonzero([generator == name for generator in generators])
        part = [
            column._replace(scores=column.scores[own], due=column.due[own]) for column in columns
        ]
        rows += _values(part, target[own], [groups[i] for i in own], name, seed)
    return rows


def _values(
    columns: Sequence[Column], target: np.ndarray, groups: Sequence[str], name: str, seed: int
) -> list[dict]:
    asked = _Correlations(target)
    wanted: dict[Value, tuple[int, int | None]] = {}  # to the columns that it is made of
    by_key = {(c.engine, c.metric, c.form): c for c in columns}
    both: dict[tuple, np.ndarray] = {}  # NaN where one side of a difference is
    for column in columns:
        place = (column.metric, column.engine, column.form)
        wanted[Value("", *place)] = (asked.add(column.scores, column.scores), None)
        against = {
            REFERENCE: (NO_LSS, column.metric, REFERENCE),
            SHARED: (SHARED, column.metric, column.form),
        }
        for other, key in against.items():
            if key in by_key and key[0] != column.engine:
                theirs = by_key[key].scores
                pair = asked.add(column.scores, theirs), asked.add(theirs, column.scores)
                wanted[Value("", *place, other)] = pair
                both[*place, other] = column.scores + theirs
    scores = np.stack([column.scores for column in columns], axis=1)

    def statistics(rows: np.ndarray) -> dict[Value, float]:
        means = nan_mean(scores[rows])
        found = {
            Value("mean", column.metric, column.engine, column.form): float(mean)
            for column, mean in zip(columns, means, strict=True)
        }
        table = asked.of(rows)
        for value, (own, other) in wanted.items():
            for row, measure in enumerate(("pearson", "spearman")):
                theirs = 0.0 if other is None else table[row, other]
                found[value._replace(metric=measure)] = table[row, own] - theirs
        return found

    results = []
    for value, measured in bootstrap(statistics, groups, seed=seed).items():
        column = by_key[value.kind, value.assessor, value.variant]
        due = column.due if value.metric == "mean" else column.due & ~np.isnan(target)
        lacks = np.isnan(both.get(value[1:], column.scores))
        counts = {
            "n": len({groups[i] for i in np.flatnonzero(due & ~lacks)}),
            "failed": int((due & lacks).sum()),
        }
        results.append({**value._asdict(), "generator": name, **counts, **measured})
    return results


class _Correlations:
    """Pearson's and Spearman's correlations of many columns with one target, by matrices.

    Columns that lack the same pairs are one matrix: SciPy's functions, column by column, take
    longer than everything else in a bootstrap.

    Args:
        target: shape (pairs,), NaN where there is none.
    """

    def __init__(self, target: np.ndarray):
        self.target = target
        self.count = 0
        # By the pairs that they have: the columns' numbers, and the columns.
        self.parts: dict[bytes, tuple[np.ndarray, list[int], list[np.ndarray]]] = {}

    def add(self, scores: np.ndarray, also: np.ndarray) -> int:
        mask = ~(np.isnan(scores) | np.isnan(also) | np.isnan(self.target))
        _, places, columns = self.parts.setdefault(mask.tobytes(), (mask, [], []))
        places.append(self.count)
        columns.append(scores)
        self.count += 1
        return self.count - 1

    @cached_property
    def _matrices(self) -> list[tuple[np.ndarray, list[int], np.ndarray]]:
        return [
            (mask, places, np.stack([self.target, *columns], axis=1))
            for mask, places, columns in self.parts.values()
        ]

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Both correlations of all columns over some rows, shape (2, columns)."""
        found = np.full((2, self.count), np.nan)
        for mask, places, matrix in self._matrices:
            x = matrix[rows[mask[rows]]]
            ranked = ranks(x)
            found[0, places] = pearson(x[:, 0], x[:, 1:])
            found[1, places] = pearson(ranked[:, 0], ranked[:, 1:])
        return found
