"""Statistics against hand calculations and SciPy."""

import math

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr, ttest_rel

from components import statistics
from components.statistics import (
    auroc,
    auroc_within,
    average,
    balanced_accuracy,
    bootstrap,
    confusion,
    difference,
    holm,
    kappa,
    nan_mean,
    paired_t,
    pearson,
    quantile_bins,
    rand_indices,
    ranks,
    ratio,
    spearman,
)


def test_intervals_are_over_groups_not_rows():
    values = np.array([0.0] * 50 + [1.0] * 50)

    def statistics(rows):
        return {"mean": float(values[rows].mean())}

    rows = bootstrap(statistics, range(100))["mean"]["ci95"]
    groups = bootstrap(statistics, [0] * 50 + [1] * 50)["mean"]["ci95"]
    assert rows[1] - rows[0] < 0.25
    assert groups == [0.0, 1.0]
    single = bootstrap(statistics, ["a"] * 100)["mean"]
    assert single == {"value": 0.5, "ci95": None}


def test_value_of_a_single_group_has_no_interval():
    values = np.array([0.2, 0.4, 1.0, 0.0])

    def statistics(rows):
        first, rest = rows[rows == 0], rows[rows > 0]
        first_mean = values[first].mean() if len(first) else math.nan
        other = values[rest].mean() if len(rest) else math.nan
        return {"one": first_mean, "other": other, "difference": first_mean - other}

    actual = bootstrap(statistics, range(4))
    assert actual["one"] == {"value": 0.2, "ci95": None}
    assert actual["difference"]["value"] == pytest.approx(0.2 - 1.4 / 3)
    assert actual["difference"]["ci95"] is None
    assert actual["other"]["ci95"] == [0.0, 1.0]


def test_groups_with_empty_wholes_are_not_counted():
    parts, wholes = np.array([1.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0])
    assert ratio(parts, wholes, "abc") == (0.5, None, 1)
    two = np.array([2.0, 2.0, 0.0])
    assert ratio(parts, two, "abc")[1:] == ((0.0, 0.5), 2)
    assert ratio(parts, 0 * wholes, "abc") == (None, None, 0)


def test_interval_excludes_25_of_1000_draws_per_side():
    values, draws = np.random.default_rng(0).normal(size=50), []

    def statistics(rows):
        draws.append(values[rows].mean())
        return {"mean": draws[-1], "at times": draws[-1] if len(draws) % 2 else math.nan}

    actual = bootstrap(statistics, range(50))
    low, high = actual["mean"]["ci95"]
    resampled = np.array(draws[1:])
    assert (np.sum(resampled < low), np.sum(resampled > high)) == (25, 25)
    # What a draw has no value of does not count among them.
    assert np.isfinite(actual["at times"]["ci95"]).all()
    assert bootstrap(statistics, range(50))["at times"] == {"value": None, "ci95": None}


def test_ratios_have_the_intervals_of_the_bootstrap_in_any_order_of_rows():
    draw = np.random.default_rng(0)
    parts, wholes = draw.integers(0, 3, 60) * 1.0, draw.integers(1, 5, 60) * 1.0
    groups = np.array([f"topic {number:02}" for number in draw.integers(0, 20, 60)])

    def statistics(rows):
        return {"share": parts[rows].sum() / wholes[rows].sum()}

    expected = bootstrap(statistics, groups)["share"]
    for order in (np.arange(60), draw.permutation(60)):
        actual = ratio(parts[order], wholes[order], groups[order])
        assert actual.value == pytest.approx(expected["value"])
        assert actual.ci95 == pytest.approx(expected["ci95"])
        assert actual.n == len(set(groups))
    # Draws are of the names' order, which no hash changes from run to run.
    renamed = [f"{group}, renamed" for group in groups]
    assert ratio(parts, wholes, renamed).ci95 == pytest.approx(expected["ci95"])
    assert ratio(parts, 0 * wholes, groups) == (None, None, 0)
    assert ratio(parts, wholes, ["a"] * 60) == (actual.value, None, 1)
    assert ratio(parts, wholes, groups, resamples=0) == (actual.value, None, actual.n)


