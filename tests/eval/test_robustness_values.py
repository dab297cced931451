"""Scores, order, costs, certificates and agreement, checked by hand on hand-made scores."""

from itertools import permutations

import numpy as np
import pytest

from components.certificate import FAMILIES, LEAST
from components.gold import add_label_gold
from eval.defences import NO_DEFENCE, Defence
from eval.experiments.robustness.robustness_cells import by_kind, cells_of
from eval.experiments.robustness.robustness_certificate import certificate_values, passed
from eval.experiments.robustness.robustness_correlations import agreement, truth
from eval.experiments.robustness.robustness_curve import curve_values
from eval.experiments.robustness.robustness_grid import NONE, JudgedByMetric, TextScores
from eval.experiments.robustness.robustness_values import (
    duplicate_columns,
    ladder_values,
    score_values,
)
from eval.experiments.robustness.robustness_verdicts import HonestLadders
from eval.metrics.document import score_document
from records import Claim, Document, Gold, Verdict, gold_scores

TOPICS = [f"T{number}" for number in range(12)]
SCORED = {NONE: NO_DEFENCE, "core": Defence(), "recall": Defence(score="f1_at_k", k=4)}


def gold(f1):
    return Gold(precision=f1, recall=f1, f1=f1, k=10, source="construction")


def document(topic, kind="normal", number=0, **more):
    return Document(id=f"{topic}-{kind}-{number}", topic=topic, text="x", kind=kind, **more)


def judged_row(topic, kind, columns, number=0, **more):
    """A row of the metric ``m``; ``columns``: defence to one label per claim, ``-`` is dropped."""
    labels = {"S": "supported", "N": "not_supported", "F": "failed"}
    claims = [Claim(id=f"c{n}", text=f"claim {n}") for n in range(len(columns[NONE]))]
    doc = document(topic, kind, number, **more)
    verdicts, scores = {}, []
    for column, letters in columns.items():
        verdicts[column] = [
            Verdict(claim=f"c{n}", assessor="a", label=labels[letter], reason="cut")
            for n, letter in enumerate(letters)
            if letter != "-"
        ]
        kept = {verdict.claim for verdict in verdicts[column]}
        selected = None if column == NONE else kept
        score = score_document(True, claims, verdicts[column], selected, 0, 0, column)
        scores.append(score)
    metric = JudgedByMetric(claims=claims, selections={}, verdicts=verdicts, scores=scores)
    return TextScores(document=doc, metrics={"m": metric})


def only(values, **fields):
    (row,) = [v for v in values if all(v.get(name) == value for name, value in fields.items())]
    return row


def test_columns_with_equal_scores_are_named():
    scores = {"m": 0.5, "twin": 0.5, "other": 0.4}
    table = [TextScores(document=document(t), metrics={}, text_scores=scores) for t in TOPICS]
    cells = cells_of(table, {NONE: NO_DEFENCE})
    assert duplicate_columns(cells) == {("twin", NONE): "m, none"}


def test_columns_of_one_configuration_are_left_out():
    table = [judged_row(t, "normal", {NONE: "SN", "core": "SN"}) for t in TOPICS]
    defences = {NONE: NO_DEFENCE, "core": Defence()}
    assert [*cells_of(table, defences, None, {("m", "core")})] == [("m", NONE)]


def test_scores_have_bounds_by_failures_and_kept_shares():
    table = [judged_row(t, "normal", {NONE: "SSNF", "core": "S--F"}) for t in TOPICS]
    defences = {NONE: NO_DEFENCE, "core": NO_DEFENCE}
    values = list(score_values(cells_of(table, defences), defences, [], 0))
    plain = only(values, selection=NONE, metric="factual_precision", variant=None)
    assert (plain["value"], plain["failed"], plain["n"]) == (pytest.approx(2 / 3), 12, 12)
    assert only(values, selection=NONE, variant="failed_supported")["value"] == 0.75
    assert only(values, selection=NONE, variant="failed_not_supported")["value"] == 0.5
    assert only(values, selection="core", metric="kept_share")["value"] == 0.5


