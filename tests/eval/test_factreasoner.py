"""FactReasoner: pairs, factors and posteriors, and what its probabilities are worth."""

import math

import numpy as np
import pytest

from eval.decompose.given import Given
from eval.metrics.corpus import summarise
from eval.metrics.document import f1_at_k, recall_at_k
from eval.metrics.probabilities import (
    binary_entropy,
    brier_of_one_text,
    e_measure,
    graded_precision,
    labelled_precision,
    negative_log,
    posterior_measures,
)
from eval.pipeline import Pipeline
from eval.report.declare import number
from eval.retrieve.given import Given as GivenPassages
from eval.verify.factreasoner.graph import table
from eval.verify.factreasoner.stage import FactReasoner
from eval.verify.majority import Majority
from records import Claim, Document, Passage, UserError, Verdict

E, N, C = "entailment", "neutral", "contradiction"


class Told:
    """A relation model that knows some pairs, and calls the others neutral."""

    def __init__(self, answers):
        self.answers = answers
        self.calls = []

    def relations(self, pairs):
        self.calls.append(list(pairs))
        return np.array([self.row(*self.answers.get(pair, (N, 0.9))) for pair in pairs])

    @staticmethod
    def row(relation, p):
        if relation is None:
            return [math.nan] * 3
        return [p if name == relation else (1 - p) / 2 for name in (E, N, C)]


def document(claims, passages, name="d", **more):
    """Claims by id with the passages retrieved for them; passages are named by their texts."""
    return Document(
        id=name,
        topic=name,
        text="It is so.",
        claims=[
            Claim(id=c, text=c, contexts=contexts, label=more.get(c), source="It is so.")
            for c, contexts in claims.items()
        ],
        passages=[p if isinstance(p, Passage) else Passage(id=p, text=p) for p in passages],
    )


def judged(model, documents, **options):
    stage = FactReasoner(model, **options)
    actual = stage(
        documents, [list(d.claims) for d in documents], [list(d.passages) for d in documents]
    )
    return [{(v.name, v.claim): v for v in group} for group in actual]


# The paper's Example 1, and Example 2 with its third context.
EXAMPLE = {("c1", "a"): (E, 0.8), ("c2", "a"): (C, 0.9)}
CONFLICT = {("c2", "c3"): (C, 0.9), ("c3", "c2"): (C, 0.9)}


def test_posteriors_of_the_papers_examples():
    doc = document({"a": ["c1", "c2"]}, ["c1", "c2"])
    (actual,) = judged(Told(EXAMPLE), [doc])
    for version in ("fr1", "fr2", "fr3"):
        verdict = actual[version, "a"]
        assert (verdict.label, round(verdict.p, 3)) == ("contradicted", 0.318)
        assert verdict.evidence == ["c2", "c1"]
    two = document({"a": ["c1", "c2", "c3"]}, ["c1", "c2", "c3"])
    (actual,) = judged(Told(EXAMPLE | CONFLICT), [two])
    assert [round(actual[v, "a"].p, 2) for v in ("fr1", "fr2", "fr3")] == [0.32, 0.32, 0.41]
    verdict = actual["fr3", "a"]
    assert verdict.relations == [
        {"context": "c2", "relation": C, "p": 0.9},
        {"context": "c1", "relation": E, "p": 0.8},
    ]
    assert verdict.context_relations == [{"from": "c2", "to": "c3", "relation": C, "p": 0.9}], (
        "one factor an unordered pair; two would give 0.60"
    )
    assert set(verdict.context_posteriors) == {"c1", "c2", "c3"}


def test_posterior_of_example_2_by_number_of_context_factors():
    two = document({"a": ["c1", "c2", "c3"]}, ["c1", "c2", "c3"])

    def posterior(p, **options):
        conflict = {pair: (C, p) for pair in CONFLICT}
        (actual,) = judged(Told(EXAMPLE | conflict), [two], versions=[3], **options)
        return round(actual["fr3", "a"].p, 2)

    # 0.59 is printed, the probability is not.
    assert posterior(0.9, context_factors="direction") == 0.60
    assert posterior(0.892, context_factors="direction") == 0.59
    assert [posterior(p) for p in (0.9, 0.986)] == [0.41, 0.59]
    # One context is asked alone; of two entailments each is an equivalence (footnote 2).
    same = {("x", "y"): (E, 0.8), ("y", "x"): (E, 0.7)}
    doc = document({"a": []}, ["x", "y"])
    (actual,) = judged(Told(same), [doc], versions=[3], context_factors="direction")
    edges = actual["fr3", "a"].context_relations
    assert [(e["relation"], e["from"], e["p"]) for e in edges] == [
        ("equivalence", "x", 0.8),
        ("equivalence", "y", 0.7),
    ]


