"""Statistics as pure functions of arrays.

Bootstraps call them a thousand times on a few hundred rows, where input checks of SciPy and
torchmetrics take longer than the computation; torchmetrics would also import PyTorch. SciPy is used
for ranks and Student's t.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

Measures = dict[str, dict]
RESAMPLES = 1000
# Entries of a table of draws (32 MB); smaller tables are cached, larger ones split.
_MAX_CACHED = 4_000_000
# Columns with a smaller range are constant up to rounding.
_ROUNDING = 1e-12
# Of a betting bound: orders of the values, steps of its search, and the largest part of the stake
# that is bet.
_SHUFFLES = 20
_HALVINGS = 16
_LARGEST_BET = 0.9


def bootstrap(
    statistics: Callable[[np.ndarray], dict[str, float]],
    groups: Sequence[object],
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Measures:
    """Return values on all rows with 95 % percentile intervals over resampled groups.

    A value that depends on a single group has no interval: draws without that group have no value,
    and the other draws do not vary it.

    Args:
        statistics: maps row indices of shape (m,), with repeats, to named values.
        groups: group of each row; whole groups are drawn with replacement.
        seed: of the draws.
        resamples: number of draws; 0 for no intervals.

    Returns:
        Per name ``value`` and ``ci95`` (low and high, in the value's unit), or ``None``.
    """
    _, inverse = _group_indices(groups)
    order = np.argsort(inverse, kind="stable")
    sizes = np.bincount(inverse)  # rows per group; rows of a group are adjacent in `order`
    starts = np.cumsum(sizes) - sizes
    values = statistics(np.arange(len(inverse)))
    generator = np.random.default_rng(seed)
    draws: dict[str, list[float]] = {name: [] for name in values}
    # Groups that are in every draw with a value so far.
    needed = dict.fromkeys(values, np.full(len(sizes), True))
    for _ in range(resamples if len(sizes) > 1 else 0):
        drawn = generator.integers(0, len(sizes), len(sizes))
        drawn_sizes = sizes[drawn]
        # Positions in `order`, minus the offset of the group in the drawn rows.
        firsts = starts[drawn] - (np.cumsum(drawn_sizes) - drawn_sizes)
        rows = order[np.arange(drawn_sizes.sum()) + np.repeat(firsts, drawn_sizes)]
        drawn_values = statistics(rows)
        is_drawn = np.bincount(drawn, minlength=len(sizes)) > 0
        for name, value in drawn_values.items():
            if math.isfinite(value):
                draws[name].append(value)
                if name in needed:
                    needed[name] = needed[name] & is_drawn
                    if not needed[name].any():
                        del needed[name]
    result = {}
    for name, value in values.items():
        has_interval = draws[name] and name not in needed
        interval = np.percentile(draws[name], [2.5, 97.5]).tolist() if has_interval else None
        finite = math.isfinite(value)
        result[name] = {
            "value": float(value) if finite else None,
            "ci95": interval if finite else None,
        }
    return result


class Ratio(NamedTuple):
    """A value, its 95 % interval (or ``None``) and the number of groups."""

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
    """Return Σ parts / Σ wholes with the interval of :func:`bootstrap`, about 100 times faster.

    For a mean, pass the values and ones. Groups whose wholes are all 0 are not counted.
    """
    group_count, inverse = _group_indices(groups)
    if not len(parts) or not np.sum(wholes):
        return Ratio(None, None, 0)
    value = float(np.sum(parts) / np.sum(wholes))
    above = np.bincount(inverse, parts)
    below = np.bincount(inverse, wholes)
    n_groups = int(np.count_nonzero(below))
    if n_groups < 2 or not resamples:
        return Ratio(value, None, n_groups)
    draw_counts = _cached_draws if resamples * group_count <= _MAX_CACHED else _draw_counts
    # Not BLAS, whose rounding differs between processors.
    sums = [
        (np.einsum("rg,g->r", drawn, above), np.einsum("rg,g->r", drawn, below))
        for drawn in draw_counts(group_count, seed, resamples)
    ]
    shares, totals = map(np.concatenate, zip(*sums, strict=True))
    ratios = shares[totals != 0] / totals[totals != 0]
    low, high = np.percentile(ratios, [2.5, 97.5]).tolist()
    return Ratio(value, (low, high), n_groups)


@lru_cache(maxsize=8)
def _cached_draws(number: int, seed: int, resamples: int) -> list[np.ndarray]:
    return list(_draw_counts(number, seed, resamples))


def _draw_counts(number: int, seed: int, resamples: int) -> Iterator[np.ndarray]:
    """Yield how often each group is drawn, (resamples, groups), in blocks of resamples.

    All resamples of 50,000 groups at once would take 1.5 GB.
    """
    generator = np.random.default_rng(seed)
    block = max(1, _MAX_CACHED // number)
    for start in range(0, resamples, block):
        count = min(block, resamples - start)
        drawn = generator.integers(0, number, (count, number))
        cells = drawn + number * np.arange(count)[:, None]
        counts = np.bincount(cells.ravel(), minlength=count * number)
        yield counts.reshape(count, number).astype(float)


def difference(
    first: np.ndarray,
    second: np.ndarray,
    first_groups: Sequence[object],
    second_groups: Sequence[object],
    seed: int = 0,
) -> Ratio:
    """Return the mean of ``first`` minus that of ``second``, for unpaired groups.

    The interval resamples the groups of both sides with replacement.
    """
    draws = []
    generator = np.random.default_rng(seed)
    for values, groups in ((first, first_groups), (second, second_groups)):
        if not len(values):
            return Ratio(None, None, 0)
        number, inverse = _group_indices(groups)
        drawn = generator.integers(0, number, (RESAMPLES, number))
        sums, sizes = np.bincount(inverse, values), np.bincount(inverse)
        draws.append((sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), number))
    (first_means, first_n), (second_means, second_n) = draws
    low, high = np.percentile(first_means - second_means, [2.5, 97.5]).tolist()
    interval = (low, high) if min(first_n, second_n) > 1 else None
    return Ratio(float(np.mean(first) - np.mean(second)), interval, first_n + second_n)


def _group_indices(groups: Sequence[object]) -> tuple[int, np.ndarray]:
    # No NumPy array of strings: it would pad all to the longest, and groups may be premises.
    names = [str(group) for group in groups]
    index_of = {name: number for number, name in enumerate(sorted(set(names)))}
    return len(index_of), np.array([index_of[name] for name in names], dtype=np.intp)


def average(values: Sequence[float]) -> float | None:
    """Return the mean, or ``None`` if empty."""
    return sum(values) / len(values) if values else None


def nan_mean(values: np.ndarray) -> np.ndarray:
    """Return means without NaN entries, of shape (n,) or per column of (n, columns)."""
    present = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(present, values, 0.0).sum(axis=0) / present.sum(axis=0)


def pearson(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return Pearson's correlation of a column (n,) with one (n,) or several columns (n, columns).

    The result has shape () or (columns,) and is NaN if one side is constant.
    """
    if len(left) < 2:
        return np.full(np.shape(right)[1:], math.nan)
    flat = (np.ptp(left) <= _ROUNDING) | (np.ptp(right, axis=0) <= _ROUNDING)
    a, b = left - left.mean(), (right - right.mean(axis=0)).T
    scale = np.sqrt((a @ a) * np.vecdot(b, b))
    correlation = np.clip(b @ a / np.where(flat, 1.0, scale), -1.0, 1.0)
    return np.where(flat, math.nan, correlation)[()]


def spearman(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return Spearman's correlation; arguments and result as in :func:`pearson`."""
    return pearson(ranks(left), ranks(right))


def ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks from 1 within each column, with ties averaged; same shape as the values."""
    # scipy.stats takes 0.7 s to import, which would slow down `--help`.
    from scipy.stats import rankdata

    return rankdata(values, axis=0)


def auroc(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return the area under the ROC curve by ranks; NaN if one class is absent.

    Scores are larger for positives, which are true or 1; both arguments have shape (n,).
    """
    positive = positive.astype(bool)
    count = int(positive.sum())
    if count == 0 or count == len(positive):
        return math.nan
    rank_sum = ranks(scores)[positive].sum()
    return float((rank_sum - count * (count + 1) / 2) / (count * (len(positive) - count)))


def auroc_within(scores: np.ndarray, positive: np.ndarray, strata: np.ndarray) -> float:
    """Return AUROC over pairs of a positive and a negative in the same stratum; NaN without pairs.

    This controls for the stratum variable, e.g. word overlap.
    """
    weighted, pairs = 0.0, 0
    for stratum in np.unique(strata):
        in_stratum = strata == stratum
        count = int(positive[in_stratum].sum()) * int((~positive[in_stratum]).sum())
        if count:
            weighted += auroc(scores[in_stratum], positive[in_stratum]) * count
            pairs += count
    return weighted / pairs if pairs else math.nan


def quantile_bins(values: np.ndarray, bins: int) -> np.ndarray:
    """Return the quantile bin of each value, -1 for NaN; equal values share a bin."""
    present = ~np.isnan(values)
    bin_of = np.full(len(values), -1)
    if present.any():
        edges = np.quantile(values[present], np.arange(1, bins) / bins)
        bin_of[present] = np.searchsorted(edges, values[present], side="right")
    return bin_of


def confusion(true: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return counts of shape (2, 2): rows are true classes, columns predicted, negative first.

    ``predicted`` may be bools, or degrees of positive from 0 to 1.
    """
    positives = [(predicted[rows].sum(), rows.sum()) for rows in (~true, true)]
    return np.array([(count - yes, yes) for yes, count in positives], dtype=float)


def balanced_accuracy(table: np.ndarray) -> float:
    """Return the mean recall of the classes of a confusion matrix; NaN if a class is absent."""
    totals = table.sum(axis=1)
    return float((np.diag(table) / totals).mean()) if totals.all() else math.nan


def best_threshold(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return the threshold with the largest balanced accuracy; scores at or above it are positive.

    It is the midpoint between two adjacent scores, the lowest on a tie; NaN if a class is absent.
    """
    if not positive.any() or positive.all():
        return math.nan
    order = np.argsort(scores, kind="stable")
    ordered, true = scores[order], positive[order]
    # Cut i has i rows below; equal scores are not separated.
    below_true = np.append(0, np.cumsum(true))
    below_false = np.arange(len(true) + 1) - below_true
    # Monotone in balanced accuracy, in integers, so that rounding does not break ties.
    gains = below_false * true.sum() - below_true * (~true).sum()
    gains[1:-1][np.diff(ordered) == 0] = -(len(true) ** 2)
    cut = int(np.argmax(gains))
    if cut == 0:  # equivalent to the cut above all scores
        return float(ordered[0])
    return float((ordered[cut - 1] + ordered[cut]) / 2)


def precision_recall_f1(hits: int, predicted: int, gold: int) -> tuple[float, float, float]:
    """Return precision, recall and F1; all 1 if both sides are empty, all 0 if one is."""
    if not predicted or not gold:
        return (float(predicted == gold),) * 3
    return hits / predicted, hits / gold, 2 * hits / (predicted + gold)


def kappa(table: np.ndarray) -> float:
    """Return Cohen's kappa with quadratic weights (Cohen 1968); for two classes plain kappa (1960).

    ``table`` has counts of shape (classes, classes), by both raters' class, in order. NaN without
    counts, or if both raters use one and the same class throughout.
    """
    total = table.sum()
    classes = np.arange(len(table))
    weights = (classes[:, None] - classes) ** 2
    chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / total if total else table
    expected = (weights * chance).sum()
    return float(1 - (weights * table).sum() / expected) if expected else math.nan


def rand_indices(labels: Sequence[tuple[object, object]]) -> tuple[float, float]:
    """Return Rand index and adjusted Rand index (Hubert and Arabie 1985) of two groupings.

    ``labels`` has both labels of each item. Both indices are 1 for fewer than two items.
    """
    total = math.comb(len(labels), 2)
    if not total:
        return 1.0, 1.0
    parts = (labels, [first for first, _ in labels], [second for _, second in labels])
    together, left, right = (sum(math.comb(n, 2) for n in Counter(p).values()) for p in parts)
    chance, maximum = left * right / total, (left + right) / 2
    rand = (total + 2 * together - left - right) / total
    return rand, 1.0 if maximum == chance else (together - chance) / (maximum - chance)


class PairedTest(NamedTuple):
    """p-value, number of pairs, and number of pairs dropped because a side is missing."""

    p: float | None
    n: int
    dropped: int


def paired_t(
    first: Sequence[float], second: Sequence[float], alternative: Literal["greater", "less"]
) -> PairedTest:
    """Student's paired t-test that the mean of ``first`` is greater, or less, than of ``second``.

    Pairs with NaN are dropped. ``p`` is ``None`` with fewer than two pairs. If all differences are
    equal, t is undefined: ``p`` is 0 if they agree with ``alternative``, else 1.
    """
    from scipy.stats import ttest_rel

    left, right = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    paired = ~(np.isnan(left) | np.isnan(right))
    n = int(paired.sum())
    dropped = len(left) - n
    if n < 2:
        return PairedTest(None, n, dropped)
    differences = left[paired] - right[paired]
    if np.ptp(differences) <= _ROUNDING:
        sign = 1 if alternative == "greater" else -1
        return PairedTest(float(sign * differences.mean() < _ROUNDING), n, dropped)
    p = ttest_rel(left[paired], right[paired], alternative=alternative).pvalue
    return PairedTest(float(p), n, dropped)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Return p-values of one family with Holm's step-down correction; ``None`` is kept.

    The i-th smallest of m is multiplied by m - i + 1; values are monotone and at most 1 (Holm
    1979).
    """
    ordered = sorted((p, index) for index, p in enumerate(values) if p is not None)
    corrected: list[float | None] = [None] * len(values)
    minimum = 0.0
    for rank, (p, index) in enumerate(ordered):
        minimum = max(minimum, min(1.0, (len(ordered) - rank) * p))
        corrected[index] = minimum
    return corrected


def t_interval(values: np.ndarray) -> Ratio:
    """The mean of one value per topic with Student's 95 % interval, not corrected for other tests.

    Args:
        values: shape (topics,); NaN for a topic without a value.
    """
    from scipy.stats import t

    present = values[~np.isnan(values)]
    n = len(present)
    if n < 2:
        return Ratio(float(present[0]) if n else None, None, n)
    mean, error = float(present.mean()), float(present.std(ddof=1)) / math.sqrt(n)
    half = float(t.ppf(0.975, n - 1)) * error
    return Ratio(mean, (mean - half, mean + half), n)


def clopper_pearson(successes: int, n: int, level: float) -> tuple[float, float]:
    """Return exact bounds of a share, each one-sided at ``level`` (Clopper and Pearson 1934)."""
    from scipy.stats import beta

    low = float(beta.ppf(level, successes, n - successes + 1)) if successes else 0.0
    high = float(beta.isf(level, successes + 1, n - successes)) if successes < n else 1.0
    return low, high


def betting_bounds(values: np.ndarray, level: float, seed: int = 0) -> tuple[float, float]:
    """Return a lower and an upper bound of a mean, each one-sided at ``level``.

    Nothing is assumed of the distribution. A lower bound is the largest m for which bets that the
    mean exceeds m win 1 / ``level`` times the stake (Waudby-Smith and Ramdas 2024, section 4: the
    capital of predictable plug-in bets). The stake is divided among shuffled orders of the values,
    so that the bound hardly depends on their order.

    Args:
        values: independent values in [0, 1], shape (n,).
        level: probability that a bound is wrong, at most.
        seed: of the shuffles.
    """
    rows = np.tile(values, (_SHUFFLES, 1))
    orders = np.random.default_rng(seed).permuted(rows, axis=1)
    return _lower_bound(orders, level), 1 - _lower_bound(1 - orders, level)


def _lower_bound(orders: np.ndarray, level: float) -> float:
    counts = np.arange(2, orders.shape[1] + 2)
    means = (0.5 + np.cumsum(orders, axis=1)) / counts
    variances = (0.25 + np.cumsum((orders - means) ** 2, axis=1)) / counts
    # The bet on a value may depend on earlier values only.
    variances = np.insert(variances[:, :-1], 0, 0.25, axis=1)
    bets = np.sqrt(2 * math.log(1 / level) / (orders.shape[1] * variances))
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):  # the wealth falls with the mean that is bet against
        mean = (low + high) / 2
        stakes = np.minimum(bets, _LARGEST_BET / mean)
        wealth = np.log1p(stakes * (orders - mean)).sum(axis=1)
        if np.logaddexp.reduce(wealth) - math.log(len(orders)) >= math.log(1 / level):
            low = mean
        else:
            high = mean
    return low
