"""The flow with real stages, and the aggregation."""

import math

import evaluate
import numpy as np
import pytest

from eval.decompose.given import Given
from eval.decompose.sentences import Sentences
from eval.metrics.corpus import BOUNDS, expected_claims, summarise
from eval.metrics.document import Penalty, named, score_document
from eval.pipeline import ChunkCache, Pipeline
from eval.retrieve.bm25 import BM25
from eval.retrieve.given import Given as GivenPassages
from eval.stages import Selection
from eval.verify.labels import Labels
from eval.verify.nli import NLI
from records import (
    Claim,
    Document,
    Passage,
    UserError,
    Verdict,
    write_jsonl,
)
from records.abstention import responds

PASSAGES = [
    Passage(id="p1", title="Ann Lee", text="Ann Lee was a painter from Norway."),
    Passage(id="p2", title="Bob Ray", text="Bob Ray was a boxer from Chile."),
]


class WordOverlap:
    """A user's own entailment model: a hypothesis of known words is entailed."""

    def __init__(self):
        self.pairs = []

    def relations(self, pairs):
        self.pairs += pairs
        rows = []
        for premise, hypothesis in pairs:
            inside = set(hypothesis.lower().strip(".").split()) <= set(premise.lower().split())
            rows.append([0.9, 0.05, 0.05] if inside else [0.1, 0.2, 0.7])
        return np.asarray(rows).reshape(-1, 3)


class FirstOnly:
    """A selector that keeps the first claim of each document."""

    def __call__(self, documents, claims):
        return [[self.selection(claim, claim is entry[0]) for claim in entry] for entry in claims]

    def selection(self, claim, selected):
        reason = "selected" if selected else "duplicate"
        return Selection(claim=claim.id, selected=selected, weight=1, reason=reason)


def passages_file(tmp_path):
    write_jsonl(tmp_path / "passages.jsonl", PASSAGES)
    return str(tmp_path / "passages.jsonl")


def document(text="x", **more):
    return Document(**{"id": "d", "topic": "Ann Lee", "text": text} | more)


def labelled(*labels, **more):
    """A document of one claim per label; by default its id is its topic."""
    claims = [Claim(id=f"c{i}", text="x", label=label) for i, label in enumerate(labels)]
    return document(**{"claims": claims} | more)


def by_topic(topic, *labels, **more):
    return labelled(*labels, id=topic, topic=topic, **more)


def test_verdicts_and_scores_without_and_with_core(tmp_path):
    model = WordOverlap()
    pipeline = Pipeline(
        decompose=Sentences(),
        retrieve=BM25(passages_file(tmp_path), k=1),
        verify=[NLI(model)],
        select=FirstOnly(),
    )
    (scored,) = pipeline.score([document("Ann Lee was a painter. Ann Lee was a boxer.")])
    assert [v.label for v in scored.verdicts] == ["supported", "contradicted"]
    assert scored.verdicts[0].evidence == ["p1"]
    by_selection = {s.selection: s for s in scored.scores}
    assert by_selection["none"].precision == 0.5
    assert by_selection["core"].precision == 1.0
    # The penalty counts the claims before Core in both.
    assert by_selection["core"].factscore == pytest.approx(math.exp(1 - 10 / 2))


def test_a_claim_without_a_passage_fails_and_is_not_scored(tmp_path):
    pipeline = Pipeline(
        decompose=Sentences(),
        retrieve=BM25(passages_file(tmp_path), k=1, topic_in_query=False),
        verify=[NLI(WordOverlap())],
    )
    (scored,) = pipeline.score([document("Ann Lee was a painter. Xyzzy plugh.")])
    assert [v.label for v in scored.verdicts] == ["supported", "failed"]
    assert scored.verdicts[1].reason == "no passage was found"
    assert (scored.scores[0].precision, scored.scores[0].failed) == (1.0, 1)


