"""Measures against scikit-learn-free hand calculations and known values."""

import math

import numpy as np
import pytest

from components.calibration import expected_calibration_error, fit_classes, probabilities
from components.measures import (
    adversary_measures,
    lss_measures,
    relation_measures,
    sentence_bleu_of,
    unli_measures,
)
from records import LssExample


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
    assert fit_classes(logits, target)[0] == pytest.approx(2.5, rel=0.1)


def test_bleu_of_lss():
    assert sentence_bleu_of("Ann won the race today .", "Ann won the race today .") == 1
    assert sentence_bleu_of("Ann won the race today .", "") == 0
    assert 0 < sentence_bleu_of("Ann won the race today .", "Ann won the race") < 1


def lss_example(claim, *lss, ratings=(), stars=()):
    annotations = [{"lss": text} for text in lss]
    for annotation, rating in zip(annotations, ratings, strict=False):
        annotation["rating"] = rating
    for annotation, star in zip(annotations, stars, strict=False):
        annotation["lss_star"] = star
    return LssExample(reference=claim, claim=claim, annotations=annotations)


def test_lss_measures():
    records = [
        lss_example("Ann won the race", "Ann won the race", ratings=[5]),
        lss_example("Bob lost it", "", ratings=[1]),
        lss_example("Eve ran", "Eve ran"),
    ]
    found = lss_measures(records, ["Ann won the race", "", "Mallory ran"], resamples=5)
    assert list(found) == [
        "pearson_bleu_rating", "spearman_bleu_rating", "word_precision", "word_recall", "word_f1",
        "rouge_l_best", "rouge_l_mean", "bleu_best", "bleu_mean", "subsequence_share",
    ]  # fmt: skip
    assert found["pearson_bleu_rating"]["value"] == pytest.approx(1)
    assert found["word_f1"]["value"] == pytest.approx(2 / 3)
    assert found["subsequence_share"]["value"] == pytest.approx(2 / 3)
    assert found["rouge_l_best"]["value"] == pytest.approx((1 + 1 + 0.5) / 3)


def test_lss_against_the_best_and_the_mean_human():
    record = lss_example("Ann won the long race", "Ann won the long race", "Ann won", "Bob slept")
    found = lss_measures([record], ["Ann won"], resamples=0)
    value = {name: measure["value"] for name, measure in found.items()}
    # "Bob slept" is no subsequence and has no words of the claim to be compared with.
    assert value["word_precision"] == 1
    assert value["word_recall"] == pytest.approx((2 / 5 + 1) / 2)
    assert value["word_f1"] == pytest.approx((4 / 7 + 1) / 2)
    assert value["rouge_l_best"] == value["bleu_best"] == 1
    assert value["rouge_l_mean"] == pytest.approx((4 / 7 + 1 + 0) / 3)
    assert value["bleu_mean"] < 1


def test_lss_of_other_scripts_and_of_nothing():
    record = lss_example("Анна выиграла гонку", "Анна выиграла", "")
    found = lss_measures([record], ["Анна выиграла"], resamples=0)
    assert found["rouge_l_best"]["value"] == 1
    assert found["word_f1"]["value"] == pytest.approx(0.5)
    assert lss_measures([record], [""], resamples=0)["word_f1"]["value"] == pytest.approx(0.5)


def test_lss_star_is_compared_with_lss_star():
    records = [
        lss_example("Ann won the race", "Ann won", stars=["Ann has won"]),
        lss_example("Bob slept", "Bob slept"),
    ]
    found = lss_measures(records, ["Ann has won", "Bob sleeps"], star=True, resamples=0)
    assert found["word_f1"]["value"] == found["rouge_l_mean"]["value"] == 1
    assert found["subsequence_share"]["value"] == 0
    plain = lss_measures(records, ["Ann has won", "Bob slept"], resamples=0)
    assert plain["word_f1"]["value"] == 0.5


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
