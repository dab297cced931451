"""Gains, success rates, verdicts and costs, checked by hand on hand-made scores."""

import random
from itertools import permutations

import numpy as np
import pytest

from components.gold import add_label_gold
from eval.defences import NO_DEFENCE, Defence
from eval.experiments.robustness.robustness_cells import cells_of
from eval.experiments.robustness.robustness_correlations import agreement, truth
from eval.experiments.robustness.robustness_curve import curve_values
from eval.experiments.robustness.robustness_grid import NONE, Judged, Row
from eval.experiments.robustness.robustness_search import RANDOM, pick_values, search_best
from eval.experiments.robustness.robustness_values import (
    attack_values,
    compare,
    cost_values,
    duplicate_columns,
    effect_values,
    score_values,
    skewed,
    stratum_gains,
)
from eval.metrics.document import score_document
from records import Claim, Document, Gold, Verdict, gold_scores

TOPICS = [f"T{number}" for number in range(12)]
SCORED = {NONE: NO_DEFENCE, "core": Defence(), "recall": Defence(score="f1_at_k", k=4)}


def gold(f1):
    return Gold(precision=f1, recall=f1, f1=f1, k=10, source="construction")


def document(topic, kind="normal", number=0, **more):
    return Document(id=f"{topic}-{kind}-{number}", topic=topic, text="x", kind=kind, **more)


def rows(scores):
    """Rows of one text metric ``m``: ``{kind: (score by topic number, gold F1)}``."""
    return [
        Row(
            document=document(topic, kind, gold=None if f1 is None else gold(f1)),
            metrics={},
            text_scores={"m": score(number)},
        )
        for kind, (score, f1) in scores.items()
        for number, topic in enumerate(TOPICS)
    ]


def judged_row(topic, kind, columns, **more):
    """A row of the metric ``m``; ``columns``: defence to one label per claim, ``-`` is dropped."""
    labels = {"S": "supported", "N": "not_supported", "F": "failed"}
    claims = [Claim(id=f"c{n}", text=f"claim {n}") for n in range(len(columns[NONE]))]
    doc = document(topic, kind, **more)
    verdicts, scores = {}, []
    for column, letters in columns.items():
        verdicts[column] = [
            Verdict(claim=f"c{n}", assessor="a", label=labels[letter], reason="cut")
            for n, letter in enumerate(letters)
            if letter != "-"
        ]
        kept = {verdict.claim for verdict in verdicts[column]}
        selected = None if column == NONE else kept
        score = score_document(doc, claims, verdicts[column], selected, 0, 0, column)
        scores.append(score)
    metric = Judged(claims=claims, selections={}, verdicts=verdicts, scores=scores)
    return Row(document=doc, metrics={"m": metric})


def only(values, **fields):
    (row,) = [v for v in values if all(v.get(name) == value for name, value in fields.items())]
    return row


def attacks(table, **options):
    cells = cells_of(rows(table), {NONE: NO_DEFENCE})
    return list(attack_values(compare(cells, "normal", [], {}), **{"seed": 0} | options))


def test_success_rate_stays_1_while_the_gain_shrinks_as_honest_texts_improve():
    for honest, gain in ((0.5, 0.5), (0.8, 0.2)):
        values = attacks(
            {"normal": (lambda n, honest=honest: honest, 0.5), "info": (lambda n: 1.0, 0.1)}
        )
        assert only(values, metric="asr")["value"] == 1
        assert only(values, metric="gain")["value"] == pytest.approx(gain)
        assert only(values, metric="gain")["verdict"] == "gamed"
        low, high = only(values, metric="asr")["ci95"]
        assert 0.7 < low < high == 1
        assert only(values, metric="worst_asr")["variant"] == "info"


def test_gold_is_never_gamed_and_a_random_metric_half_the_time():
    values = attacks({"normal": (lambda n: 0.5, 0.5), "info": (lambda n: 0.1, 0.1)})
    assert only(values, metric="asr")["value"] == 0
    assert only(values, metric="gain")["verdict"] == "held"
    draw = random.Random(1)
    rates, verdicts = [], []
    for _ in range(60):
        table = {kind: (lambda n: draw.random(), f1) for kind, f1 in (("normal", 0.5), ("a", 0.1))}
        values = attacks(table)
        rates.append(only(values, metric="asr")["value"])
        verdicts.append(only(values, metric="gain")["verdict"])
    assert 0.45 < sum(rates) / len(rates) < 0.55
    assert verdicts.count("gamed") <= 2  # 0.6 are expected at the level of 1 %