def test_failed_claims_bound_the_scores():
    labels = (["S", None], ["NS"], [None], ["S"])
    documents = [by_topic(f"T{n}", *row) for n, row in enumerate(labels)]
    scored = Pipeline(decompose=Given(), verify=[Labels()], gamma=0).score(documents)
    rows = summarise(scored, "h", "biographies", failed="excluded", k=1)
    values = {(r.metric, r.variant): r.value for r in rows}
    low, high = BOUNDS
    precision, micro, f1 = "factual_precision", "factual_precision_micro", "f1_at_k"
    assert values[precision, None] == values[micro, None] == pytest.approx(2 / 3)
    assert [values[precision, low], values[precision, high]] == [1.5 / 4, 3 / 4]
    assert [values[micro, low], values[micro, high]] == [2 / 5, 4 / 5]
    assert values[f1, low] <= values[f1, None] <= values[f1, high]
    assert values["factscore", high] == values[precision, high]
    assert all(r.variant is None for r in summarise(scored[1:2], "h", "b", failed="excluded"))


def test_a_given_passage_counts_once_and_its_id_names_one_text():
    claims = [Claim(id="a", text="x"), Claim(id="b", text="y", contexts=["p1", "p1"])]
    twice = document("x", claims=claims, passages=[*PASSAGES, PASSAGES[0]])
    (scored,) = Pipeline(Given(), [NLI(model := WordOverlap())]).score([twice])
    assert [p.id for p in scored.passages] == scored.claims[0].contexts == ["p1", "p2"]
    assert [hypothesis for _, hypothesis in model.pairs] == ["x", "x", "y"]
    other = PASSAGES[0].model_copy(update={"text": "Another text."})
    with pytest.raises(UserError, match="document 'd': passage id 'p1' has two texts"):
        Pipeline(Sentences(), [NLI(model)]).score([document("x.", passages=[*PASSAGES, other])])


def test_a_claim_that_names_no_passage_of_its_document_is_not_judged_by_the_others():
    claims = [Claim(id="a", text="x", contexts=["p2", "P1"])]
    pipeline = Pipeline(Given(), [NLI(WordOverlap())])
    with pytest.raises(UserError, match="document 'd': claim 'a': contexts: 'P1' is not among"):
        pipeline.score([document("x", claims=claims, passages=PASSAGES)])
    # Without passages there is nothing that it could be judged by.
    (scored,) = pipeline.score([document("x", claims=claims)])
    assert [v.label for v in scored.verdicts] == ["failed"]


def test_labels_are_verdicts_and_irrelevant_claims_are_dropped():
    pipeline = Pipeline(decompose=Given(), verify=[Labels()])
    (scored,) = pipeline.score([labelled("S", "NS", "IR", None)])
    assert [c.id for c in scored.claims] == ["c0", "c1", "c3"]
    assert (scored.scores[0].precision, scored.scores[0].failed) == (0.5, 1)
    with pytest.raises(UserError, match="no claims"):
        pipeline.score([document("a")])


class Pairwise:
    """A verifier that judges the set: a claim is supported when another one stands beside it."""

    judges_sets = True

    def __call__(self, documents, claims, passages):
        words = ["supported" if len(entry) > 1 else "not_supported" for entry in claims]
        return [
            [Verdict(claim=claim.id, assessor="pairwise", label=word) for claim in entry]
            for word, entry in zip(words, claims, strict=True)
        ]


def test_each_assessor_has_its_own_verdicts_on_the_claims_that_count():
    pipeline = Pipeline(decompose=Given(), verify=[Labels(), Pairwise()], select=FirstOnly())
    (scored,) = pipeline.score([labelled("S", "NS")])

    def words(assessor, selection):
        return [(c.id, v.label) for c, v in scored.judged(assessor, "default", selection)]

    assert words("labels", "none") == [("c0", "supported"), ("c1", "not_supported")]
    assert words("labels", "core") == [("c0", "supported")]
    assert words("pairwise", "none") == [("c0", "supported"), ("c1", "supported")]
    assert words("pairwise", "core") == [("c0", "not_supported")]
    assert [named("nli", "default"), named("nli", "graded")] == ["nli", "nli.graded"]