def ladders_of(table, defences):
    cells = cells_of(table, defences)
    return {place: HonestLadders(by_kind(texts), 0) for place, texts in cells.items()}


def test_order_and_costs_of_a_ladder_are_on_the_scale_of_the_defence():
    letters = {0.0: "NNNN", 0.5: "SSNN", 1.0: "SSSS"}
    table = [
        judged_row(topic, "ladder", {NONE: row, "core": f"{row[0]}---"}, gold=gold(f1), number=n)
        for topic in TOPICS
        for n, (f1, row) in enumerate(letters.items())
    ]
    recall = {NONE: NO_DEFENCE, "core": SCORED["recall"]}
    values = list(ladder_values(ladders_of(table, recall)))
    assert only(values, metric="order", selection=NONE)["value"] == pytest.approx(1)
    # Of one claim the texts of 0.5 and 1.0 have the same score.
    assert only(values, metric="order", selection="core")["value"] == pytest.approx(2 / 3)
    assert only(values, metric="order_lost")["value"] == pytest.approx(1 / 3)
    # F1@4 of one supported claim with precision 1, and of four.
    assert only(values, metric="cost")["value"] == pytest.approx(1 - 0.4)
    assert only(values, metric="empty_share")["value"] == 0
    assert only(values, metric="rung", selection=NONE, variant=0.5)["value"] == 0.5


def probes(families):
    """Rows of probes: family to a letter (judgement) to its number of probes, on unseen phrases."""
    for family, letters in families.items():
        for letter, count in letters.items():
            for number in range(count):
                fields = {"probe": family, "bank": "unseen", "number": number}
                yield judged_row("T", "probe", {NONE: letter}, **fields)


def certificate_of(**changed):
    """The verdict if 55 of 60 true and 5 of 60 false statements are accepted, but for a family."""
    families = {family: {"S": 5, "N": 55} for family in FAMILIES}
    families |= {family: {"S": 55, "N": 5} for family in LEAST}
    families |= {family.replace("_", " "): letters for family, letters in changed.items()}
    values = list(certificate_values(cells_of(list(probes(families)), {NONE: NO_DEFENCE})))
    certificate = only(values, metric="certificate")
    assert passed(values) == ({("m", NONE)} if certificate["verdict"] == "passes" else set())
    return certificate["value"], certificate["verdict"]


@pytest.mark.parametrize(
    ("family", "letters", "failing"),
    [
        ("false_negation", {"S": 5, "N": 55}, 0),
        ("false_negation", {"S": 6, "N": 54}, 1),  # 0.10, and its bound is 0.205
        ("false_negation", {"N": 59}, 1),
        ("false_negation", {}, 1),
        ("true_single", {"S": 50, "N": 10}, 0),
        ("true_single", {"S": 49, "N": 11}, 1),
        ("true_compound", {"S": 39, "N": 21}, 0),
        ("true_compound", {"S": 38, "N": 22}, 1),
        ("bleached", {"S": 60}, 0),
        ("bleached", {"S": 1}, 1),
    ],
)
def test_certificate_needs_60_statements_of_each_family_and_its_bound(family, letters, failing):
    verdict = "fails" if failing else "passes"
    assert certificate_of(**{family: letters}) == (failing, verdict)


def test_seen_phrases_do_not_count_for_the_certificate():
    rows = list(probes({"false negation": {"N": 60}}))
    rows = [row.model_copy(update={"document": row.document.model_copy(update={"bank": "seen"})})
            for row in rows]  # fmt: skip
    values = list(certificate_values(cells_of(rows, {NONE: NO_DEFENCE})))
    assert only(values, metric="acceptance")["value"] == 0
    assert only(values, metric="certificate")["value"] == len(FAMILIES)


def test_break_even_that_is_never_reached_has_no_value():
    def curve(topic, clean, *steps):
        doc = document(topic)
        yield TextScores(document=doc, metrics={}, text_scores={"m": clean})
        for k, score in zip((0, 4), steps, strict=True):
            update = {"id": f"{doc.id}-{k}", "clean": doc.id, "k": k}
            yield TextScores(
                document=doc.model_copy(update=update), metrics={}, text_scores={"m": score}
            )

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