def test_factors_have_the_values_of_table_1():
    np.testing.assert_allclose(table(E, 0.8), [[0.8, 0.8], [0.2, 0.8]])
    np.testing.assert_allclose(table(C, 0.8), [[0.8, 0.8], [0.8, 0.2]])
    np.testing.assert_allclose(table("equivalence", 0.8), [[0.8, 0.2], [0.2, 0.8]])


def test_distinct_pairs_of_a_batch_are_queried_in_one_call():
    documents = [document({"a": ["x"], "b": ["y"]}, ["x", "y"], name) for name in "de"]
    model = Told({})
    stage = FactReasoner(model)
    stage(documents, [d.claims for d in documents], [d.passages for d in documents])
    (queried,) = model.calls
    assert sorted(queried) == [
        *(("x", "a"), ("x", "b"), ("x", "y"), ("y", "a"), ("y", "b"), ("y", "x")),
    ], "context to claim only, contexts in both directions"
    assert stage.judges_sets
    assert not FactReasoner(model, versions=[1]).judges_sets
    model = Told({})
    judged(model, documents, versions=[1])
    assert sorted(model.calls[0]) == [("x", "a"), ("y", "b")]


def test_equal_contexts_are_merged_except_in_fr1():
    answers = {("x", "a"): (E, 0.8), ("x", "b"): (E, 0.8)}
    copies = [
        Passage(id="p", text="x", prior=0.6),
        Passage(id="q", text=" x\n", prior=0.9),
        Passage(id="r", text="y"),
    ]
    doc = document({"a": ["p", "q"], "b": ["r"]}, copies)
    (actual,) = judged(Told(answers | {(" x\n", "a"): (E, 0.8)}), [doc])
    odds = [0.8 / ((1 - prior) * 0.8 + prior * 0.2) for prior in (0.6, 0.9)]
    assert actual["fr1", "a"].p == pytest.approx(math.prod(odds) / (1 + math.prod(odds)))
    assert actual["fr1", "a"].evidence == ["p", "q"]
    assert actual["fr1", "b"].label == "undecided", "another claim's context says nothing here"
    assert [actual["fr2", c].evidence for c in "ab"] == [["p"], ["p"]]
    # The more reliable of those that say so, by one variable: where it is false, it says nothing of
    # either claim.
    true, false = 0.1 * 0.8 * 1.6 + 0.9 * 0.8, 0.1 * 0.8 * 1.6 + 0.9 * 0.2
    assert [actual["fr2", c].p for c in "ab"] == pytest.approx([true / (true + false)] * 2)


def test_two_directions_make_one_relation():
    cases = {
        ((E, 0.7), (E, 0.9)): ("equivalence", "x", "y", 0.9),
        ((E, 0.7), (N, 0.9)): (E, "x", "y", 0.7),
        ((C, 0.7), (E, 0.8)): (E, "y", "x", 0.8),
        ((C, 0.7), (C, 0.7)): (C, "x", "y", 0.7),
        ((None, 0), (C, 0.7)): (C, "y", "x", 0.7),
        ((E, 0.4), (C, 0.45)): None,  # no likelier than not
        ((None, 0), (None, 0)): None,
    }
    for (forward, backward), expected in cases.items():
        doc = document({"a": []}, ["x", "y"])
        (actual,) = judged(Told({("x", "y"): forward, ("y", "x"): backward}), [doc], versions=[3])
        edges = getattr(actual["fr3", "a"], "context_relations", [])
        merged = [(e["relation"], e["from"], e["to"], e["p"]) for e in edges]
        assert merged == ([expected] if expected else []), (forward, backward)
        failed = getattr(actual["fr3", "a"], "failed_context_pairs", 0)
        assert failed == ((forward, backward) == ((None, 0), (None, 0)))


def test_priors_of_passage_and_default():
    passages = [
        Passage(id="x", text="x", prior=0.7, source="blog"),
        Passage(id="y", text="y", source="blog"),
        Passage(id="z", text="z", source="atlas"),
    ]
    claims = {c: [p] for c, p in zip("abc", "xyz", strict=True)}
    model = Told({(p, c): (E, 0.9) for c, (p,) in claims.items()})

    def odds(prior):
        return 0.9 / ((1 - prior) * 0.9 + prior * 0.1)

    for use_priors, priors in ((True, (0.7, 0.99, 0.99)), (False, (0.99,) * 3)):
        options = {"versions": [1], "passage_priors": use_priors}
        (actual,) = judged(model, [document(claims, passages)], **options)
        expected = [odds(p) / (1 + odds(p)) for p in priors]
        assert [v.p for v in actual.values()] == pytest.approx(expected)