def score_of(labels, selected=None, text="Some text.", claims=(), **options):
    """The score of a document with one claim per label; ``None`` has no verdict."""
    rows = [
        Verdict(claim=f"c{i}", assessor="a", label=label)
        for i, label in enumerate(labels)
        if label is not None
    ]
    judged = [Claim(id=f"c{i}", text="x") for i in range(len(labels))]
    return score_document(responds(document(text)), [*judged, *claims], rows, selected, **options)


@pytest.mark.parametrize(
    ("labels", "selected", "precision"),
    [
        (["supported", "not_supported", "contradicted", "undecided"], None, 0.25),
        (["supported", "failed"], None, 1.0),
        (["supported", None], None, 1.0),
        (["failed", None], None, None),
        (["supported", "irrelevant"], None, 1.0),
        (["supported", "not_supported"], {"c1"}, 0.0),
        (["supported", "supported"], set(), 0.0),
        ([], None, 0.0),
    ],
)
def test_precision_of_one_document(labels, selected, precision):
    result = score_of(labels, selected)
    assert result.precision == precision
    # A claim that the verifier forgot has failed.
    if selected is None:
        assert result.failed == labels.count("failed") + labels.count(None)
    assert result.empty_selection == (selected == set() and labels != [])


@pytest.mark.parametrize(
    ("text", "selected", "factscore"),
    [
        ("Some text.", {"c0"}, math.exp(1 - 10 / 1)),
        ("Some text.", {f"c{i}" for i in range(10)}, 0.1),
        ("Some text.", None, 1 / 12),
        ("Some text.", set(), 0.0),
        ("I'm sorry, I cannot help with that.", {"c0"}, 0.0),
    ],
)
def test_penalty_of_kept_claims_is_that_of_cores_released_code(text, selected, factscore):
    labels = ["supported", *["not_supported"] * 11]
    result = score_of(labels, selected, text, gamma=Penalty(10, of_kept=True))
    assert result.factscore == pytest.approx(factscore)


def test_an_empty_selection_is_0_whatever_could_not_be_decomposed():
    failed = Claim(id="c1", text="x", failed="no list in the answer")
    result = score_of(["supported"], set(), claims=[failed])
    assert (result.precision, result.failed, result.empty_selection) == (0.0, 1, True)


def test_abstentions_are_not_scored_and_not_empty_selections():
    for text in ("", "I'm sorry, I could not find any information."):
        result = score_of(["supported"], set(), text)
        assert (result.precision, result.responded, result.empty_selection) == (None, False, False)
        whole = score_of(["supported"], None, text)
        assert (whole.precision, whole.factscore, whole.supported) == (None, None, 1)


def test_texts_without_claims_or_labels_go_to_others():
    rows = [Claim(id="c0", text="Ann Lee was a boxer.", label="NS")]
    expected = Document(id="d1", topic="Ann Lee", text="…", claims=rows)
    bare = Document(
        id="d2", topic="Bob Ray", text="Bob Ray was a boxer. He sang.", passages=PASSAGES
    )
    unlabelled = rows[0].model_copy(update={"label": None})
    half = expected.model_copy(
        update={"id": "d3", "claims": [*rows, unlabelled.model_copy(update={"id": "c1"})]}
    )
    with pytest.raises(UserError, match="document d2: no claims"):
        Given()([expected, bare])
    pipeline = Pipeline(Given(otherwise=Sentences()), [Labels(otherwise=NLI(WordOverlap()))])
    scored = pipeline.score([expected, bare, half])
    assert [[v.label for v in entry.verdicts] for entry in scored] == [
        ["not_supported"],
        ["supported", "contradicted"],
        ["not_supported", "failed"],  # whoever labelled the text left this one out
    ]
    assert {v.assessor for entry in scored for v in entry.verdicts} == {"labels"}


