"""Calibration recovers what was done to the logits, and never changes their order."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from components.calibration import (
    expected_calibration_error,
    fit_classes,
    fit_platt,
    probabilities,
)


def test_platt_recovers_slope_and_shift():
    generator = np.random.default_rng(0)
    truth = generator.normal(size=4000)
    temperature, shift = fit_platt(2 * truth + 1, expit(truth))
    assert (temperature, shift) == (pytest.approx(2, rel=0.01), pytest.approx(-0.5, abs=0.01))
    calibrated = probabilities(2 * truth + 1, temperature, shift)
    assert expected_calibration_error(calibrated, expit(truth)) < 0.001
    assert np.all(np.diff(calibrated[np.argsort(truth)]) >= 0)


def test_platt_flattens_predictions_that_do_not_help_and_keeps_their_order():
    generator = np.random.default_rng(0)
    logits = generator.normal(size=500)
    temperature, shift = fit_platt(logits, expit(-logits))
    assert temperature == pytest.approx(20)
    assert np.all(np.diff(probabilities(np.sort(logits), temperature, shift)) > 0)


def test_classes_recover_temperature_and_shift_from_three_classes_and_from_two():
    generator = np.random.default_rng(0)
    truth = generator.normal(size=(6000, 3)) * 2
    target = np.asarray([generator.choice(3, p=p) for p in softmax(truth, axis=1)])
    two_class = np.where(target == 0, 0, 3)
    shifted = 3 * truth
    shifted[:, 0] += 1.5
    for labels in (target, two_class):
        temperature, shift = fit_classes(shifted, labels)
        assert temperature == pytest.approx(3, rel=0.1)
        assert shift == pytest.approx(-0.5, abs=0.1)
    # Logits may also say too little.
    assert fit_classes(truth / 4, target)[0] == pytest.approx(1 / 4, rel=0.1)
    predicted = probabilities(shifted, *fit_classes(shifted, two_class))
    assert expected_calibration_error(predicted[:, 0], (target == 0) * 1.0) < 0.02


def test_shares_of_classes_are_fitted_as_shares():
    generator = np.random.default_rng(0)
    truth = generator.normal(size=(400, 3)) * 2
    shares = np.pad(softmax(truth, axis=1), ((0, 0), (0, 1)))
    shifted = 3 * truth
    shifted[:, 0] += 1.5
    temperature, shift = fit_classes(shifted, shares)
    assert temperature == pytest.approx(3, rel=1e-2)
    assert shift == pytest.approx(-0.5, abs=1e-2)
    target = generator.integers(4, size=400)
    assert fit_classes(shifted, target) == fit_classes(shifted, np.eye(4)[target])


def test_one_class_alone_is_not_shifted():
    logits = np.random.default_rng(0).normal(size=(50, 3))
    assert fit_classes(logits, np.zeros(50, dtype=int))[1] == 0
    assert fit_classes(logits, np.full(50, 3))[1] == 0
    for first in (0.0, 1.0):
        assert fit_platt(logits[:, 0], np.full(50, first)) == (1, 0)
    # All as likely as each other is no extreme.
    assert probabilities(logits[:, 0], *fit_platt(logits[:, 0], np.full(50, 0.9))).mean() > 0.85


def test_the_order_of_rows_of_one_prediction_changes_no_error():
    predicted, observed = np.full(30, 0.5), np.repeat([0.0, 1.0], 15)
    shuffled = np.random.default_rng(0).permutation(30)
    for order in (np.arange(30), shuffled):
        assert expected_calibration_error(predicted, observed[order]) == pytest.approx(0)
    # Votes of 2 in 3: a third of the bins is of 0, the others are of 2/3, half of which are true.
    votes = np.repeat([0.0, 2 / 3], (10, 20))
    true = np.repeat([0.0, 1.0], (20, 10))
    assert expected_calibration_error(votes, true) == pytest.approx(2 / 3 * (2 / 3 - 1 / 2))


def test_gaps_of_either_side_add_to_the_error():
    predicted, observed = np.repeat([0.2, 0.8], 15), np.repeat([0.2, 0.5], 15)
    assert expected_calibration_error(predicted, observed) == pytest.approx(0.15)
    predicted, observed = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    assert expected_calibration_error(predicted, observed) == pytest.approx(0.3)
    assert np.isnan(expected_calibration_error(np.empty(0), np.empty(0)))
