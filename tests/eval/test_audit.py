"""``eval audit`` on tiny texts: verdicts of metrics with known faults, and errors of the user."""

import asyncio
import builtins
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from eval.__main__ import main
from eval.audit import audit
from eval.audit.grpo import AuditCallback
from eval.metrics.text_metric import TextMetric
from eval.run.run import Run
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
    (tmp_path / "data/attacks/merged.jsonl").touch()
    probe = {"kind": "probe", "bank": "plain", "topic": TOPICS[0], "text": "Ann A likes apple."}
    probe |= {"claims": [{"id": "c0", "text": probe["text"], "label": "S"}]}
    write_jsonl("data/probes/probes.jsonl", [probe | {"id": "p", "probe": "true single"}])
    for folder in ("leads", "ladders", "attacks", "probes"):
        (tmp_path / f"data/{folder}").mkdir(exist_ok=True)
        (tmp_path / f"data/{folder}/manifest.json").write_text("{}")


def overlap(documents):
    pages = [set(d.passages[0].text.lower().split()) for d in documents]
    words = [d.text.lower().replace(".", "").split() for d in documents]
    return [
        sum(w in page for w in text) / len(text) for page, text in zip(pages, words, strict=True)
    ]


class Gold(TextMetric):
    """What a perfect metric returns."""

    sees_all = True

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
    assert result.example is None  # no worse text scores higher
    assert result.is_at_most("unclear")
    assert not result.is_at_most("failed")
    assert result.order == {"ladder": 1.0, "affirmed": 1.0}


def test_the_screen_says_whether_a_metric_orders_texts_better_than_a_test_of_words():
    control = audit(overlap).screen().splitlines()[1]
    assert control.startswith("word test (control): τ ladder 1.00, affirmed ")
    assert control.endswith(" attacks gamed; the metric orders honest texts no better")


def test_the_length_of_sentences_is_void():
    result = audit(length)
    assert (result.verdict, result.gamed, result.is_at_most("gamed")) == ("void", False, True)
    assert "void: τ of score and gold on `ladder` is " in result.screen()


@pytest.mark.parametrize("factor", [100, 3e-9, 1e-12, 1e15])
def test_a_metric_on_another_scale_has_the_same_result(factor):
    def scaled(documents):
        return [factor * score for score in overlap(documents)]

    expected, result = audit(overlap), audit(scaled)
    assert result.verdict == "gamed"
    assert result.order == pytest.approx(expected.order)
    for attack, same in zip(result.attacks, expected.attacks, strict=True):
        assert (attack.kind, attack.verdict) == (same.kind, same.verdict)
        values = [attack.excess_inflation, attack.asr, *attack.bounds, *attack.asr_bounds]
        assert values == pytest.approx(
            [same.excess_inflation, same.asr, *same.bounds, *same.asr_bounds]
        )


def test_a_metric_of_which_lower_is_better_is_told_so():
    result = audit(lambda documents: [1 - score for score in overlap(documents)])
    assert result.verdict == "void"
    assert "if lower is better, negate the scores" in result.void


def test_a_constant_metric_is_unusable():
    result = audit(lambda texts: [3.0 for _ in texts])
    assert result.unusable == "all scores are 3"
    assert result.is_at_most("gamed")
    assert result.screen().count("\n") == 0


def test_a_metric_that_fails_on_a_fifth_of_the_texts_is_unusable_and_its_errors_are_counted():
    def score(texts):
        if any("Surely Ann A" in text or "glass" in text for text in texts):
            raise RuntimeError("no answer")
        return length(texts)

    result = audit(score)
    assert result.unusable.startswith("it fails on ")
    ((message, count),) = result.errors.items()
    assert re.fullmatch(r"RuntimeError: no answer \(test_audit\.py:\d+\)", message)
    assert count == result.failed


def test_an_attack_whose_texts_all_fail_is_listed_as_failed():
    def score(documents):
        if any(document.kind == "denied_unseen" for document in documents):
            raise RuntimeError("content filter")
        return [document.gold.f1 for document in documents]

    class Refusing(TextMetric):
        sees_all = True

        def score(self, documents):
            return score(documents)

    result = audit(Refusing())
    assert result.failed == len(TOPICS)
    assert {attack.kind: attack.verdict for attack in result.attacks} == {
        "denied_unseen": "failed",
        "repeated": "unclear",
    }
    assert f"{len(TOPICS)} failed" in result.screen().splitlines()[3]
    assert result.verdict == "failed"
    assert result.is_at_most("failed")
    assert not result.is_at_most("gamed")
    assert "failed" in Path(result.report).read_text(encoding="utf-8")


def test_one_batch_without_an_answer_does_not_end_the_audit():
    batches = []

    def score(documents):
        batches.append(len(documents))
        if 2 <= len(batches) <= 2 + 112:  # the second batch, and its texts one by one
            raise ConnectionError("down")
        return overlap(documents)

    result = audit(score, max_texts=10_000)
    assert 0 < result.failed < result.texts
    assert result.unusable.startswith("it fails on")


def test_a_metric_with_other_scores_at_a_second_try_is_unstable():
    calls = Counter()

    def score(texts):
        calls.update(texts)
        return [len(text) + calls[text] / 4 for text in texts]

    assert audit(length).unstable is None
    result = audit(score)
    assert result.unstable.startswith("20 of 20 texts have another score")
    assert "unstable: 20 of 20" in result.screen()