def test_summary_counts_topics_and_failures():
    pipeline = Pipeline(decompose=Given(), verify=[Labels()])
    documents = [labelled(label, id=str(label)) for label in ("S", "NS", None)]
    results = {r.metric: r for r in summarise(pipeline.score(documents), "h", "biographies")}
    result = results["factual_precision"]
    assert (result.value, result.n, result.failed) == (0.5, 1, 1)  # one topic, one failed claim
    assert results["claims"].value == 1
    assert not {"recall_at_k", "f1_at_k"} & set(results), "only with K"


def test_micro_precision_and_f1_at_k():
    pipeline = Pipeline(decompose=Given(irrelevant=True), verify=[Labels()])

    scored = pipeline.score(
        [
            by_topic("a", "S", "S", "S", "NS", "IR"),
            by_topic("b", "NS", "NS"),
            by_topic("c", "S"),
            by_topic("d", text="I am sorry, I do not know."),
        ]
    )
    k = expected_claims(scored)
    assert k == 2, "the median of 5, 2 and 1; a text that does not respond has no claims to count"
    assert expected_claims(scored[:2]) == 5, "of two in the middle the larger"
    assert expected_claims(scored[3:]) == 1
    by_name = {r.metric: r for r in summarise(scored, "h", "biographies", k=k)}
    assert by_name["factual_precision"].value == pytest.approx((3 / 4 + 0 + 1) / 3)
    assert by_name["factual_precision_micro"].value == pytest.approx(4 / 7)
    low, high = by_name["factual_precision_micro"].ci95
    assert low < 4 / 7 < high
    assert by_name["recall_at_k"].value == pytest.approx((1 + 0 + 1 / 2 + 0) / 4)
    f1 = [2 * 0.75 / 1.75, 0, 2 * 0.5 / 1.5, 0]
    assert (by_name["f1_at_k"].value, by_name["f1_at_k"].n) == (pytest.approx(sum(f1) / 4), 4)
    responding = by_name["f1_at_k_responding"]
    assert (responding.value, responding.n) == (pytest.approx(sum(f1) / 3), 3)
    assert "precision_mae" not in by_name, "labels are not held against themselves"
    counts = {m: by_name[m].value for m in ("judged", "supported", "contradicted", "irrelevant")}
    assert counts == {"judged": 7, "supported": 4, "contradicted": 0, "irrelevant": 1}


def test_a_text_without_verdicts_counts_for_every_verifier():
    pipeline = Pipeline(decompose=Given(), verify=[Labels(), Pairwise()], select=FirstOnly())
    silent = by_topic("t2", text="I'm sorry, I do not know.")
    lost = by_topic("t3", claims=[Claim(id="a", text="x", failed="no list")])
    documents = [labelled("S", "NS"), silent, lost]
    results = summarise(pipeline.score(documents), "h", "biographies", k=2)
    by_name = {(r.metric, r.assessor, r.selection): r for r in results}
    assert by_name["factual_precision", "labels", "none"].value == 0.5, "never averaged"
    assert by_name["factual_precision", "pairwise", "none"].value == 1
    for name in ("labels", "pairwise"):
        assert by_name["respond_ratio", name, "none"].value == pytest.approx(2 / 3)
        for selection in ("none", "core"):
            f1 = by_name["f1_at_k", name, selection]
            assert (f1.n, f1.failed) == (2, 1), "0 for no response, nothing where all failed"
    assert len({r.assessor for r in results}) == 2


