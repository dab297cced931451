"""The statistics of this repository, each once: pure functions of arrays.

Whoever bootstraps calls them a thousand times on a few hundred rows, where the checks and tests of
SciPy's and torchmetrics' own functions take longer than the sums; torchmetrics would also load
PyTorch. What is left to SciPy are ranks and Student's t.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

Measures = dict[str, dict]
RESAMPLES = 1000
# Entries of a table of draws (32 MB): a smaller one is kept for the next ratio, a larger one cut.
_MOST_KEPT = 4_000_000
# A column that varies by no more is constant: what is left is the rounding of its sums.
_ROUNDING = 1e-12


def bootstrap(
    statistics: Callable[[np.ndarray], dict[str, float]],
    groups: Sequence[object],
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Measures:
    """Values on all rows with 95 % percentile intervals over resampled groups.

    Args:
        statistics: maps row indices of shape (m,), with repeats, to named values.
        groups: group of each row, n of them; whole groups are drawn with replacement.
        seed: of the draws.
        resamples: number of draws; 0 for no intervals.

    Returns:
        Per name ``value`` and ``ci95`` (low and high, in the value's unit), ``None`` where there
        is none. A value that rests on one group has no interval: those of the draws without that
        group have none, and the others are as sure of it as if there were no other group to draw.
    """
    _, inverse = _numbered(groups)
    order = np.argsort(inverse, kind="stable")
    sizes = np.bincount(inverse)  # of groups, whose rows are next to each other in the order
    starts = np.cumsum(sizes) - sizes
    values = statistics(np.arange(len(inverse)))
    generator = np.random.default_rng(seed)
    draws: dict[str, list[float]] = {name: [] for name in values}
    # The groups that every draw with a value has had so far; soon there are none.
    needed = dict.fromkeys(values, np.full(len(sizes), True))
    for _ in range(resamples if len(sizes) > 1 else 0):
        drawn = generator.integers(0, len(sizes), len(sizes))
        own = sizes[drawn]
        firsts = starts[drawn] - (np.cumsum(own) - own)  # less the place that the first row gets
        found = statistics(order[np.arange(own.sum()) + np.repeat(firsts, own)])
        there = np.bincount(drawn, minlength=len(sizes)) > 0
        for name, value in found.items():
            if math.isfinite(value):
                draws[name].append(value)
                if name in needed:
                    needed[name] = needed[name] & there
                    if not needed[name].any():
                        del needed[name]
    result = {}
    for name, value in values.items():
        told = draws[name] and name not in needed
        interval = np.percentile(draws[name], [2.5, 97.5]).tolist() if told else None
        finite = math.isfinite(value)
        result[name] = {
            "value": float(value) if finite else None,
            "ci95": interval if finite else None,
        }
    return result


class Ratio(NamedTuple):
    """A value, its 95 % interval and the number of groups; ``None`` where there is none."""

    value: float | None
    ci95: tuple[float, float] | None
    n: int


def ratio(
    parts: np.ndarray,
    wholes: np.ndarray,
    groups: Sequence[object],
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Ratio:
    """Σ parts / Σ wholes with the interval that :func:`bootstrap` gives, a hundred times sooner.

    Args:
        parts, wholes: one a row; of a mean the values and ones.
        groups: group of each row; whole groups are drawn with replacement. Those whose wholes are
            all 0 are not counted.
    """
    number, inverse = _numbered(groups)
    if not len(parts) or not np.sum(wholes):
        return Ratio(None, None, 0)
    value = float(np.sum(parts) / np.sum(wholes))
    above = np.bincount(inverse, parts)  # sums of each group
    below = np.bincount(inverse, wholes)
    entered = int(np.count_nonzero(below))  # the others are drawn, too, and add nothing
    if entered < 2 or not resamples:
        return Ratio(value, None, entered)
    times = _kept_draws if resamples * number <= _MOST_KEPT else _times_drawn
    # Not by BLAS, whose sums differ between processors in their last bits.
    sums = [
        (np.einsum("rg,g->r", drawn, above), np.einsum("rg,g->r", drawn, below))
        for drawn in times(number, seed, resamples)
    ]
    shares, totals = map(np.concatenate, zip(*sums, strict=True))
    found = shares[totals != 0] / totals[totals != 0]
    low, high = np.percentile(found, [2.5, 97.5]).tolist()
    return Ratio(value, (low, high), entered)


@lru_cache(maxsize=8)
def _kept_draws(number: int, seed: int, resamples: int) -> list[np.ndarray]:
    return list(_times_drawn(number, seed, resamples))


def _times_drawn(number: int, seed: int, resamples: int) -> Iterator[np.ndarray]:
    """How often each group is drawn in each resample, (resamples, number), in blocks of resamples.

    Of 50,000 groups all of them at once would take 1.5 GB.
    """
    generator = np.random.default_rng(seed)
    most = max(1, _MOST_KEPT // number)
    for start in range(0, resamples, most):
        several = min(most, resamples - start)
        drawn = generator.integers(0, number, (several, number))
        places = drawn + number * np.arange(several)[:, None]
        times = np.bincount(places.ravel(), minlength=several * number)
        yield times.reshape(several, number).astype(float)


def difference(
    first: np.ndarray,
    second: np.ndarray,
    first_groups: Sequence[object],
    second_groups: Sequence[object],
    seed: int = 0,
) -> Ratio:
    """The mean of ``first`` minus that of ``second``, whose groups are others.

    The interval is of draws of both sides' groups, each with replacement.
    """
    draws = []
    generator = np.random.default_rng(seed)
    for values, groups in ((first, first_groups), (second, second_groups)):
        if not len(values):
            return Ratio(None, None, 0)
        number, inverse = _numbered(groups)
        drawn = generator.integers(0, number, (RESAMPLES, number))
        sums, sizes = np.bincount(inverse, values), np.bincount(inverse)
        draws.append((sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), number))
    (one, n), (other, m) = draws
    low, high = np.percentile(one - other, [2.5, 97.5]).tolist()
    interval = (low, high) if min(n, m) > 1 else None
    return Ratio(float(np.mean(first) - np.mean(second)), interval, n + m)


def _numbered(groups: Sequence[object]) -> tuple[int, np.ndarray]:
    # Not as an array of texts, in which each takes the room of the longest: groups are premises.
    names = [str(group) for group in groups]
    place = {name: number for number, name in enumerate(sorted(set(names)))}
    return len(place), np.array([place[name] for name in names], dtype=np.intp)


def average(values: Sequence[float]) -> float | None:
    """The mean of some numbers; ``None`` of none."""
    return sum(values) / len(values) if values else None


def nan_mean(values: np.ndarray) -> np.ndarray:
    """Means of the values that are there, of shape (n,) or of each column of (n, columns).

    Returns:
        Shape () or (columns,); NaN where all are NaN.
    """
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0)


def pearson(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Pearson's correlation of a column with another one, or with each of several.

    Args:
        left: shape (n,).
        right: shape (n,) or (n, columns).

    Returns:
        Shape () or (columns,), in [-1, 1]; NaN where one side does not vary.
    """
    if len(left) < 2:
        return np.full(np.shape(right)[1:], math.nan)
    flat = (np.ptp(left) <= _ROUNDING) | (np.ptp(right, axis=0) <= _ROUNDING)
    a, b = left - left.mean(), (right - right.mean(axis=0)).T
    scale = np.sqrt((a @ a) * np.vecdot(b, b))
    found = np.clip(b @ a / np.where(flat, 1.0, scale), -1.0, 1.0)
    return np.where(flat, math.nan, found)[()]


def spearman(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Spearman's correlation, of the arguments and with the result of :func:`pearson`."""
    return pearson(ranks(left), ranks(right))


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1 within each column, equal values at their mean; of the values' shape."""
    # SciPy's statistics take 0.7 s to load, which no `--help` should wait for.
    from scipy.stats import rankdata

    return rankdata(values, axis=0)


def auroc(scores: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve by ranks; NaN when one class is absent.

    Args:
        scores: shape (n,), larger for positives.
        positive: bools of shape (n,).
    """
    count = int(positive.sum())
    if count == 0 or count == len(positive):
        return math.nan
    own = ranks(scores)[positive].sum()
    return float((own - count * (count + 1) / 2) / (count * (len(positive) - count)))


def auroc_within(scores: np.ndarray, positive: np.ndarray, strata: np.ndarray) -> float:
    """AUROC over the pairs of a positive and a negative that share a stratum; NaN without any.

    What a stratum is made of (word overlap, say) is not what earns it.

    Args:
        scores, positive: as of :func:`auroc`.
        strata: number of each row's stratum, shape (n,).
    """
    right, pairs = 0.0, 0
    for stratum in np.unique(strata):
        own = strata == stratum
        count = int(positive[own].sum()) * int((~positive[own]).sum())
        if count:
            right += auroc(scores[own], positive[own]) * count
            pairs += count
    return right / pairs if pairs else math.nan


def quantile_bins(values: np.ndarray, bins: int) -> np.ndarray:
    """Which of so many bins of about equally many values each value is in; equal values share one.

    Args:
        values: shape (n,); NaN is in a bin of its own, -1.

    Returns:
        Whole numbers of shape (n,).
    """
    known = ~np.isnan(values)
    found = np.full(len(values), -1)
    if known.any():
        edges = np.quantile(values[known], np.arange(1, bins) / bins)
        found[known] = np.searchsorted(edges, values[known], side="right")
    return found


def confusion(true: np.ndarray, said: np.ndarray) -> np.ndarray:
    """How many negatives and positives are judged negative and positive.

    Args:
        true: bools of shape (n,).
        said: shape (n,): bools, or how far each is judged positive, from 0 to 1.

    Returns:
        Counts of shape (2, 2): a row a true class, a column a judged one, the negative one first.
    """
    own = [(said[rows].sum(), rows.sum()) for rows in (~true, true)]
    return np.array([(count - yes, yes) for yes, count in own], dtype=float)


def balanced_accuracy(table: np.ndarray) -> float:
    """Mean share of each true class that is judged so; NaN where a class is absent.

    Args:
        table: counts of shape (classes, classes): a row a true class, a column a judged one.
    """
    totals = table.sum(axis=1)
    return float((np.diag(table) / totals).mean()) if totals.all() else math.nan


def best_threshold(scores: np.ndarray, positive: np.ndarray) -> float:
    """The threshold, positive from it on, with the largest balanced accuracy on these rows.

    Args:
        scores: shape (n,), larger for positives.
        positive: bools of shape (n,).

    Returns:
        Halfway between the two scores that it parts, the lowest such one on a tie; NaN where a
        class is absent.
    """
    if not positive.any() or positive.all():
        return math.nan
    order = np.argsort(scores, kind="stable")
    ordered, true = scores[order], positive[order]
    # Cut i leaves i rows below; rows of one score are not parted.
    below_true = np.append(0, np.cumsum(true))
    below_false = np.arange(len(true) + 1) - below_true
    # What the accuracy grows with, in whole numbers: rounding must not decide between equal cuts.
    found = below_false * true.sum() - below_true * (~true).sum()
    found[1:-1][np.diff(ordered) == 0] = -(len(true) ** 2)
    cut = int(np.argmax(found))
    if cut == 0:  # the cut above all scores is no better
        return float(ordered[0])
    return float((ordered[cut - 1] + ordered[cut]) / 2)


def precision_recall_f1(hits: int, predicted: int, gold: int) -> tuple[float, float, float]:
    """Precision, recall and F1; all 1 where both sides are empty, all 0 where one is."""
    if not predicted or not gold:
        return (float(predicted == gold),) * 3
    return hits / predicted, hits / gold, 2 * hits / (predicted + gold)


def kappa(table: np.ndarray) -> float:
    """Cohen's kappa with quadratic weights (Cohen 1968); of two classes the plain one (1960).

    Args:
        table: counts of shape (classes, classes), of the one's class and the other's, in order.

    Returns:
        1 for equal classes, 0 for what chance gives; NaN of no count, or where both give one and
        the same class throughout.
    """
    total = table.sum()
    classes = np.arange(len(table))
    weights = (classes[:, None] - classes) ** 2
    chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / total if total else table
    expected = (weights * chance).sum()
    return float(1 - (weights * table).sum() / expected) if expected else math.nan


def rand_indices(labels: Sequence[tuple[object, object]]) -> tuple[float, float]:
    """Rand index and adjusted Rand index (Hubert and Arabie 1985) of two groupings of some things.

    Args:
        labels: both labels of each thing.

    Returns:
        1 and 1 for the same groups; where there are fewer than two things, or all are alone or all
        together in both, there is nothing to differ in.
    """
    total = math.comb(len(labels), 2)
    if not total:
        return 1.0, 1.0
    parts = (labels, [one for one, _ in labels], [other for _, other in labels])
    together, left, right = (sum(math.comb(n, 2) for n in Counter(p).values()) for p in parts)
    chance, most = left * right / total, (left + right) / 2
    rand = (total + 2 * together - left - right) / total
    return rand, 1.0 if most == chance else (together - chance) / (most - chance)


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
    from scipy.stats import ttest_rel

    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    there = ~(np.isnan(one) | np.isnan(other))
    n = int(there.sum())
    dropped = len(one) - n
    if n < 2:
        return PairedTest(None, n, dropped)
    differences = one[there] - other[there]
    if np.ptp(differences) <= _ROUNDING:
        sign = 1 if alternative == "greater" else -1
        return PairedTest(float(sign * differences.mean() < _ROUNDING), n, dropped)
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