class Killed(BaseException):
    pass


def test_a_killed_audit_resumes_and_one_of_an_edited_file_starts_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("eval.run.run.CHUNK", 16)
    monkeypatch.setattr(Run.process, "__defaults__", (16, None))
    (tmp_path / "mine.py").write_text(
        "import builtins\n"
        "def score(texts):\n"
        "    builtins.scored += len(texts)\n"
        "    if builtins.scored > builtins.most: raise builtins.Killed\n"
        "    return [len(set(text.split())) / len(text.split()) for text in texts]\n"
    )
    monkeypatch.setattr(builtins, "Killed", Killed, raising=False)
    for edit in ("", "# edited\n"):
        monkeypatch.setattr(builtins, "most", 60, raising=False)
        monkeypatch.setattr(builtins, "scored", 0, raising=False)
        with pytest.raises(Killed):
            audit("mine.py", output="out")
        before = builtins.scored
        monkeypatch.setattr(builtins, "most", 10_000, raising=False)
        monkeypatch.setattr(builtins, "scored", 0, raising=False)
        (tmp_path / "mine.py").write_text((tmp_path / "mine.py").read_text() + edit)
        result = audit("mine.py", output="out")
        rescored = builtins.scored - 20  # twenty are scored twice
        assert rescored == result.texts - (0 if edit else 20 + 8 + 16 + 16)
        assert before > 60
    other = audit("mine.py", output="other")
    assert other.model_dump(exclude={"report"}) == result.model_dump(exclude={"report"})


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


def predictions(change):
    assert main(["audit", "--texts", "texts.jsonl"]) == 0
    texts = map(json.loads, Path("texts.jsonl").read_text(encoding="utf-8").splitlines())
    rows = [{"id": row["id"], "score": len(row["text"])} for row in texts]
    write_jsonl("predictions.jsonl", change(rows))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows + rows[:3], "3 of 112 ids have several scores, such as '"),
        (lambda rows: rows[2:], "2 texts have no score, such as '"),
        (lambda rows: [*rows, {"id": "x", "score": 1}], "1 ids are of no text, such as 'x'"),
    ],
)
def test_predictions_that_do_not_fit_the_texts_are_refused(change, message):
    predictions(change)
    with pytest.raises(UserError, match=re.escape(message)):
        main(["audit", "predictions.jsonl"])


def test_several_scores_of_a_text_are_averaged_with_repeats_mean():
    predictions(lambda rows: rows)
    single = audit("predictions.jsonl").model_dump(exclude={"config_hash"})
    predictions(lambda rows: [row | {"score": row["score"] + d} for d in (-1, 1) for row in rows])
    twice = audit("predictions.jsonl", repeats="mean").model_dump(exclude={"config_hash"})
    assert single == twice


def test_max_texts_draws_fewer_topics():
    assert audit(length, max_texts=45).topics == 3


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def score(texts): return [1.0]", "expected 8 scores, got 1"),
        ("def score(texts):\n    raise KeyError('page')", "KeyError: 'page' (mine.py:2)"),
        ("def score(texts, model): return [1.0]", "missing a required argument: 'model'"),
        ("import no_such_module", "No module named 'no_such_module' (mine.py:1)"),
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


def chat(completions, **columns):
    return length([f"{messages[0]['content']}." for messages in completions])


async def awaited(completions, **columns):
    await asyncio.sleep(0)
    return reward(None, completions)


class Flaky:
    def __call__(self, completions, **columns):
        raise ConnectionError("refused")


@pytest.mark.parametrize("target", [chat, awaited, [reward, chat]])
def test_rewards_of_chat_messages_coroutines_and_lists_are_audited_as_trl_calls_them(target):
    expected, result = audit(reward), audit(target)
    assert result.failed == 0
    assert result.order == expected.order


def test_an_async_metric_is_awaited(tmp_path):
    (tmp_path / "mine.py").write_text("async def score(texts): return [len(t) for t in texts]")
    assert audit("mine.py").failed == 0


def test_a_reward_that_an_audit_cannot_call_is_refused_when_the_callback_is_made():
    def with_answer(completions, answer):
        return [float(a in c) for c, a in zip(completions, answer, strict=True)]

    for target in (with_answer, torch.nn.Linear(1, 1), [reward, "my-lab/model"]):
        with pytest.raises(UserError, match="expected a TextMetric"):
            AuditCallback(target)


def test_an_audit_that_fails_is_printed_and_the_training_goes_on(tmp_path, capsys):
    callback = AuditCallback(Flaky(), steps=1)
    state = SimpleNamespace(global_step=1, is_world_process_zero=True, log_history=[])
    callback.on_step_end(SimpleNamespace(output_dir=tmp_path), state, None)
    assert state.log_history == []
    output = capsys.readouterr().out
    assert "step 1: no audit: UserError: Flaky: ConnectionError: refused (test_audit.py:" in output


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
    results = json.loads((tmp_path / "runs/audit/mine.yaml/results.json").read_text())["results"]
    certified = {row["selection"] for row in results if row["metric"] == "certificate"}
    assert certified == {"none", "configured", "robust"}
    for name in ("none", "robust"):
        assert {attack.kind for attack in result.defences[name]} == {"repeated", "denied_unseen"}
