"""Gain, cost, curve and break-even, checked by hand on scores made by hand."""

import pytest

from eval.experiments.robustness.robustness_correlations import agreement, truth
from eval.experiments.robustness.robustness_grid import NONE, Judged, Row
from eval.experiments.robustness.robustness_values import (
    Text,
    cells_of,
    costs,
    curve,
    gain,
    gains,
    of_texts,
)
from eval.metrics.document import DocumentScore
from eval.pipeline import score_selected
from eval.stages import Selection
from records import Claim, Document, Verdict


def score(precision, defence=NONE, judged=10, failed=0, kept=None, claims=10):
    supported = round((precision or 0) * judged)
    return DocumentScore(
        assessor="a",
        name="default",
        selection=defence,
        responded=precision is not None,
        claims=claims,
        kept=judged + failed if kept is None else kept,
        supported=supported,
        contradicted=0,
        undecided=0,
        irrelevant=0,
        failed=failed,
        judged=judged,
        precision=precision,
        empty_selection=False,
    )


def document(topic, kind="normal", number=0, labels="", **more):
    claims = [Claim(id=f"c{n}", text="x", label=label) for n, label in enumerate(labels.split())]
    given = {"generator": "g", **more}
    return Document(
        id=f"{topic}-{kind}-{number}", topic=topic, text="x", kind=kind, claims=claims, **given
    )


def text(topic, precision, kind="normal", number=0, defence=NONE, **more):
    return Text(document(topic, kind, number, **more), score(precision, defence))


def only(values, **fields):
    own = [v for v in values if all(v.get(name) == value for name, value in fields.items())]
    assert len(own) == 1, own
    return own[0]


HONEST = [text("A", 0.2), text("A", 0.4, number=1), text("B", 0.5), text("C", 0.9)]
ATTACK = [text("A", 0.8, "info"), text("B", 0.6, "info"), text("D", 1.0, "info")]


def test_gain_is_paired_by_topic_where_two_topics_have_both():
    # A: 0.8 - (0.2 + 0.4) / 2 = 0.5; B: 0.6 - 0.5 = 0.1; C and D have one side alone.
    paired, (value, ci95, n) = gain(ATTACK, HONEST, seed=0)
    assert (paired, n) == (True, 2)
    assert value == pytest.approx(0.3)
    assert ci95 == pytest.approx((0.1, 0.5))


def test_texts_that_name_the_one_they_were_made_of_are_paired_with_it():
    # A's second text alone was attacked: its first one, and C, are in no pair.
    made = [
        text("A", 0.9, "info", clean="A-normal-1"),
        text("B", 0.6, "info", clean="B-normal-0"),
        text("C", None, "info", clean="C-normal-0"),
    ]
    paired, (value, _, n) = gain(made, HONEST, seed=0)
    assert (paired, n) == (True, 2)
    assert value == pytest.approx((0.5 + 0.1) / 2)
    # Texts of others, which none of these was made of: by topic again.
    assert gain([text(t, 1.0, "info", clean="other") for t in "AB"], HONEST, 0)[1][0] == (
        pytest.approx((0.7 + 0.5) / 2)
    )


def test_better_texts_are_to_rise_and_game_nothing():
    cells = {("m", NONE): [*HONEST, *ATTACK, text("A", 1.0, "better"), text("B", 1.0, "better")]}
    values = list(gains(cells, "normal", ["better"], [], seed=0))
    assert only(values, metric="rise", kind="better")["value"] == pytest.approx(0.6)
    assert {v["kind"] for v in values if v["metric"] in ("gain", "gamed")} == {"info"}


def test_gain_without_two_shared_topics_is_that_of_the_means():
    others = [text("A", 0.8, "info"), text("E", 0.6, "info"), text("D", 1.0, "info")]
    paired, (value, ci95, n) = gain(others, HONEST, seed=0)
    assert (paired, n) == (False, 5)  # A to E: the one that both sides have counts once
    assert value == pytest.approx(0.8 - 0.5)  # means of all texts of a side
    assert ci95[0] < 0.3 < ci95[1]
    (row, gamed) = gains({("m", NONE): HONEST + others}, "normal", [], [], 0)
    assert (row["variant"], row["kind"], row["against"]) == ("unpaired", "info", "normal")
    assert gamed["metric"] == "gamed"
    assert gamed["value"] == float(ci95[0] > 0)


