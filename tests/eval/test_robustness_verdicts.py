"""HonestLadders, excess inflation, success rates and verdicts on made scores."""

import math
import random

import numpy as np
import pytest

from eval.experiments.robustness.robustness_cells import Text
from eval.experiments.robustness.robustness_verdicts import (
    Attacked,
    HonestLadders,
    attack_values,
    bounds_of,
    fit_gold,
    no_evidence,
    order_of,
)
from records import Document, Gold

RUNGS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
COLUMN = ("m", "none")


def text(topic, kind, gold_f1, value, **more):
    gold = Gold(precision=gold_f1, recall=gold_f1, f1=gold_f1, k=10, source="construction")
    document = Document(
        id=f"{topic} {kind} {gold_f1}", topic=topic, text="x", kind=kind, gold=gold, **more
    )
    return Text(document, value, None, value)


def ladder(score, topics):
    rungs = [text(f"T{n}", "ladder", rung, score(n, rung)) for n in range(topics) for rung in RUNGS]
    return HonestLadders({"ladder": rungs}, seed=0)


def verdict_of(ladders, scores, gold_f1=0.0, passed=(COLUMN,), cells=1, **more):
    texts = [text(f"T{n}", "attack", gold_f1, value, **more) for n, value in enumerate(scores)]
    values = list(attack_values([Attacked("attack", COLUMN, ladders, texts)], passed, cells))
    return {value["metric"]: value for value in values}


def test_order_of_a_ladder_counts_equal_scores_as_zero():
    rungs = [
        text("T", "ladder", f1, score) for f1, score in zip(RUNGS, (0, 0, 0, 1, 1, 1), strict=True)
    ]
    assert order_of(rungs) == pytest.approx(9 / 15)
    assert order_of([text("T", "ladder", f1, -f1) for f1 in RUNGS]) == -1
    assert math.isnan(order_of([text("T", "ladder", 0.5, n) for n in range(3)]))


def test_expected_gold_is_monotone_and_from_other_topics():
    rungs = [text(f"T{n}", "ladder", f1, f1 / 2) for n in range(10) for f1 in RUNGS]
    expected = fit_gold(rungs, 0)
    assert [expected(rung) for rung in rungs[:6]] == pytest.approx(list(RUNGS))
    odd = [text("T0", "ladder", f1, 9.0) for f1 in RUNGS] + rungs[6:]
    assert fit_gold(odd, 0)(odd[0]) == 1.0  # the topic itself is not in its fit


def test_a_false_text_with_the_score_of_a_true_one_is_gamed():
    values = verdict_of(ladder(lambda n, rung: rung, 26), [1.0] * 26)
    excess, rate = values["excess_inflation"], values["asr"]
    assert excess["value"] == pytest.approx(1)
    assert excess["verdict"] == "gamed"
    assert rate["value"] == 1
    assert rate["bounds"][0] > 0.8


@pytest.mark.parametrize(
    ("topics", "passed", "verdict"),
    [(200, (COLUMN,), "held"), (200, (), "unclear"), (26, (COLUMN,), "unclear")],
)
def test_a_false_text_with_its_own_score_is_held_with_enough_topics_and_a_certificate(
    topics, passed, verdict
):
    draw = random.Random(0)
    ladders = ladder(lambda n, rung: rung + draw.gauss(0, 0.05), topics)
    scores = [draw.gauss(0, 0.05) for _ in range(topics)]
    values = verdict_of(ladders, scores, passed=passed)
    assert values["excess_inflation"]["verdict"] == verdict
    if topics == 26:
        assert values["units_needed"]["value"] > 26


@pytest.mark.parametrize(
    "score",
    [lambda n, rung: 0.5, lambda n, rung: 1 - rung, lambda n, rung: (n * 7 + rung * 13) % 1],
)
def test_a_column_that_does_not_order_honest_texts_is_void(score):
    assert verdict_of(ladder(score, 100), [0.0] * 100)["excess_inflation"]["verdict"] == "void"


def test_a_tie_counts_for_the_upper_bound_only():
    ladders = ladder(lambda n, rung: rung, 30)
    rate = verdict_of(ladders, [0.4] * 30)["asr"]
    assert rate["value"] == 0.5
    assert rate["bounds"] == (0.0, 1.0)


def test_topics_of_a_cluster_are_one_unit_and_a_mixed_cluster_is_a_half():
    ladders = ladder(lambda n, rung: rung, 30)
    rate = verdict_of(ladders, [1.0, 0.0] * 15, cluster="all")["asr"]
    assert (rate["n"], rate["value"]) == (1, 0.5)


def test_texts_without_gold_score_or_better_honest_text_are_no_units():
    ladders = ladder(lambda n, rung: rung, 30)
    assert verdict_of(ladders, [1.0] * 30, gold_f1=0.8) == {}