def test_the_evaluate_module_loads_offline_by_path(pytestconfig, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_EVALUATE_OFFLINE", "1")
    path = pytestconfig.rootpath / "eval/metrics/factual_precision.py"
    metric = evaluate.load(str(path), cache_dir=str(tmp_path))
    result = metric.compute(predictions=[[1, 0], [1, -1], [-1]], gamma=0)
    assert result == {"factual_precision": 0.75, "factscore": 0.75, "n": 2, "failed": 2}


class HalfFails:
    """A decomposer whose second sentence cannot be decomposed."""

    def __call__(self, documents):
        claims = [
            Claim(id="c0", text="Ann Lee was a painter."),
            Claim(id="c1", text="She who.", sentence=1, failed="no list in the answer"),
            Claim(id="c2", text="She was a boxer.", sentence=2),
        ]
        return [claims for _ in documents]


class Names:
    """A reviser that writes names out, and fails on the last claim."""

    def __call__(self, documents, claims):
        assert all(claim.failed is None for entry in claims for claim in entry)
        return [[self.revise(claim) for claim in entry] for entry in claims]

    def revise(self, claim):
        changes = {"text": f"{claim.text}!", "original": claim.text}
        return claim.model_copy(update={"failed": "no revision"} if claim.id == "c2" else changes)


def test_what_fails_before_verification_is_counted_and_never_judged(tmp_path):
    bm25, overlap = BM25(passages_file(tmp_path), k=1), WordOverlap()
    (result,) = Pipeline(HalfFails(), [NLI(overlap)], bm25, FirstOnly()).score([document("x.")])
    assert [v.claim for v in result.verdicts] == ["c0", "c2"]
    assert [s.claim for s in result.selections] == ["c0", "c2"]
    assert [c.contexts for c in result.claims] == [["p1"], None, ["p1"]]
    plain, core = result.scores
    assert (plain.claims, plain.kept, plain.failed) == (2, 2, 1)
    assert (core.claims, core.kept, core.failed) == (2, 1, 1)
    assert plain.precision == 0.5

    (result,) = Pipeline(HalfFails(), [NLI(overlap)], bm25, revise=Names()).score([document("x.")])
    assert [c.failed for c in result.claims] == [None, "no list in the answer", "no revision"]
    assert [c.original for c in result.claims] == ["Ann Lee was a painter.", None, None]
    assert [v.claim for v in result.verdicts] == ["c0"]
    assert (result.scores[0].claims, result.scores[0].failed) == (1, 2)


def test_a_text_whose_every_sentence_failed_has_no_score():
    score = score_of([], claims=[Claim(id="c0", text="x", failed="refused")])
    assert (score.precision, score.claims, score.failed) == (None, 0, 1)
    assert not score.empty_selection


def test_kinds_generators_and_selections_have_separate_rows():
    pipeline = Pipeline(decompose=Given(), verify=[Pairwise()], select=FirstOnly())
    rows = [
        by_topic("a", "NS", "S", "S", "S"),
        by_topic("b", None, None, generator="tiny"),
        by_topic("c", "S", "S", kind="info"),
        by_topic("d", None, None),
        by_topic("e", "S", "S", text="I'm sorry, I do not know."),
    ]
    for row in rows:
        row.claims[1] = row.claims[1].model_copy(update={"backed_off": "its prompt did not fit"})
    assert expected_claims(pipeline.score(rows[-1:])) == 1, "of the texts that respond"
    results = summarise(pipeline.score(rows), "h", "biographies")
    by_name = {(r.metric, r.kind, r.generator, r.selection): (r.value, r.n) for r in results}
    assert by_name["claims", "normal", "given", "none"] == (3, 2)
    assert by_name["claims", "normal", "given", "core"] == (1, 2)
    assert by_name["claims", "normal", "tiny", "none"] == (2, 1)
    assert by_name["claims", "info", "given", "none"] == (2, 1)
    # Of the text that has labels, and responds: 1 against 3/4; with Core 0 against 0.
    assert by_name["precision_mae", "normal", "given", "none"] == (0.25, 1)
    assert by_name["precision_mae", "normal", "given", "core"] == (0, 1)
    assert ("precision_mae", "normal", "tiny", "none") not in by_name
    assert by_name["backed_off", "normal", "given", "none"] == (2, 2)
    assert by_name["respond_ratio", "normal", "given", "none"] == (pytest.approx(2 / 3), 3)
    assert by_name["empty_selection", "normal", "given", "core"] == (0, 2)
    apart = {(metric, selection) for metric, _, _, selection in by_name}
    assert not {("backed_off", "core"), ("respond_ratio", "core")} & apart
    assert not {("kept_share", "none"), ("empty_selection", "none")} & apart


def test_groups_and_bins_have_rows_in_addition_to_all():
    pipeline = Pipeline(decompose=Given(), verify=[Labels()])

    rows = [
        by_topic("a", "S", group="A", bin="rare"),
        by_topic("b", "NS", group="A", bin="frequent"),
        by_topic("c", "S", group="C", bin="rare"),
        by_topic("d", "NS"),
    ]
    results = summarise(pipeline.score(rows), "h", "biographies")
    precision = [r for r in results if r.metric == "factual_precision"]
    assert {(r.group, r.bin): (r.value, r.n) for r in precision} == {
        ("all", "all"): (0.5, 4),
        ("A", "all"): (0.5, 2),
        ("C", "all"): (1.0, 1),
        ("all", "frequent"): (0.0, 1),
        ("all", "rare"): (1.0, 2),
    }
    bare = [entry.model_copy(update={"group": None, "bin": None}) for entry in rows]
    alone = [entry.model_copy(update={"group": entry.topic, "bin": None}) for entry in rows]
    for texts in (bare, alone):
        results = summarise(pipeline.score(texts), "h", "biographies")
        assert {r.group for r in results} == {"all"}, "groups that are the topics themselves"
    appended = summarise(pipeline.score(rows), "h", "biographies", 2, strata=False)
    assert {(r.group, r.bin, r.variant) for r in appended} == {("all", "all", 2)}
    backwards = summarise(pipeline.score(rows[::-1]), "h", "b")
    assert list(dict.fromkeys(r.group for r in backwards)) == ["all", "A", "C"]
    wrong = [entry.model_copy(update={"group": "all"}) for entry in rows]
    with pytest.raises(UserError, match="group: 'all' is reserved"):
        summarise(pipeline.score(wrong), "h", "biographies")


class Counted:
    """Counts the calls of a stage and keeps the texts that it saw."""

    def __init__(self, stage):
        self.stage, self.texts = stage, []
        self.judges_sets = getattr(stage, "judges_sets", False)

    def __call__(self, documents, *inputs):
        self.texts.append([document.text for document in documents])
        return self.stage(documents, *inputs)


def test_pipelines_with_one_cache_run_each_shared_stage_once():
    decompose, verify, sets = (Counted(s) for s in (Given(), Labels(), Pairwise()))
    documents, cache = [by_topic("a", "S", "NS", "S")], ChunkCache()
    (plain,) = Pipeline(decompose, [verify]).score(documents, cache)
    select = Pipeline(decompose, [verify, sets], select=FirstOnly())
    (selected,) = select.score(documents, cache, unselected=False)
    assert [len(stage.texts) for stage in (decompose, verify, sets)] == [1, 1, 1]
    assert [(s.name, s.selection) for s in plain.scores] == [("default", "none")]
    assert {s.selection for s in selected.scores} == {"core"}
    assert {v.claim for v in selected.core_verdicts} == {"c0"}
    (both,) = select.score(documents)
    assert [s for s in both.scores if s.selection == "core"] == selected.scores


def test_every_stage_sees_the_cleaned_text_and_the_stored_text_is_unchanged():
    stages = [Counted(stage) for stage in (Sentences(), NLI(WordOverlap()), GivenPassages())]
    text = "# Life\n\nAnn Lee was a painter [1]."
    row = document(text, passages=PASSAGES)
    (scored,) = Pipeline(stages[0], [stages[1]], stages[2]).score([row])
    assert [stage.texts for stage in stages] == [[["Ann Lee was a painter."]]] * 3
    assert scored.document == row
