"""One-sided paired t-tests, and Holm's correction for many of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import ttest_rel


class PairedTest(NamedTuple):
    """A test's p-value, the number of pairs, and how many were dropped since one side has none."""

    p: float | None
    n: int
    dropped: int


def paired_t(
    first: Sequence[float], second: Sequence[float], alternative: Literal["greater", "less"]
) -> PairedTest:
    """Student's paired t-test that ``first`` is greater, or less, than ``second`` in the mean.

    Args:
        first, second: values of the same documents, NaN where there is none.

    Returns:
        ``p`` is ``None`` with fewer than two pairs. Where all differences are equal there is no
        t: then ``p`` is 1, or 0 where all lie on the side that is asked for.
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    there = ~(np.isnan(one) | np.isnan(other))
    n = int(there.sum())
    dropped = len(one) - n
    if n < 2:
        return PairedTest(None, n, dropped)
    differences = one[there] - other[there]
    if np.ptp(differences) < 1e-12:
        sign = 1 if alternative == "greater" else -1
        return PairedTest(float(sign * differences.mean() < 1e-12), n, dropped)
    p = ttest_rel(one[there], other[there], alternative=alternative).pvalue
    return PairedTest(float(p), n, dropped)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction of the p-values of one family; those without a value stay so.

    The i-th smallest of m is multiplied by m - i + 1; none is smaller than one before it, or
    larger than 1 (Holm 1979).
    """
    known = sorted((p, place) for place, p in enumerate(values) if p is not None)
    found: list[float | None] = [None] * len(values)
    least = 0.0
    for rank, (p, place) in enumerate(known):
        least = max(least, min(1.0, (len(known) - rank) * p))
        found[place] = least
    return found
