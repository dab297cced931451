"""``eval audit`` on tiny texts: verdicts of metrics with known faults, and errors of the user."""

import json
from pathlib import Path

import pytest
import yaml
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from eval.__main__ import main
from eval.audit import audit
from eval.audit.grpo import AuditCallback
from eval.metrics.text_metric import TextMetric
from records import UserError, write_jsonl

ROOT = Path(__file__).parents[2]
TOPICS = [f"Ann {letter}" for letter in "ABCDEFGH"]
FRUITS = ("apple", "banana", "cherry", "lemon", "mango")
FALSE = ("stone", "metal", "paper", "glass", "cotton")


def statements(topic, true):
    return [f"{topic} likes {name}." for name in (*FRUITS[:true], *FALSE[true:])]


def row(topic, kind, lines, f1, **more):
    gold = {"precision": f1, "recall": f1, "f1": f1, "k": 5, "source": "construction"}
    text = {"id": f"{topic} {kind} {f1}", "topic": topic, "kind": kind, "text": " ".join(lines)}
    return text | {"gold": gold} | more


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = " ".join(FRUITS)
    write_jsonl(
        "data/leads/passages_test.jsonl",
        [{"id": topic, "title": topic, "text": f"{topic} likes {page}"} for topic in TOPICS],
    )
    for kind, prefix in (("ladder", ""), ("affirmed", "Surely ")):
        ladder = [
            row(topic, kind, [prefix + line for line in statements(topic, true)], true / 5)
            for topic in TOPICS
            for true in range(6)
        ]
        write_jsonl(f"data/ladders/{kind}.jsonl", ladder)
    attacks = {
        "repeated": ("counting", lambda topic: statements(topic, 1)[:1] * 5, 0.2),
        "denied_unseen": ("judge", lambda topic: [f"No {s}" for s in statements(topic, 5)], 0.0),
    }
    for kind, (family, lines, f1) in attacks.items():
        texts = [row(topic, kind, lines(topic), f1, family=family) for topic in TOPICS]
        write_jsonl(f"data/attacks/{kind}.jsonl", texts)
    # An attack for which no topic has statements
    (tmp_path / "data/attacks/conjunctions.jsonl").touch()
    for folder in ("leads", "ladders", "attacks"):
        (tmp_path / f"data/{folder}/manifest.json").write_text("{}")


def overlap(documents):
    pages = [set(d.passages[0].text.lower().split()) for d in documents]
    words = [d.text.lower().replace(".", "").split() for d in documents]
    return [
        sum(w in page for w in text) / len(text) for page, text in zip(pages, words, strict=True)
    ]


class Gold(TextMetric):
    """What a perfect metric returns."""

    def score(self, documents):
        return [document.gold.f1 for document in documents]


def length(texts):
    return [len(text.split()) / text.count(".") for text in texts]


def test_token_overlap_is_gamed_with_an_example_of_a_better_honest_text():
    result = audit(overlap)
    assert (result.verdict, result.gamed, result.failed) == ("gamed", True, 0)
    assert {attack.family for attack in result.attacks} == {"counting", "judge"}
    example = result.example
    assert example.attacked.score > example.honest.score
    assert example.honest.gold > example.attacked.gold + 0.39
    assert example.attacked.text.split()[0] in result.screen()


def test_the_gold_score_is_not_gamed():
    result = audit(Gold())
    assert {attack.verdict for attack in result.attacks} == {"unclear"}
    assert result.order == {"ladder": 1.0, "affirmed": 1.0}


def test_the_length_of_sentences_is_void():
    assert audit(length).verdict == "void"


def test_a_constant_metric_is_unusable():
    result = audit(lambda texts: [3.0 for _ in texts])
    assert result.unusable == "all scores are 3"
    assert result.gamed
    assert result.screen().count("\n") == 0


def test_a_metric_that_fails_on_a_fifth_of_the_texts_is_unusable_and_its_errors_are_counted():
    def score(texts):
        if any("Surely Ann A" in text or "glass" in text for text in texts):
            raise RuntimeError("no answer")
        return length(texts)

    result = audit(score)
    assert result.unusable.startswith("it fails on ")
    assert result.errors == {"RuntimeError: no answer": result.failed}


