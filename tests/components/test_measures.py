"""Measures against scikit-learn-free hand calculations and known values."""

import math

import numpy as np
import pytest

from components.measures import (
    adversary_measures,
    bag_scores,
    lss_measures,
    preference_measures,
    relation_measures,
    sentence_bleu_of,
    target_measures,
    unli_measures,
)
from records import LssExample


def test_unli_keys_and_values():
    label = np.array([0.1, 0.4, 0.6, 0.9])
    result = unli_measures(label, label, range(4), resamples=50)
    assert list(result) == ["pearson", "spearman", "mse", "ece"]
    assert result["pearson"]["value"] == pytest.approx(1)
    assert result["mse"]["value"] == 0
    constant = unli_measures(np.full(4, 0.5), label, range(4), resamples=5)
    assert constant["pearson"] == {"value": None, "ci95": None}
    assert constant["mse"]["value"] == pytest.approx((0.4**2 + 0.1**2) / 2)
    assert constant["ece"]["value"] == pytest.approx(0)  # labels of 0.5 in the mean
    order = unli_measures(label**3, label, range(4), resamples=0)
    assert order["spearman"]["value"] == pytest.approx(1)
    assert order["pearson"]["value"] < 0.99


def test_relation_three_classes_and_two():
    predicted = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    labels = ["entailment", "neutral", "contradiction", "neutral"]
    three = relation_measures(predicted, labels, range(4), resamples=5)
    assert list(three) == ["accuracy", "macro_f1", "entailment_auroc", "brier", "ece"]
    assert three["accuracy"]["value"] == 0.75
    assert three["macro_f1"]["value"] == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    assert three["entailment_auroc"]["value"] == 1
    assert three["brier"]["value"] == pytest.approx((0.2**2 + 0.2**2 + 0.1**2 + 0.6**2) / 4)
    # Of the called class; two rows of one probability share a bin.
    assert three["ece"]["value"] == pytest.approx((0.2 + 0.3 + 0.3 + 0.6) / 4)
    two = relation_measures(predicted, ["entailment", *["not_entailment"] * 3], range(4), 5)
    assert list(two) == ["entailment_auroc", "brier", "ece"]
    assert two["ece"]["value"] == pytest.approx((0.2 + 0.2 + 0.1 + 0.6) / 4)


def test_calibration_error_has_no_interval():
    # Of these calibrated probabilities the draws' ECE is 0.07 to 0.13, and the true one 0.
    random = np.random.default_rng(0)
    p, other = random.random(300), random.random(300)
    true = random.random(300) < p
    soft = unli_measures(p, true * 1.0, range(300), resamples=20, against=other)
    labels = ["entailment" if first else "not_entailment" for first in true]
    three = [np.stack([first, 1 - first, 0 * first], axis=1) for first in (p, other)]
    hard = relation_measures(three[0], labels, range(300), resamples=20, against=three[1])
    for result in (soft, hard):
        assert 0.02 < result["ece"]["value"] < 0.1
        without = [name for name, measure in result.items() if measure["ci95"] is None]
        assert without == ["ece", "ece_difference"]


def test_bleu_of_lss():
    assert sentence_bleu_of("Ann won the race today .", "Ann won the race today .") == 1
    assert sentence_bleu_of("Ann won the race today .", "") == 0
    # All n-grams are the claim's; what is left is the brevity penalty exp(1 - 6 / 4).
    brief = sentence_bleu_of("Ann won the race today .", "Ann won the race")
    assert brief == pytest.approx(math.exp(-1 / 2))


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
    result = lss_measures(records, ["Ann won the race", "", "Mallory ran"], resamples=5)
    assert list(result) == [
        "pearson_bleu_rating", "spearman_bleu_rating", "word_precision", "word_recall", "word_f1",
        "rouge_l_best", "rouge_l_mean", "bleu_best", "bleu_mean", "subsequence_share",
    ]  # fmt: skip
    assert result["pearson_bleu_rating"]["value"] == pytest.approx(1)
    for name in ("word_precision", "word_recall", "word_f1"):
        assert result[name]["value"] == pytest.approx(2 / 3)
    assert result["subsequence_share"]["value"] == pytest.approx(2 / 3)
    assert result["rouge_l_best"]["value"] == pytest.approx((1 + 1 + 0.5) / 3)


def test_lss_against_the_best_and_the_mean_human():
    record = lss_example("Ann won the long race", "Ann won the long race", "Ann won", "Bob slept")
    result = lss_measures([record], ["Ann won"], resamples=0)
    value = {name: measure["value"] for name, measure in result.items()}
    # "Bob slept" is no subsequence and has no words of the claim to be compared with.
    assert value["word_precision"] == 1
    assert value["word_recall"] == pytest.approx((2 / 5 + 1) / 2)
    assert value["word_f1"] == pytest.approx((4 / 7 + 1) / 2)
    assert value["rouge_l_best"] == value["bleu_best"] == 1
    assert value["rouge_l_mean"] == pytest.approx((4 / 7 + 1 + 0) / 3)
    assert value["bleu_mean"] < 1
    longer = lss_measures([lss_example(record.claim, "Ann won the race")], [record.claim], False, 0)
    assert longer["word_precision"]["value"] == pytest.approx(4 / 5)
    # Of 5, 4, 3 and 2 n-grams 4, 2, 1 and none, by method 4 as good as 1 / (2 * 5 / ln 5).
    expected = (4 / 5 * 2 / 4 * 1 / 3 * (math.log(5) / 5 / 2) / 2) ** (1 / 4)
    assert longer["bleu_best"]["value"] == pytest.approx(expected)


def test_words_without_order_are_counted_as_often_as_they_are_there():
    result = bag_scores(["Ann has won", "won won"], "Ann won today")
    assert result == [pytest.approx((2 / 3, 2 / 3, 2 / 3)), pytest.approx((1 / 3, 1 / 2, 2 / 5))]


def test_perplexity_is_corpus_level():
    result = adversary_measures(
        np.array([math.log(2) * 10, math.log(8) * 30]),
        np.array([10, 30]),
        np.array([20, 60]),
        range(2),
        resamples=5,
    )
    assert result["perplexity"]["value"] == pytest.approx(2**2.5)
    assert result["bits_per_byte"]["value"] == pytest.approx(100 / 80)


def test_perplexity_and_accuracy_of_targets_are_weighted():
    command = {
        "negative_log_likelihood": np.array([math.log(2) * 10, math.log(8) * 30, 99]),
        "tokens": np.array([10, 30, 5]),
        "hits": np.array([5, 25, 5]),
        "groups": range(3),
        "resamples": 0,
    }
    result = target_measures(weight=np.array([3.0, 1.0, 0.0]), **command)
    assert result["perplexity"]["value"] == pytest.approx(2 ** ((3 * 10 + 3 * 30) / 60))
    assert result["token_accuracy"]["value"] == pytest.approx((3 * 5 + 25) / 60)
    assert target_measures(weight=np.zeros(3), **command)["perplexity"]["value"] is None


def test_a_tie_of_rewards_is_no_preference():
    result = preference_measures(np.array([1.0, 0.5]), np.array([0.0, 0.5]), range(2), 0)
    assert result["reward_accuracy"]["value"] == result["reward_margin"]["value"] == 0.5
    sure = math.log(1 + math.exp(-1))
    assert result["dpo_loss"]["value"] == pytest.approx((sure + math.log(2)) / 2)