def test_a_text_without_a_precision_is_in_no_gain():
    silent = [*ATTACK, text("B", None, "info", number=1)]
    assert gain(silent, HONEST, 0) == gain(ATTACK, HONEST, 0)
    assert gain([text("A", None, "info")], HONEST, 0) == (False, (None, None, 0))


def test_gamed_is_an_interval_above_0():
    cells = {("m", NONE): HONEST + ATTACK}
    found = list(gains(cells, "normal", [], [], 0))
    assert only(found, metric="gamed")["value"] == 1
    lower = [text("A", 0.1, "info"), text("B", 0.9, "info")]
    found = list(gains({("m", NONE): HONEST + lower}, "normal", [], [], 0))
    assert only(found, metric="gain")["value"] == pytest.approx((-0.2 + 0.4) / 2)
    assert only(found, metric="gamed")["value"] == 0


def test_gain_of_a_stratum_of_topics_takes_both_sides_from_it_and_of_generators_one():
    honest = [text("A", 0.2, bin="rare"), text("B", 0.4, bin="often"), text("E", 0.4, bin="rare")]
    attack = [
        text("A", 0.3, "info", bin="rare", generator="x"),
        text("B", 0.9, "info", bin="often", generator="y"),
        text("E", 0.8, "info", bin="rare", generator="y"),
    ]
    found = list(gains({("m", NONE): honest + attack}, "normal", [], ["bin", "generator"], 0))
    rare = only(found, metric="gain", bin="rare")
    assert (rare["value"], rare["n"]) == (pytest.approx((0.1 + 0.4) / 2), 2)
    of_y = only(found, metric="gain", generator="y")
    assert (of_y["value"], of_y["n"]) == (pytest.approx((0.5 + 0.4) / 2), 2)
    whole = only(found, metric="gain", generator="all", bin=None)
    assert whole["value"] == pytest.approx((0.1 + 0.5 + 0.4) / 3)


def test_cost_is_without_minus_with_and_labels_are_correlated():
    labels = {"A": "S NS NS", "B": "S S NS", "C": "S S S"}
    without = [text(t, p, labels=labels[t]) for t, p in (("A", 0.4), ("B", 0.6), ("C", 0.9))]
    kept = [("A", 0.3), ("B", 0.7), ("C", 0.6)]
    with_it = [text(t, p, defence="core", labels=labels[t]) for t, p in kept]
    cells = {("m", NONE): without, ("m", "core"): with_it}
    found = list(costs(cells, "normal", [], 0))
    cost = only(found, metric="cost")
    assert cost["value"] == pytest.approx((0.1 - 0.1 + 0.3) / 3)
    assert (cost["selection"], cost["against"], cost["n"]) == ("core", NONE, 3)
    # Labelled precision 1/3, 2/3, 1 against 0.3, 0.7, 0.6: deviations (-1, 0, 1) and
    # (-7/30, 5/30, 2/30): 9/30 / sqrt(2 * (49 + 25 + 4) / 900) = 9 / sqrt(156).
    own = only(found, metric="label_correlation", selection="core")
    assert own["value"] == pytest.approx(9 / 156**0.5)
    assert only(found, metric="label_correlation", selection=NONE)["value"] > 0.98


def test_the_order_of_generators_needs_three():
    def side(values, defence):
        own = dict(zip("xyz", values, strict=False))
        return [text("A", v, defence=defence, number=g, generator=g) for g, v in own.items()]

    cells = {("m", NONE): side((0.1, 0.2, 0.3), NONE), ("m", "core"): side((0.1, 0.3, 0.2), "core")}
    found = list(costs(cells, "normal", [], 0))
    own = only(found, metric="generator_order")
    assert (own["value"], own["n"]) == (pytest.approx(0.5), 1)
    # A text of which nothing could be judged is of no topic that counts.
    for (_, defence), some in cells.items():
        some.append(text("B", None, defence=defence, generator="x"))
    assert only(costs(cells, "normal", [], 0), metric="generator_order")["n"] == 1
    cells = {("m", NONE): side((0.1, 0.2), NONE), ("m", "core"): side((0.1, 0.3), "core")}
    assert not [v for v in costs(cells, "normal", [], 0) if v["metric"] == "generator_order"]


def series(topic, clean, by_k):
    yield text(topic, clean, "clean")
    twin = document(topic, "clean").id
    for k, precision in by_k.items():
        yield text(topic, precision, "corrupted", number=k, clean=twin, k=k)


