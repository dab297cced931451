"""Defences as patches of a pipeline, stacks, the controls, and text metrics."""

import math

import pytest

from eval.decompose.given import Given
from eval.defences import Defence, PipelineScore, ThreePartReward, combine, stack
from eval.experiments.robustness.robustness_grid import Grid
from eval.metrics.evaluate_module import EvaluateModule
from eval.metrics.prompted_score import PromptedScore, read_score
from eval.metrics.text_metric import TextMetric, text_scores
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.retrieve.given import Given as GivenPassages
from eval.retrieve.titles import TopicPage
from eval.select.controls import DistinctWords, RandomDrop
from eval.verify.labels import Labels
from records import Claim, Document, Passage, UserError, write_text
from tests.model_server import ModelServer

TEXTS = ["Ann won a prize.", "Ann won a big prize.", "Ann lives in Rome.", "Ann won the prize."]


def document(**more):
    claims = [
        Claim(id=f"c{n}", text=t, label="S" if n else "NS", contexts=["p", "q"])
        for n, t in enumerate(TEXTS)
    ]
    titles = {"p": "Ann (painter)", "q": "Bob"}
    passages = [Passage(id=name, title=title, text="x") for name, title in titles.items()]
    fields = {"id": "d", "topic": "Ann", "text": "x", "claims": claims, "passages": passages}
    return Document(**fields | more)


def test_a_stack_sets_every_field_of_its_parts_once():
    pages, counted = Defence(wrap_retrieve=TopicPage), Defence(score="f1_at_k", k=2)
    both = stack("robust", {"page": pages, "recall": counted})
    patched = both.patch(Pipeline(Given(), [Labels()]))
    assert isinstance(patched.retrieve, TopicPage)
    assert both.k == 2
    first, other = DistinctWords(), DistinctWords()
    selecting = Defence(select=first, select_for={"SAFE": other})
    assert selecting.patch(Pipeline(Given(), [Labels()]), "SAFE").select is other
    assert selecting.patch(Pipeline(Given(), [Labels()]), "FActScore").select is first
    with pytest.raises(UserError, match="stacks: s: a and b both set `score`"):
        stack("s", {"a": counted, "b": Defence(score="precision")})
    with pytest.raises(UserError, match="must be set together"):
        Defence(k=3)


def test_the_stages_of_a_score_configuration_are_a_defence(tmp_path):
    config = tmp_path / "stack.yaml"
    config.write_text(
        "pipeline:\n  decompose: {class_path: eval.decompose.given.Given}\n"
        "  select: {class_path: eval.select.controls.DistinctWords}\n"
        "  verify: [{class_path: eval.verify.labels.Labels}]\n"
    )
    defence = Defence(config=str(config), score="f1_at_k", k=4)
    patched = defence.patch(Pipeline(Given(), [Labels()]))
    assert isinstance(patched.select, DistinctWords)
    assert isinstance(patched.verify[0], Labels)
    with pytest.raises(UserError, match="expected a configuration of `eval score` with `pipeline`"):
        Defence(config=str(tmp_path / "nothing.yaml"))


def test_what_an_adversary_optimises_is_a_score_of_the_defended_pipeline_or_three_parts():
    documents = [document()]
    pipeline, defences = Pipeline(Given(), [Labels()]), {"recall": Defence(score="f1_at_k", k=6)}
    assert PipelineScore(pipeline, defences).score(documents) == [0.75]
    assert PipelineScore(pipeline, defences, ["recall"]).score(documents) == [0.6]
    half = ThreePartReward(pipeline, relevance=lambda *_: [[1, 0, None]])
    assert half.score(documents) == [pytest.approx(3 / 5 + 0.01 * math.log(4) + 0.1 / 2)]
    unread = ThreePartReward(pipeline, relevance=lambda *_: [[None]])
    assert unread.score(documents) == [None]
    with pytest.raises(UserError, match="against: 'core' is not one of recall"):
        PipelineScore(pipeline, defences, ["core"])


def test_leave_one_out_names_a_stack_without_each_part():
    single = {"a": Defence(), "b": Defence()}
    assert combine(single, {"s": ["a", "b"]}, ["s"]) == {
        "a": ("a",),
        "b": ("b",),
        "s": ("a", "b"),
        "s - a": ("b",),
        "s - b": ("a",),
    }
    with pytest.raises(UserError, match="stacks: s: 'c' is not a defence"):
        combine(single, {"s": ["c"]}, [])
    with pytest.raises(UserError, match="leave_one_out: 't' is not a stack"):
        combine(single, {}, ["t"])