def test_equal_gold_is_a_shift_and_better_gold_a_rise_and_no_gold_has_no_verdict():
    table = {
        "normal": (lambda n: 0.5, 0.5),
        "edited": (lambda n: 0.5, 0.5),
        "corrected": (lambda n: 0.9, 0.9),
        "sampled": (lambda n: 0.9, None),
    }
    values = attacks(table)
    assert only(values, kind="edited", metric="shift")["value"] == 0
    assert only(values, kind="corrected", metric="rise")["value"] == pytest.approx(0.4)
    assert "verdict" not in only(values, kind="sampled", metric="gain")
    assert not [v for v in values if v["metric"] in ("asr", "worst_asr")]


def test_a_tie_counts_half_and_fewer_than_ten_topics_are_unclear():
    values = attacks({"normal": (lambda n: 0.5, 0.5), "info": (lambda n: 0.5, 0.1)})
    assert only(values, metric="asr")["value"] == 0.5
    few = {"normal": (lambda n: 0.5, 0.5), "info": (lambda n: None if n > 8 else 1.0, 0.1)}
    values = attacks(few)
    assert only(values, metric="gain")["verdict"] == "unclear"
    assert only(values, metric="asr")["n"] == 9
    assert not [v for v in values if v["metric"] == "worst_asr"]
    # Three topics, of which a quarter of the flips has one sign, take no power from other cells.
    few["info"] = (lambda n: None if n > 2 else 0.9, 0.1)
    few["trivia"] = (lambda n: 0.6 + n / 100, 0.1)
    assert only(attacks(few), metric="gain", kind="trivia")["verdict"] == "gamed"


def test_texts_are_paired_with_the_text_they_were_made_of():
    honest = [document("A", number=n, gold=gold(0.5)) for n in (0, 1)]
    honest.append(document("B", gold=gold(0.5)))
    made = [document("A", "info", gold=gold(0.1), clean="A-normal-1")]
    made.append(document("B", "info", gold=gold(0.1)))
    scores = dict(zip((d.id for d in honest + made), (0.1, 0.4, 0.5, 0.9, 0.6), strict=True))
    table = [Row(document=d, metrics={}, text_scores={"m": scores[d.id]}) for d in honest + made]
    comparison = compare(cells_of(table, {NONE: NO_DEFENCE}), "normal", [], {})[0]
    assert comparison.gains == pytest.approx({"A": 0.5, "B": 0.1})


def test_controls_and_duplicates_are_outside_the_family():
    table = {"normal": (lambda n: 0.5, 0.5), "info": (lambda n: 0.52 + n / 100, 0.1)}
    table_rows = rows(table)
    cells = cells_of(table_rows, {NONE: NO_DEFENCE})
    cells["twin", NONE] = cells["m", NONE]
    duplicates = duplicate_columns(cells)
    assert duplicates == {("twin", NONE): "m, none"}
    comparisons = compare(cells, "normal", ["m"], duplicates)
    assert [c.is_control for c in comparisons] == [True, True]
    # The control's own p-value is computed all the same.
    assert only(attack_values(comparisons, 0), metric="gain", assessor="m")["p"] < 0.01


def test_an_adaptive_attacker_takes_the_best_text_of_each_topic_and_may_not_transfer():
    # Two metrics like different variants on even and on odd topics; the honest text scores 0.5.
    scored = rows(
        {"normal": (lambda n: 0.5, 0.5), "better": (lambda n: 1.0, 0.9)}
        | {f"v{v}": (lambda n, v=v: 0.9 if n % 2 == v else 0.3, 0.4) for v in range(2)}
    )
    for row in scored:
        score = row.text_scores["m"]
        row.text_scores["w"] = 1.2 - score if row.document.kind in ("v0", "v1") else score
    comparisons = compare(cells_of(scored, {NONE: NO_DEFENCE}), "normal", [], {})
    picks = search_best(comparisons, seed=0)
    values = list(attack_values(picks, 0))
    best = f"best of m, {NONE}"
    for metric, gain, rate in (("m", 0.4, 1.0), ("w", -0.2, 0.0)):
        row = only(values, metric="gain", kind=best, assessor=metric)
        assert (row["value"], row["n"]) == (pytest.approx(gain), 12)
        assert only(values, metric="asr", kind=best, assessor=metric)["value"] == rate
    assert only(values, metric="gain", kind=best, assessor="m")["verdict"] == "gamed"
    assert [c.is_control for c in picks if c.kind == RANDOM] == [True, True]
    picked = list(pick_values(picks))
    assert only(picked, metric="gold_gain", kind=best)["value"] == pytest.approx(-0.1)
    assert only(picked, metric="picked_share", kind=best, variant="v0")["value"] == 0.5
    assert search_best([], seed=0) == []