def test_curve_and_break_even():
    texts = [
        *series("A", 0.6, {0: 0.2, 2: 0.5, 4: 0.8}),
        *series("B", 0.4, {0: 0.4, 2: 0.4, 4: 0.5}),
        *series("C", 0.9, {0: 0.1, 2: None, 4: 1.0}),  # does not respond at k = 2: it is out
    ]
    found = list(curve("appended", {("m", NONE): texts}, 0))
    means = {v["variant"]: v["value"] for v in found if v["metric"] == "factual_precision"}
    assert means == pytest.approx({"clean": 0.5, 0: 0.3, 2: 0.45, 4: 0.65})
    at = {v["variant"]: v["value"] for v in found if v["metric"] == "gain"}
    assert at == pytest.approx({0: -0.2, 2: -0.05, 4: 0.15})
    least = only(found, metric="break_even")
    assert (least["value"], least["n"], least["kind"]) == (4, 2, "appended")


def test_no_break_even_where_the_corrupted_stay_below():
    texts = [*series("A", 0.6, {0: 0.2, 8: 0.6}), *series("B", 0.4, {0: 0.1, 8: 0.3})]
    assert only(list(curve("c", {("m", NONE): texts}, 0)), metric="break_even")["value"] is None


def test_the_rounding_of_sums_is_no_gain():
    # 0.4 - 0.3 + 0.8 - 0.9 is 0, and a little more in floating point.
    texts = [*series("A", 0.3, {1: 0.4}), *series("B", 0.9, {1: 0.8})]
    assert only(list(curve("c", {("m", NONE): texts}, 0)), metric="break_even")["value"] is None
    # So is the mean of three texts of 0.1 less one of 0.1.
    attacks = [text(topic, 0.1, "info", number) for topic in "ABCD" for number in range(3)]
    cells = {("m", NONE): [*attacks, *(text(topic, 0.1) for topic in "ABCD")]}
    found = list(gains(cells, "normal", (), [], 0))
    assert (only(found, metric="gain")["value"], only(found, metric="gamed")["value"]) == (0, 0)


def test_bounds_count_failures_as_supported_or_not():
    # 6 of 8 judged are supported, 2 failed: 6/10 and 8/10.
    half = Text(document("A"), score(0.75, judged=8, failed=2))
    whole = Text(document("B"), score(0.5))
    found = list(of_texts({("m", NONE): [half, whole]}, [], 0))
    values = {v["variant"]: v["value"] for v in found if v["metric"] == "factual_precision"}
    assert values == pytest.approx(
        {None: 0.625, "failed_supported": 0.65, "failed_not_supported": 0.55}
    )
    assert {v["failed"] for v in found} == {2}


def test_f1_at_k_counts_what_a_text_says():
    one_fact = Text(document("A", "repetitive"), score(1.0, judged=2), k=10)
    honest = Text(document("A"), score(0.5, judged=8), k=10)
    # P = 1, R = 2/10; P = 1/2, R = 4/10
    assert (one_fact.value, honest.value) == pytest.approx((2 * 0.2 / 1.2, 2 * 0.2 / 0.9))
    assert Text(document("A"), score(1.0, judged=30), k=10).value == 1
    assert Text(document("A"), score(0.0), k=10).value == 0
    refusal, unjudged = score(None, judged=0), score(None, judged=0, failed=3)
    unjudged = unjudged.model_copy(update={"responded": True})
    assert Text(document("A"), refusal, k=10).value == 0
    assert Text(document("A"), unjudged, k=10).value != Text(document("A"), unjudged, k=10).value
    # All three failures supported: P = 1, R = 3/10
    bounds = [Text(document("A"), unjudged, k=10).bound(said) for said in (True, False)]
    assert bounds == pytest.approx([2 * 0.3 / 1.3, 0])


def test_each_metric_stands_there_by_f1_at_k_as_well():
    own = {"a": (1.0, 2), "b": (0.5, 8)}
    rows = []
    for topic in "ABC":
        for kind, (precision, judged) in (("normal", own["b"]), ("repetitive", own["a"])):
            judged = Judged(
                claims=[],
                selections={},
                verdicts=[],
                again={},
                scores=[score(precision, judged=judged)],
            )
            rows.append(Row(document=document(topic, kind), metrics={"m": judged}))
    cells = cells_of(rows, 10)
    assert list(cells) == [("m", NONE), ("m, F1@10", NONE)]
    found = list(gains(cells, "normal", (), [], 0))
    assert only(found, metric="gain", assessor="m")["value"] == pytest.approx(0.5)
    by_k = only(found, metric="gain", assessor="m, F1@10")["value"]
    assert by_k == pytest.approx(2 * 0.2 / 1.2 - 2 * 0.2 / 0.9)
    means = [v for v in of_texts(cells, [], 0) if v["assessor"] == "m, F1@10"]
    assert {v["metric"] for v in means} == {"f1_at_k"}, "the claims are the precision's"
    assert not list(agreement(cells, "normal")), "one metric by two scores is no two metrics"