def test_differences_have_the_spread_of_both_sides():
    draw = np.random.default_rng(0)
    values, groups = draw.normal(size=60), draw.integers(0, 20, 60)
    low, high = ratio(values, np.ones(60), groups).ci95
    flat = difference(values, np.full(2, 0.5), groups, [0, 1])
    assert flat.value == pytest.approx(values.mean() - 0.5)
    assert flat.ci95 == pytest.approx((low - 0.5, high - 0.5))
    assert flat.n == len(set(groups)) + 2
    first, second = difference(values, values, groups, groups).ci95
    assert second - first == pytest.approx(math.sqrt(2) * (high - low), rel=0.1)
    for pair in ((values, values, groups, [0] * 60), (values, values, [0] * 60, groups)):
        assert difference(*pair).ci95 is None
    assert difference(values, np.empty(0), groups, []) == (None, None, 0)


def test_means_skip_nan():
    nan = math.nan
    table = np.array([[1.0, nan, nan], [3.0, 4.0, nan], [nan, 8.0, nan]])
    assert nan_mean(table).tolist()[:2] == [2, 6]
    assert math.isnan(nan_mean(table)[2])
    assert nan_mean(table[:, 0]) == 2
    assert math.isnan(nan_mean(np.array([])))
    assert (average([1, 2]), average([])) == (1.5, None)


def test_correlations_are_those_of_scipy():
    draw = np.random.default_rng(0)
    left, table = draw.normal(size=30), draw.integers(0, 5, (30, 3))  # with ties
    for ours, theirs in ((pearson, pearsonr), (spearman, spearmanr)):
        expected = [theirs(left, column).statistic for column in table.T]
        assert ours(left, table) == pytest.approx(expected, abs=1e-14)
        assert [ours(left, column) for column in table.T] == pytest.approx(expected, abs=1e-14)
        assert -1 <= ours(left, -3 * left) == pytest.approx(-1)
    assert ranks(np.array([3, 1, 3, 2])).tolist() == [3.5, 1, 3.5, 2]


def test_constant_column_has_nan_correlation():
    some = np.array([0.1, 0.4, 0.2])
    # Equal but for the rounding of their sums.
    equal = np.array([0.1 + 0.2, 0.3, 0.15 + 0.15])
    assert np.ptp(equal) > 0
    for flat in (np.full(3, 0.7), equal):
        assert math.isnan(pearson(some, flat))
        assert math.isnan(pearson(flat, some))
        both = pearson(some, np.stack([flat, some], axis=1))
        assert math.isnan(both[0])
        assert both[1] == pytest.approx(1)
    assert math.isnan(pearson(some[:1], some[:1]))
    assert math.isnan(spearman(some[:0], some[:0]))
    assert np.isnan(pearson(some[:1], some[:1, None])).all()
    assert pearson(some[:1], some[None, :]).shape == (3,)


def test_auroc_within_strata_compares_nothing_across_them():
    scores = np.array([0.1, 0.2, 0.3, 0.8, 0.9, 0.7, 0.5])
    positive = np.array([True, False, False, True, False, True, True])
    strata = np.array([0, 0, 0, 1, 1, 1, 2])
    # Two pairs of the first stratum are wrong, two of the second too; the third has one class.
    assert auroc_within(scores, positive, strata) == 0
    assert auroc_within(-scores, positive, strata) == 1
    assert auroc_within(scores, positive, np.zeros(7)) == auroc(scores, positive)
    assert math.isnan(auroc_within(scores, positive, np.arange(7)))


def test_quantile_bins_hold_as_many_and_keep_ties_together():
    values = np.array([5.0, 1, 2, 3, 4, math.nan])
    assert quantile_bins(values, 5).tolist() == [4, 0, 1, 2, 3, -1]
    assert len(set(quantile_bins(np.ones(9), 3))) == 1
    assert quantile_bins(np.array([math.nan]), 3).tolist() == [-1]


def test_auroc_counts_ties_as_half():
    scores, positive = np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False])
    assert auroc(scores, positive) == pytest.approx((2 + 1 + 0.5) / 4)
    assert math.isnan(auroc(scores, np.array([True] * 4)))


def test_balanced_accuracy_weighs_both_classes_alike():
    true = np.array([True, True, True, False])

    def accuracy(predicted):
        return balanced_accuracy(confusion(true, np.array(predicted)))

    assert confusion(true, np.array([True, True, False, True])).tolist() == [[0, 1], [1, 2]]
    assert accuracy([True, True, False, True]) == pytest.approx(1 / 3)
    assert accuracy([1, 1, 0.5, 0.5]) == pytest.approx((2.5 / 3 + 0.5) / 2)
    assert math.isnan(balanced_accuracy(confusion(true | True, true)))
    assert balanced_accuracy(np.array([[2, 0, 0], [1, 1, 0], [0, 3, 1]])) == pytest.approx(1.75 / 3)