def test_unjudged_pairs_are_failed_and_counted():
    doc = document({"a": ["x", "y"], "b": ["x"], "none": [], "lost": None}, ["x", "y"])
    failing = {("x", c): (None, 0) for c in ("a", "b")} | {("y", "a"): (E, 0.9)}
    (actual,) = judged(Told(failing), [doc], versions=[1])
    labels = {claim: v.label for (_, claim), v in actual.items()}
    assert labels == {"a": "supported", "b": "failed", "none": "undecided", "lost": "failed"}
    assert (actual["fr1", "a"].pairs, actual["fr1", "a"].failed_pairs) == (2, 1)
    assert actual["fr1", "b"].reason == "no relation to a context could be judged"
    assert actual["fr1", "lost"].reason == "retrieval failed"
    (majority,) = Majority(Told(failing))([doc], [doc.claims], [doc.passages])
    assert [v.label for v in majority] == ["supported", "failed", "failed", "failed"]
    nothing, alone = judged(Told({}), [document({}, ["x"]), document({"a": []}, [], "e")])
    assert nothing == {}
    assert [v.label for v in alone.values()] == ["undecided"] * 3


def test_unrelated_pairs_are_skipped_unless_retrieval_brought_them_together():
    x, y, z = "Ann Lee was a painter.", "Ann Lee painted birds.", "Ann Lee died in Oslo."
    claims = [
        Claim(id="a", text="Ann Lee painted.", contexts=[x]),
        Claim(id="b", text="Ann Lee left Oslo.", contexts=[z]),
    ]
    texts = [Passage(id=t, text=t) for t in (x, y, z)]
    doc = Document(id="d", topic="Ann Lee", text="It is so.", claims=claims, passages=texts)
    model = Told({})
    (actual,) = judged(model, [doc], versions=[3], skip_below=0.3)
    assert {pair for pair in model.calls[0] if pair[1] not in (x, y, z)} == {
        (x, "Ann Lee painted."),
        (y, "Ann Lee painted."),
        (z, "Ann Lee left Oslo."),
    }
    assert actual["fr3", "a"].skipped_pairs == 3 + 3
    (actual,) = judged(Told({}), [doc], versions=[3], skip_below=0.0)
    assert not hasattr(actual["fr3", "a"], "skipped_pairs")


class Axes:
    """A sentence encoder of two dimensions: the angle of a text, in degrees, is told."""

    def __init__(self, degrees):
        self.degrees = degrees

    def encode(self, texts):
        angles = np.radians([self.degrees[text] for text in texts])
        return 3 * np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_encoder_cosines_skip_pairs():
    degrees = {"x": 0, "y": 90, "a": 0, "b": 90}
    doc = document({"a": ["x"], "b": ["x"]}, ["x", "y"])
    model = Told({})
    encoder = Axes(degrees)
    (actual,) = judged(model, [doc], skip_below=0.2, encoder=encoder, versions=[1, 3])
    assert set(model.calls[0]) == {("x", "a"), ("x", "b"), ("y", "b")}
    assert actual["fr3", "a"].skipped_pairs == 2
    assert not hasattr(actual["fr1", "a"], "skipped_pairs")


def test_measures_of_posteriors():
    assert e_measure(np.array([0.5, 0.5])) == pytest.approx(0.150515, abs=1e-6)
    assert [e_measure(np.array([p])) for p in (0.0, 1.0)] == [0, 0]
    assert [binary_entropy(np.array([p])) for p in (0.0, 0.5, 1.0)] == pytest.approx([0, 1, 0])
    assert graded_precision(np.array([0.5, 1.0])) == 0.75
    assert negative_log(np.array([1.0, 0.0])) == pytest.approx(math.log(1e6) / 2)
    assert number(e_measure(np.array([1.0]))) == "0.000", "and not -0.000"
    # Example 4: six of fourteen atoms are supported, K = 7.
    precision, recall, f1 = 6 / 14, recall_at_k(6, 7), f1_at_k(6 / 14, 6, 7)
    assert [round(value, 2) for value in (precision, recall, f1)] == [0.43, 0.86, 0.57]