def test_the_effect_of_a_defence_is_the_gain_that_it_removes():
    table = [
        judged_row(topic, kind, {NONE: plain, "core": kept}, gold=gold(f1))
        for topic in TOPICS
        for kind, plain, kept, f1 in (
            ("normal", "SSNN", "SSNN", 0.5),
            ("info", "SSSS", "S---", 0.1),
        )
    ]
    defences = {name: SCORED[name] for name in (NONE, "core")}
    comparisons = compare(cells_of(table, defences), "normal", [], {})
    effect = only(effect_values(comparisons, 0), metric="effect")
    assert (effect["value"], effect["verdict"]) == (0, "unclear")
    recall = {name: SCORED[name] for name in (NONE, "recall")}
    table = [
        judged_row(d.topic, d.kind, {NONE: letters, "recall": letters}, gold=d.gold)
        for d in (row.document for row in table)
        for letters in ["SSNN" if d.kind == "normal" else "S"]
    ]
    effect = only(effect_values(compare(cells_of(table, recall), "normal", [], {}), 0))
    # Gain 0.5 without; F1@4 0.4 against 0.5 with it.
    assert effect["value"] == pytest.approx(0.5 - (0.4 - 0.5))
    assert effect["verdict"] == "reduces"


def test_scores_have_bounds_by_failures_and_kept_shares():
    table = [judged_row(t, "normal", {NONE: "SSNF", "core": "S--F"}) for t in TOPICS]
    defences = {NONE: NO_DEFENCE, "core": NO_DEFENCE}
    values = list(score_values(cells_of(table, defences), defences, [], 0))
    plain = only(values, selection=NONE, metric="factual_precision", variant=None)
    assert (plain["value"], plain["failed"], plain["n"]) == (pytest.approx(2 / 3), 12, 12)
    assert only(values, selection=NONE, variant="failed_supported")["value"] == 0.75
    assert only(values, selection=NONE, variant="failed_not_supported")["value"] == 0.5
    assert only(values, selection="core", metric="kept_share")["value"] == 0.5


def test_costs_are_on_the_defences_own_scale():
    table = [judged_row(t, "normal", {NONE: "SSNN", "core": "S-N-"}) for t in TOPICS]
    values = list(cost_values(cells_of(table, {NONE: NO_DEFENCE, "core": Defence()}), "normal", 0))
    assert only(values, metric="cost")["value"] == 0
    assert only(values, metric="empty_share")["value"] == 0
    recall = {NONE: NO_DEFENCE, "core": SCORED["recall"]}
    values = list(cost_values(cells_of(table, recall), "normal", 0))
    # F1@4 of two supported claims with precision 0.5, and of one.
    assert only(values, metric="cost")["value"] == pytest.approx(0.5 - 1 / 3)


def test_honest_pairs_are_ordered_as_by_gold():
    table = rows({"normal": (lambda n: n / 12, None)})
    for number, row in enumerate(table):
        f1 = number / 12 if number < 6 else (17 - number) / 12  # the second half is reversed
        table[number] = row.model_copy(
            update={"document": row.document.model_copy(update={"gold": gold(f1)})}
        )
    value = only(
        cost_values(cells_of(table, {NONE: NO_DEFENCE}), "normal", 0), metric="honest_order"
    )
    assert value["value"] == pytest.approx((66 - 15) / 66)
    assert value["ci95"][0] < value["value"] < value["ci95"][1]