def test_kept_share_is_of_claims_before_the_defence():
    cells = {("m", "core"): [Text(document("A"), score(0.5, "core", kept=4, claims=8))]}
    assert only(list(of_texts(cells, [], 0)), metric="kept_share")["value"] == 0.5


def test_kept_share_is_of_the_claims_that_could_be_judged():
    claims = [Claim(id=f"c{n}", text=f"x{n}") for n in range(4)]
    verdicts = [Verdict(claim=c.id, assessor="a", label="supported") for c in claims]

    def scored(*reasons):
        chosen = [
            Selection(claim=claim.id, selected=reason == "selected", weight=1, reason=reason)
            for claim, reason in zip(claims, reasons, strict=True)
        ]
        return score_selected(document("A"), claims, verdicts, chosen, 0)

    half = scored("selected", "irrelevant", "failed", "failed")
    assert (half.kept_share, half.failed) == (1 / 2, 2)
    none = scored(*["failed"] * 4)
    assert (none.kept_share, none.failed) == (None, 4)
    texts = [Text(document(topic), own) for topic, own in (("A", half), ("B", none))]
    found = list(of_texts({("m", "core"): texts}, [], 0))
    kept = only(found, metric="kept_share")
    assert (kept["value"], kept["n"], kept["failed"]) == (1 / 2, 1, 6)


def test_agreement_is_between_metrics_or_defences_and_not_both():
    one = [text(t, p) for t, p in (("A", 0.1), ("B", 0.2), ("C", 0.6))]
    other = [text(t, p) for t, p in (("A", 0.3), ("B", 0.2), ("C", 0.1))]
    cells = {("m", NONE): one, ("m", "core"): other, ("n", NONE): other, ("n", "core"): one}
    found = [(v["assessor"], v["selection"], v["against"]) for v in agreement(cells, "normal")]
    assert found == [("m", NONE, "core"), ("m", NONE, "n"), ("m", "core", "n"), ("n", NONE, "core")]
    # Deviations (-2, -1, 3) and (1, 0, -1) in tenths: -5 / sqrt(14 * 2).
    value = only(list(agreement(cells, "normal")), assessor="m", selection=NONE, against="n")
    assert value["value"] == pytest.approx(-5 / 28**0.5)


def test_a_metric_of_two_verdicts_has_two_cells():
    scores = [score(0.5), score(0.7).model_copy(update={"name": "grouped"})]
    judged = Judged(claims=[], selections={}, verdicts=[], again={}, scores=scores)
    row = Row(document=document("A"), metrics={"m": judged})
    assert set(cells_of([row])) == {("m.default", NONE), ("m.grouped", NONE)}


def test_verdicts_against_known_labels():
    def told(topic, **by_label):
        """Claims labelled S and NS, and what is said of each."""
        pairs = [(label, said) for label, own in by_label.items() for said in own.split()]
        claims = [Claim(id=f"c{n}", text=f"x{n}", label=own) for n, (own, _) in enumerate(pairs)]
        of = {"assessor": "a"}
        verdicts = [
            Verdict(claim=f"c{n}", label=said, **of, reason="x")
            for n, (_, said) in enumerate(pairs)
        ]
        judged = Judged(
            claims=claims, selections={}, verdicts=verdicts, again={}, scores=[score(0.5)]
        )
        own = Document(id=topic, topic=topic, text="x", kind="normal", claims=claims)
        return Row(document=own, metrics={"m": judged})

    rows = [
        told("A", S="supported supported not_supported", NS="supported"),
        told("B", S="supported irrelevant failed", NS="not_supported not_supported"),
    ]
    found = list(truth(rows, 0))
    true = only(found, metric="supported_if_true")
    assert (true["value"], true["failed"], true["n"]) == (pytest.approx(3 / 4), 1, 2)
    assert only(found, metric="supported_if_false")["value"] == pytest.approx(1 / 3)