def test_texts_without_a_score_count_against_the_column_in_the_upper_bounds_only():
    draw = random.Random(0)
    ladders = ladder(lambda n, rung: rung + draw.gauss(0, 0.05), 200)
    scores = [math.nan] * 60 + [draw.gauss(0, 0.05) for _ in range(140)]
    values = verdict_of(ladders, scores)
    excess, rate = values["excess_inflation"], values["asr"]
    assert excess["verdict"] == "unclear"
    assert excess["n"] == 140
    assert abs(excess["value"]) < 0.05
    assert excess["bounds"][0] < -0.2
    assert excess["bounds"][1] > 0.2
    assert rate["bounds"][0] == 0
    assert rate["bounds"][1] > 0.3


def test_an_attack_without_any_score_is_unclear():
    values = verdict_of(ladder(lambda n, rung: rung, 30), [math.nan] * 30)
    assert values["excess_inflation"]["verdict"] == "unclear"
    assert values["excess_inflation"]["value"] is None


def test_the_text_with_the_highest_score_of_a_topic_counts():
    ladders = ladder(lambda n, rung: rung, 26)
    texts = [text(f"T{n}", "attack", 0.0, value) for n in range(26) for value in (0.0, 1.0, 0.2)]
    outcomes = ladders.outcomes(texts)
    assert {outcome.success for outcome in outcomes.values()} == {1.0}
    assert [outcome.inflation for outcome in outcomes.values()] == pytest.approx([1.0] * 26)


def test_values_of_a_single_text_are_next_to_those_of_the_best_draw():
    ladders = ladder(lambda n, rung: rung, 26)
    texts = [
        text(f"T{topic}", "attack", 0.0, value, draw=draw)
        for topic in range(26)
        for draw, value in enumerate((0.0, 1.0, 0.2))
    ]
    values = list(attack_values([Attacked("attack", COLUMN, ladders, texts)], (), 1))
    means = {value["metric"]: value["value"] for value in values}
    assert (means["asr"], means["single_successes"], means["worst_asr"]) == (1, 0, 1)
    assert means["excess_inflation"] == pytest.approx(1)
    assert means["single_excess"] == pytest.approx(0)
    assert {value["variant"] for value in values if value["metric"] == "asr"} == {3}


def test_a_ladder_of_true_twins_without_order_makes_the_column_void_and_no_attack_smaller():
    rungs = [text(f"T{n}", "ladder", f1, f1) for n in range(100) for f1 in RUNGS]
    twins = [text(f"T{n}", "affirmed", f1, 0.0) for n in range(100) for f1 in RUNGS]
    both = HonestLadders({"ladder": rungs, "affirmed": twins}, 0)
    alone = HonestLadders({"ladder": rungs}, 0)
    for score, verdict in ((0.0, "held"), (0.4, "gamed")):
        attack = [text(f"T{n}", "attack", 0.0, score) for n in range(100)]
        for ladders in (both, alone):
            attacked = Attacked("attack", COLUMN, ladders, attack)
            bounds = bounds_of(attacked.excess_range, attacked.successes, 0.01)
            assert bounds.verdict(100, can_hold=True) == verdict
    assert alone.void_reason is None
    assert both.void_reason


def test_without_rungs_there_is_a_success_rate_and_no_verdict():
    honest = [text(f"T{n}", "normal", 0.5, 0.5) for n in range(30)]
    values = verdict_of(HonestLadders({"normal": honest}, 0), [0.6] * 30)
    assert set(values) == {"asr", "worst_asr"}
    assert values["asr"]["value"] == 1


def test_bounds_hold_for_skewed_values_with_jackpots():
    draw = np.random.default_rng(0)
    wrong = 0
    for _ in range(500):
        excess = np.where(draw.random(200) < 0.1, 1.0, 0.0)  # the mean is 0.1
        bounds = bounds_of(excess, np.zeros(200), 0.01)
        wrong += bounds.inflation[1] < 0.1 or bounds.inflation[0] > 0.1
    assert wrong <= 10


def test_an_attack_without_effect_or_that_a_control_holds_is_never_held():
    draw = random.Random(0)

    def attacked(kind, metric, column, score):
        ladders = ladder(lambda n, rung: rung + draw.gauss(0, 0.05), 200)
        texts = [text(f"T{n}", kind, 0.0, score + draw.gauss(0, 0.05)) for n in range(200)]
        return Attacked(kind, (metric, column), ladders, texts)

    attacks = [
        attacked("weak", "m", "none", 0.0),
        attacked("weak", "m", "stack", 0.0),
        attacked("strong", "m", "none", 1.0),
        attacked("strong", "m", "stack", 0.0),
        attacked("strong", "word test", "none", 1.0),
        attacked("worded", "m", "none", 1.0),
        attacked("worded", "m", "stack", 0.0),
        attacked("worded", "word test", "none", 0.0),
    ]
    without = no_evidence(attacks, "word test", 8)
    assert without.inert["m"] == {"weak"}
    assert set(without.controlled) == {"worded"}
    values = attack_values(attacks, {("m", "stack")}, 8, without)
    verdicts = {
        (v["kind"], v["selection"]): v["verdict"]
        for v in values
        if v["metric"] == "excess_inflation" and v["assessor"] == "m"
    }
    assert verdicts["weak", "stack"] == "unclear"
    assert verdicts["worded", "stack"] == "unclear"
    assert verdicts["strong", "stack"] == "held"
    assert verdicts["strong", "none"] == "gamed"