def test_probabilities_are_judged_against_labels():
    doc = document({"a": ["x"], "b": ["y"], "c": ["w"]}, ["x", "y", "w"], a="S", b="S", c="NS")
    two = document({"a": ["z"]}, ["z"], "e", a="NS")
    answers = {("w", "c"): (None, 0)}
    answers |= {("x", "a"): (E, 0.9), ("y", "b"): (C, 0.9), ("z", "a"): (E, 0.9)}
    options = {"context_prior": 1.0, "versions": [1]}
    scored = Pipeline(
        Given(), [FactReasoner(Told(answers), **options)], GivenPassages(), gamma=0
    ).score([doc, two])
    actual = {r.metric: r for r in summarise(scored, "hash", "tests")}
    assert actual["brier"].value == pytest.approx((0.01 + 0.81 + 0.81) / 3, abs=1e-4)
    # Of the two claims at 0.9 one is true.
    assert actual["ece"].value == pytest.approx((0.4 + 0.4 + 0.9) / 3, abs=1e-4)
    assert actual["e_measure"].value == pytest.approx(
        np.mean([e_measure([0.9, 0.1]), e_measure([0.9])]), abs=1e-5
    )
    assert (actual["brier"].n, actual["brier"].failed) == (2, 1)
    # Precision 1/2 against labels of 2/3, the failed claim's among them; 1 against 0.
    assert actual["precision_mae"].value == pytest.approx((abs(1 / 2 - 2 / 3) + 1) / 2)


def test_unlabelled_and_unjudged_claims_are_in_no_measure():
    def judged(label, word="supported", p=0.9):
        claim = Claim(id="a", text="a", label=label)
        return claim, Verdict(claim="a", assessor="x", label=word, p=p)

    rows = [judged("S", p=0.8), judged(None), judged("IR"), judged("S", "irrelevant", 0.1)]
    assert labelled_precision([*(claim for claim, _ in rows), Claim(id="b", text="b")]) == 1
    assert brier_of_one_text(rows) == pytest.approx(0.04)
    measures = posterior_measures([rows], ["d"])
    assert (measures["brier"][0], measures["graded_precision"][0]) == pytest.approx((0.04, 2.6 / 3))
    assert posterior_measures([[judged("S", p=None)]], ["d"]) == {}, "no probability"


@pytest.mark.parametrize(("keep", "p"), [(False, 0.5), (True, 0.45)])
def test_keep_unlikely_keeps_relations_below_one_half(keep, p):
    doc = document({"a": ["x"]}, ["x"])
    stage = FactReasoner(
        Told({("x", "a"): (E, 0.45)}), versions=[1], context_prior=1.0, keep_unlikely=keep
    )
    ((verdict,),) = stage([doc], [doc.claims], [doc.passages])
    assert verdict.p == pytest.approx(p)


def test_the_majority_vote():
    doc = document({"a": ["x", "y", "z"], "b": ["x", "y"], "c": ["z"]}, ["x", "y", "z"])
    answers = {("x", "a"): (E, 0.9), ("y", "a"): (E, 0.5), ("z", "a"): (C, 0.9)}
    answers |= {("x", "b"): (C, 0.6), ("y", "b"): (E, 0.9)}
    (actual,) = Majority(Told(answers))([doc], [doc.claims], [doc.passages])
    assert [(v.label, v.p) for v in actual] == [
        ("supported", pytest.approx(2 / 3)),
        ("undecided", 0.5),
        ("undecided", 0.5),
    ]
    assert [v.evidence for v in actual] == [["x", "y", "z"], ["x", "y"], []]
    # Two votes of reliable passages for it weigh as much as they are reliable; one of 0.1 is a lie.
    by_prior = Majority(Told(answers), by_prior=True)
    with pytest.raises(UserError, match="passage 'x' has no prior"):
        by_prior([doc], [doc.claims], [doc.passages])
    priors = {"x": 0.8, "y": 0.1, "z": 0.1}
    with_priors = [text.model_copy(update={"prior": priors[text.id]}) for text in doc.passages]
    (actual,) = by_prior([doc], [doc.claims], [with_priors])
    odds = [4 / 9 * 9, 1 / 4 / 9, 1]
    assert [v.p for v in actual] == pytest.approx([o / (1 + o) for o in odds])
    certain = [text.model_copy(update={"prior": 1.0}) for text in doc.passages]
    assert by_prior([doc], [doc.claims], [certain])[0][0].p == pytest.approx(1 - 1e-6)
    labels = [(v.name, v.label) for v in actual]
    assert labels == [("by_prior", label) for label in ("supported", "contradicted", "undecided")]
