"""Measures against scikit-learn-free hand calculations and known values."""

import math

import numpy as np
import pytest

from components.calibration import expected_calibration_error, fit_temperature, probabilities
from components.measures import (
    adversary_measures,
    auroc,
    bootstrap,
    lss_measures,
    relation_measures,
    sentence_bleu_of,
    unli_measures,
)


def test_auroc_counts_ties_as_half():
    scores, positive = np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False])
    assert auroc(scores, positive) == pytest.approx((2 + 1 + 0.5) / 4)
    assert math.isnan(auroc(scores, np.array([True] * 4)))


def test_intervals_are_over_groups_not_rows():
    values = np.array([0.0] * 50 + [1.0] * 50)

    def statistics(rows):
        return {"mean": float(values[rows].mean())}

    rows = bootstrap(statistics, range(100))["mean"]["ci95"]
    groups = bootstrap(statistics, [0] * 50 + [1] * 50)["mean"]["ci95"]
    assert rows[1] - rows[0] < 0.25
    assert groups == [0.0, 1.0]


def test_unli_keys_and_values():
    label = np.array([0.1, 0.4, 0.6, 0.9])
    found = unli_measures(label, label, range(4), resamples=50)
    assert list(found) == ["pearson", "spearman", "mse", "ece"]
    assert found["pearson"]["value"] == pytest.approx(1)
    assert found["mse"]["value"] == 0
    constant = unli_measures(np.full(4, 0.5), label, range(4), resamples=5)
    assert constant["pearson"] == {"value": None, "ci95": None}


def test_relation_three_classes_and_two():
    predicted = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    labels = ["entailment", "neutral", "contradiction", "neutral"]
    three = relation_measures(predicted, labels, range(4), resamples=5)
    assert list(three) == ["accuracy", "macro_f1", "entailment_auroc", "brier", "ece"]
    assert three["accuracy"]["value"] == 0.75
    assert three["macro_f1"]["value"] == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    assert three["entailment_auroc"]["value"] == 1
    two = relation_measures(predicted, ["entailment", *["not_entailment"] * 3], range(4), 5)
    assert list(two) == ["entailment_auroc", "brier", "ece"]


def test_calibration_error_has_equal_mass_bins():
    predicted = np.repeat([0.2, 0.8], 15)
    observed = np.repeat([0.2, 0.5], 15)
    assert expected_calibration_error(predicted, observed) == pytest.approx(0.15)


def test_temperature_is_recovered():
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(4000, 3)) * 2
    truth = probabilities(logits, 2.5)
    target = np.array([generator.choice(3, p=row) for row in truth])
    assert fit_temperature(logits, target) == pytest.approx(2.5, rel=0.1)


def test_bleu_of_lss():
    assert sentence_bleu_of("Ann won the race today .", "Ann won the race today .") == 1
    assert sentence_bleu_of("Ann won the race today .", "") == 0
    assert 0 < sentence_bleu_of("Ann won the race today .", "Ann won the race") < 1


def test_lss_measures():
    found = lss_measures(
        claims=["Ann won the race", "Bob lost it", "Eve ran"],
        predicted=["Ann won the race", "", "Mallory ran"],
        gold_keeps=[[[True] * 4], [[False] * 3], [[True, True]]],
        gold_texts=[["Ann won the race"], [""], ["Eve ran"]],
        ratings=[5, 1, None],
        groups=range(3),
        resamples=5,
    )
    assert found["pearson_bleu_rating"]["value"] == pytest.approx(1)
    assert found["word_f1"]["value"] == pytest.approx(2 / 3)
    assert found["subsequence_share"]["value"] == pytest.approx(2 / 3)
    assert found["rouge_l"]["value"] == pytest.approx((1 + 1 + 0.5) / 3)


def test_perplexity_is_corpus_level():
    found = adversary_measures(
        np.array([math.log(2) * 10, math.log(8) * 30]),
        np.array([10, 30]),
        np.array([20, 60]),
        range(2),
        resamples=5,
    )
    assert found["perplexity"]["value"] == pytest.approx(2**2.5)
    assert found["bits_per_byte"]["value"] == pytest.approx(100 / 80)