def test_the_topics_page_keeps_its_own_passages_only():
    doc = document()
    ((first, *_),), (kept,) = TopicPage(GivenPassages())([doc], [doc.claims])
    assert first.contexts == ["p"]
    assert [passage.id for passage in kept] == ["p"]
    exact = Passage(id="r", title="Ann", text="z")
    doc = document(passages=[*doc.passages, exact])
    _, (kept,) = TopicPage(GivenPassages())([doc], [doc.claims])
    assert [passage.id for passage in kept] == ["r"]


def test_controls_keep_distinct_words_and_as_many_at_random():
    doc = document()
    (lexical,) = DistinctWords()([doc], [doc.claims])
    assert [s.selected for s in lexical] == [True, False, True, False]
    assert lexical[3].duplicate_of == "c0"
    draws = {
        tuple(s.selected for s in row)
        for seed in range(20)
        for row in RandomDrop(DistinctWords(), seed)([doc], [doc.claims])
    }
    assert {sum(row) for row in draws} == {2}
    assert len(draws) == 6


def test_a_grid_scores_each_column_on_its_own_scale():
    defences = {
        "lexical": Defence(select=DistinctWords()),
        "recall": Defence(score="f1_at_k", k=4),
    }
    grid = Grid({"m": Pipeline(Given(), [Labels()], gamma=0)}, defences)
    (row,) = grid([document()])
    values = {
        score.selection: grid.defences[score.selection].value(score)
        for score in row.metrics["m"].scores
    }
    assert values == pytest.approx({"none": 3 / 4, "lexical": 1 / 2, "recall": 3 / 4})


class Constant(TextMetric):
    def __init__(self, *scores):
        self.scores = scores

    def score(self, documents):
        return list(self.scores)


def test_scores_of_a_text_metric_are_validated():
    documents = [document(), document(id="e")]
    assert text_scores("mine", Constant(1, None), documents) == [1.0, None]
    with pytest.raises(UserError, match="text_metrics: mine: expected 2 scores, got 1"):
        text_scores("mine", Constant(1), documents)
    for wrong in (2.0, float("nan"), "0.5"):
        with pytest.raises(UserError, match=r"document 'e': expected a number in \[0, 1\] or None"):
            text_scores("mine", Constant(0, wrong), documents)


MODULE = """
import datasets
import evaluate


class Shared(evaluate.Metric):
    def _info(self):
        text = datasets.Value("string")
        features = datasets.Features({"predictions": text, "references": text})
        return evaluate.MetricInfo("words", "nobody", features)

    def _compute(self, predictions, references, times=1):
        words = [set(text.split()) for text in (*predictions, *references)]
        return {"shared": times * len(words[0] & words[1]) / len(words[0])}
"""


def test_an_evaluate_module_scores_each_text_by_its_passages(tmp_path):
    script = tmp_path / "shared" / "shared.py"
    write_text(script, MODULE)
    documents = [document(text="x z"), document(passages=None), document(text="Ann lives")]
    for module in (script, script.parent):
        metric = EvaluateModule(str(module), "shared", settings={"times": 50}, range=(0, 100))
        assert text_scores("mine", metric, documents) == [0.25, None, 0.0]
    topic = EvaluateModule(str(script), "shared", {"predictions": "topic", "references": "text"})
    assert topic.score(documents) == [0, 0, 1]


def test_a_language_models_number_is_a_score_and_an_answer_without_one_a_failure(tmp_path):
    prompts = []

    def answer(body):
        prompts.append(body["messages"][-1]["content"])
        return "Score: 80" if "Ann (painter): x" in prompts[-1] else "I cannot tell."

    with ModelServer(answer) as server:
        writer = OpenAIServer("m", server.url, when_cut="fail", cache=tmp_path / "a.sqlite")
        metric = PromptedScore(writer, retries=1)
        documents = [document(), document(id="e", passages=None)]
        assert text_scores("mine", metric, documents) == [0.8, None]
    assert len(prompts) == 3
    assert "Evidence" not in prompts[-1]


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("**4/5**", 4),
        ("The score is between 1 and 5. Final score: **3.5**", 3.5),
        ("Score: 7", None),
        ("3 of 5 statements are true.", None),
        ("", None),
    ],
)
def test_a_score_is_read_from_an_answer(answer, score):
    assert read_score(answer, (1, 5)) == score