def of_ratings(*pairs):
    table = np.zeros((5, 5))
    for first, second in pairs:
        table[first - 1, second - 1] += 1
    return kappa(table)


def test_kappa_by_hand():
    assert of_ratings((1, 1), (3, 3), (5, 5)) == 1
    assert of_ratings((1, 5), (5, 1)) == -1
    assert of_ratings((1, 1), (1, 5), (5, 1), (5, 5)) == 0
    # By hand: observed 1, by chance 23/3.
    assert of_ratings((1, 2), (2, 2), (4, 4)) == pytest.approx(1 - 3 / 23)
    assert math.isnan(of_ratings())
    assert math.isnan(of_ratings((3, 3), (3, 3)))
    # Of two classes: (agreement - chance) / (1 - chance) = (0.7 - 0.5) / 0.5.
    assert kappa(np.array([[20, 5], [10, 15]])) == pytest.approx(0.4)


def test_rand_indices_by_hand():
    assert rand_indices([("a", "x"), ("a", "x"), ("b", "y")]) == (1, 1)
    assert rand_indices([("a", "x"), ("a", "y"), ("b", "y")]) == pytest.approx((1 / 3, -0.5))
    five = zip("aaabb", "xxyyy", strict=True)  # by chance 1.6 pairs together, at most 4
    assert rand_indices(list(five)) == pytest.approx((6 / 10, (2 - 1.6) / (4 - 1.6)))
    assert rand_indices([("a", "x"), ("a", "x")]) == rand_indices([]) == (1, 1)
    assert rand_indices([("a", "x"), ("a", "y")])[0] == 0


def test_holm_and_the_paired_test_by_hand():
    assert holm([0.01, None, 0.04, 0.03, 0.005]) == pytest.approx([0.03, None, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    first, second = [0.9, 0.8, 0.7, np.nan], [0.5, 0.6, 0.65, 0.1]
    expected = ttest_rel(first[:3], second[:3], alternative="greater").pvalue
    assert paired_t(first, second, "greater") == (expected, 3, 1)
    assert paired_t(first, second, "less").p == pytest.approx(1 - expected)
    # Without a spread there is no t.
    assert paired_t([1, 2], [1, 2], "greater").p == 1
    assert [paired_t([2, 3], [1, 2], side).p for side in ("greater", "less")] == [0, 1]
    assert paired_t([1.0], [0.0], "greater") == (None, 1, 0)


def test_groups_are_drawn_whole_in_the_order_of_their_draw():
    groups, drawn = [*"abcab", "c", "c"], []
    bootstrap(lambda rows: {"rows": float(not drawn.append(rows.tolist()))}, groups, seed=3)
    members, generator = [[0, 3], [1, 4], [2, 5, 6]], np.random.default_rng(3)
    for rows in drawn[1:]:
        assert rows == [row for group in generator.integers(0, 3, 3) for row in members[group]]


def test_intervals_of_means_and_shares():
    value, (low, high), n = statistics.t_interval(np.array([1.0, 2.0, 3.0, np.nan]))
    assert (value, n) == (2, 3)
    assert (low, high) == pytest.approx((2 - 2.4841, 2 + 2.4841), abs=1e-3)
    assert statistics.t_interval(np.array([np.nan])) == (None, None, 0)
    # Clopper and Pearson (1934): (1 - p) ** 10 is the level at the ends.
    low, high = statistics.clopper_pearson(0, 10, 0.01)
    assert (low, high) == pytest.approx((0.0, 1 - 0.01**0.1))
    assert statistics.clopper_pearson(10, 10, 0.01) == pytest.approx((1 - high, 1.0))
    low, high = statistics.clopper_pearson(3, 10, 0.025)
    assert (low, high) == pytest.approx((0.0667, 0.6525), abs=1e-4)


def test_betting_bounds_are_sharp_for_values_with_a_small_spread():
    draw = np.random.default_rng(0)
    uppers = []
    for _ in range(50):
        values = np.clip(0.5 + draw.normal(0, 0.1, 200), 0, 1)
        low, high = statistics.betting_bounds(values, 1e-4)
        assert low < 0.5 < high
        uppers.append(high)
    assert np.mean(np.array(uppers) < 0.55) > 0.9


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_betting_bounds_are_rarely_wrong_for_values_of_0_and_1(share):
    draw = np.random.default_rng(1)
    wrong = 0
    for _ in range(400):
        low, high = statistics.betting_bounds((draw.random(100) < share).astype(float), 0.05)
        wrong += not low <= share <= high
    assert wrong / 400 <= 0.1