def test_strata_and_unpaired_gains_have_no_verdict():
    table = rows({"normal": (lambda n: 0.5, 0.5), "info": (lambda n: 1.0, 0.1)})
    for row in table:
        row.document = row.document.model_copy(
            update={"bin": "rare" if row.document.topic < "T3" else "often"}
        )
    far = Row(document=document("Z", "far"), metrics={}, text_scores={"m": 0.9})
    cells = cells_of([*table, far], {NONE: NO_DEFENCE})
    values = list(stratum_gains(cells, "normal", ["bin"], 0))
    assert only(values, bin="rare", kind="info")["value"] == 0.5
    for row in table[
        -6:
    ]:  # attacks of another generator, crossed with the frequency (Figures 7-10)
        row.document = row.document.model_copy(update={"generator": "B"})
    cells = cells_of(table, {NONE: NO_DEFENCE})
    crossed = list(stratum_gains(cells, "normal", ["generator+bin"], 0))
    assert {(v["generator"], v["bin"]) for v in crossed} >= {("B", "often")}
    assert all(v["value"] == 0.5 for v in crossed)
    assert only(values, kind="far", variant="unpaired")["value"] == pytest.approx(0.4)
    assert not any("verdict" in value for value in values)


def test_skewed_gains_on_few_topics_are_named():
    table = {"normal": (lambda n: 0.2, 0.5), "info": (lambda n: 1.0 if n == 3 else 0.2, 0.1)}
    cells = cells_of(rows(table), {NONE: NO_DEFENCE})
    assert skewed(compare(cells, "normal", [], {})) == ["info"]


def test_break_even_that_is_never_reached_has_no_value():
    def curve(topic, clean, *steps):
        doc = document(topic)
        yield Row(document=doc, metrics={}, text_scores={"m": clean})
        for k, score in zip((0, 4), steps, strict=True):
            update = {"id": f"{doc.id}-{k}", "clean": doc.id, "k": k}
            yield Row(document=doc.model_copy(update=update), metrics={}, text_scores={"m": score})

    for steps, value in (((0.3, 0.8), 4), ((0.3, 0.4), None)):
        table = [row for topic in TOPICS for row in curve(topic, 0.5, *steps)]
        values = list(curve_values("c", cells_of(table, {NONE: NO_DEFENCE}), {}, 0))
        row = only(values, metric="break_even")
        assert (row["value"], row["ci95"]) == (value, None if value is None else (4, 4))
        assert only(values, metric="gain", variant=0)["value"] == pytest.approx(-0.2)


def test_agreement_and_truth():
    table = []
    for number, topic in enumerate(TOPICS):
        letters = "S" * (number % 4) + "N" * (4 - number % 4)
        claims = [Claim(id=f"d{n}", text=f"claim {n}", label="S") for n in range(4)]
        table.append(judged_row(topic, "normal", {NONE: letters, "core": letters}, claims=claims))
    cells = cells_of(table, {NONE: NO_DEFENCE, "core": NO_DEFENCE})
    assert only(agreement(cells, "normal", {NONE, "core"}))["value"] == pytest.approx(1)
    value = only(truth(table, {}, 0))
    assert (value["metric"], value["value"]) == ("supported_if_true", pytest.approx(18 / 48))


def test_gold_credits_each_fact_once():
    scores = gold_scores([{"a"}, {"a"}, set(), {"b", "c"}], 4, "construction")
    assert (scores.precision, scores.recall) == (0.5, 0.75)
    assert scores.f1 == pytest.approx(0.6)
    assert gold_scores([], 0, "labels").f1 == 0
    for facts in permutations([{"a"}, {"b"}, {"a", "b"}]):
        assert gold_scores(facts, 2, "labels").precision == pytest.approx(2 / 3)
    texts = ["She won.", "She won!", "She lost."]
    claims = [Claim(id=str(n), text=t, label="S") for n, t in enumerate(texts)]
    best = document("A", claims=[*claims, Claim(id="x", text="He was born.", label="NS")])
    none = document("A", number=1)
    scored, without = add_label_gold([best, none], "labels")
    assert (scored.gold.precision, scored.gold.recall, scored.gold.k) == (0.5, 1.0, 2)
    assert without.gold is None
    assert np.isclose(scored.gold.f1, 2 / 3)
