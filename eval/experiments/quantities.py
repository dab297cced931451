"""Values of an experiment: a mean or another statistic of columns, with intervals over units."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from components.statistics import balanced_accuracy, bootstrap, confusion, ratio


class Quantity(NamedTuple):
    """A value of some rows, e.g. texts or claims.

    Attributes:
        fields: fields that name the result.
        columns: of shape (rows,) or (rows, k). Rows with NaN do not enter.
        statistic: function of the columns' entered rows; without it the value is the sum of the
            first column divided by the sum of the second, or the mean of a single column.
        failed: count of the result.
    """

    fields: Mapping[str, object]
    columns: Sequence[np.ndarray]
    statistic: Callable[..., float] | None = None
    failed: int = 0


def estimate(
    quantities: Sequence[Quantity], units: Sequence[object], seed: int
) -> Iterator[dict[str, object]]:
    """Yield the results' fields of quantities on the same rows, in order.

    ``n`` counts the units of the rows that enter (without a statistic: those whose second column
    is not 0). Intervals are bootstrap intervals over units; all quantities share the draws.

    Args:
        units: unit of each row, e.g. its topic; a unit whose rows do not enter is drawn as well.
    """
    entered = [~np.isnan(np.column_stack(q.columns)).any(axis=1) for q in quantities]
    places = [place for place, quantity in enumerate(quantities) if quantity.statistic]

    def statistics(rows: np.ndarray) -> dict[int, float]:
        values = {}
        for place in places:
            _, columns, statistic, _ = quantities[place]
            kept = rows[entered[place][rows]]
            values[place] = statistic(*(c[kept] for c in columns)) if len(kept) else np.nan
        return values

    measured = bootstrap(statistics, units, seed=seed) if places else {}
    for place, (fields, columns, statistic, failed) in enumerate(quantities):
        if statistic:
            n = len({units[row] for row in np.flatnonzero(entered[place])})
            yield {**fields, "n": n, "failed": failed, **measured[place]}
        else:
            above, below = columns if len(columns) == 2 else (columns[0], np.ones(len(units)))
            parts = (np.where(entered[place], column, 0.0) for column in (above, below))
            value, ci95, n = ratio(*parts, units, seed)
            yield {**fields, "n": n, "failed": failed, "value": value, "ci95": ci95}


def array(values: Iterable[float | None]) -> np.ndarray:
    """Return numbers as an array, with NaN for ``None``."""
    return np.asarray(list(values), dtype=float)


def explode(
    items: Sequence[Sequence[Sequence[float | None]]], units: Sequence[str], width: int
) -> tuple[list[np.ndarray], list[str]]:
    """Return a row per item of each unit, as columns, and the rows' units.

    A unit without items has a row of NaN, so that it is drawn as well.

    Args:
        items: lists of ``width`` numbers for each unit.
    """
    rows = [
        (unit, item)
        for unit, listed in zip(units, items, strict=True)
        for item in listed or [[None] * width]
    ]
    table = np.asarray([item for _, item in rows], dtype=float).reshape(-1, width)
    return list(table.T), [unit for unit, _ in rows]


def accuracy_of_classes(positive: np.ndarray, predicted: np.ndarray) -> float:
    """Return the balanced accuracy of two columns of 1 and 0."""
    return balanced_accuracy(confusion(positive == 1, predicted == 1))