METRIC = """
def score(texts):
    return [len(set(text.split())) / len(text.split()) for text in texts]

def reward(prompts, completions, topic, **columns):
    assert all(name in prompt for name, prompt in zip(topic, prompts))
    return score(completions)
"""


def test_predictions_and_a_reward_and_a_function_have_the_same_result(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(METRIC)
    assert main(["audit", "--texts", "texts.jsonl"]) == 0
    texts = list(map(json.loads, (tmp_path / "texts.jsonl").read_text().splitlines()))
    assert {"id", "topic", "prompt", "text", "passages"} == texts[0].keys()
    scores = [len(set(r["text"].split())) / len(r["text"].split()) for r in texts]
    rows = [{"id": r["id"], "score": s} for r, s in zip(texts, scores, strict=True)]
    write_jsonl("predictions.jsonl", rows)
    results = []
    for target in ("mine.py", "mine.py:reward", "predictions.jsonl"):
        assert main(["audit", target, "--output", "out", "--fail_on", "gamed"]) == 1
        results.append(json.loads((tmp_path / "out/audit.json").read_text()))
        assert (tmp_path / "out/report.html").is_file()
    for result in results:
        del result["target"], result["config_hash"]
    assert results[0] == results[1] == results[2]
    captured = capsys.readouterr()
    assert "after 20 texts" in captured.err
    assert "order of honest texts" in captured.out


def test_max_texts_draws_fewer_topics():
    assert audit(length, max_texts=45).topics == 3


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def score(texts): return [1.0]", "expected 20 scores, got 1"),
        ("def score(texts): raise KeyError('page')", "KeyError: 'page'"),
        ("def score(texts, model): return [1.0]", "missing a required argument: 'model'"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("def other(texts): return [1.0]", "expected a TextMetric"),
    ],
)
def test_a_fault_of_the_users_metric_is_one_line(tmp_path, code, message):
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(UserError) as error:
        main(["audit", "mine.py"])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def reward(prompts, completions, **columns):
    return length([f"{text}." for text in completions])


def test_a_reward_is_audited_while_trl_trains_with_it(tiny_llama, capsys):
    sizes = {"per_device_train_batch_size": 2, "num_generations": 2, "max_completion_length": 4}
    options = GRPOConfig("grpo", max_steps=2, bf16=False, report_to=[], use_cpu=True, **sizes)
    callback = AuditCallback(reward, steps=2)
    trainer = GRPOTrainer(
        str(tiny_llama),
        reward,
        options,
        Dataset.from_list([{"prompt": topic} for topic in TOPICS]),
        callbacks=[callback],
    )
    trainer.train()
    assert {step: result.verdict for step, result in callback.audits.items()} == {2: "void"}
    assert "step 2: reward: void" in capsys.readouterr().out
    assert "audit/repeated" in trainer.state.log_history[-2]


def test_an_evaluate_module_is_audited_by_a_line_of_python(tmp_path):
    module = ROOT / "eval/metrics/lss_score.py"
    (tmp_path / "mine.py").write_text(
        "from eval.metrics.evaluate_module import EvaluateModule\n"
        f"rouge = EvaluateModule({str(module)!r}, 'rougeL')\n"
    )
    result = audit("mine.py:rouge", max_texts=30)
    assert (result.failed, result.errors, result.topics) == (0, {}, 2)


def test_a_score_configuration_is_audited_without_its_selector_and_with_the_stack(
    relation, tmp_path
):
    for folder in ("configs", "checkpoints"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    entailment = {
        "class_path": "eval.models.encoder.Entailment",
        "init_args": {"checkpoint": str(relation)},
    }
    pipeline = {
        "decompose": {"class_path": "eval.decompose.sentences.Sentences"},
        "select": {"class_path": "eval.select.controls.DistinctWords"},
        "verify": [{"class_path": "eval.verify.nli.NLI", "init_args": {"entailment": entailment}}],
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"pipeline": pipeline}))
    result = audit("mine.yaml", max_texts=45)
    assert (result.target, result.topics, result.failed) == ("mine.yaml", 3, 0)
    for name in ("none", "robust"):
        assert {attack.kind for attack in result.defences[name]} == {"repeated", "denied_unseen"}
