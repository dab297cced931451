"""Values with intervals over units."""

import numpy as np
import pytest

from components.statistics import bootstrap, nan_mean
from eval.experiments.quantities import Quantity, estimate, explode

UNITS = ["Ann", "Ann", "Bob", "Cem"]
NAN = float("nan")


def test_a_mean_equals_the_bootstrap_of_the_mean_of_rows_with_a_value():
    column = np.array([1.0, 0.0, 0.5, NAN])
    mean, statistic = estimate(
        [
            Quantity({"metric": "a"}, [column], failed=2),
            Quantity({"metric": "b"}, [column], lambda values: float(values.mean())),
        ],
        UNITS,
        seed=3,
    )
    expected = bootstrap(lambda rows: {"": nan_mean(column[rows])}, UNITS, 3)[""]
    assert mean["value"] == statistic["value"] == 0.5 == expected["value"]
    assert mean["ci95"] == pytest.approx(expected["ci95"])
    assert statistic["ci95"] == pytest.approx(expected["ci95"])
    assert [row["n"] for row in (mean, statistic)] == [2, 2]
    assert (mean["metric"], mean["failed"], statistic["failed"]) == ("a", 2, 0)


def test_a_ratio_of_two_columns_counts_units_with_a_denominator():
    parts, wholes = np.array([1.0, 2, 0, 0]), np.array([2.0, 2, 0, 4])
    (row,) = estimate([Quantity({}, [parts, wholes])], UNITS, seed=0)
    assert (row["value"], row["n"]) == (3 / 8, 2)


def test_columns_without_a_complete_row_have_no_value():
    empty = Quantity({}, [np.full(4, NAN)])
    rows = list(estimate([empty, empty._replace(statistic=np.mean)], UNITS, seed=0))
    assert [(row["value"], row["ci95"], row["n"]) for row in rows] == [(None, None, 0)] * 2


def test_a_unit_without_items_keeps_a_row_of_nan():
    (first, second), units = explode([[(1, None), (0, 1)], []], ["Ann", "Bob"], 2)
    assert units == ["Ann", "Ann", "Bob"]
    np.testing.assert_array_equal(first, [1, 0, NAN])
    np.testing.assert_array_equal(second, [NAN, 1, NAN])
