"""From a metric's preferences to the page that says whether a defence held, by the command line."""

import json
from pathlib import Path

import pytest
import yaml

from data_builders.__main__ import main as build
from eval.commands.experiment import main as experiment
from records import read_results
from tests.data_builders.test_preferences import TOPICS, config, lines
from tests.eval.conftest import adversary, make_checkpoint, relation, tiny_llama, unli
from train.__main__ import main as train

__all__ = ["adversary", "config", "make_checkpoint", "relation", "tiny_llama", "unli"]  # fixtures

STEPS = (0, 2, 4)
NAMES = ("none", "core")  # what is trained against


def fit(base: str, name: str) -> None:
    """Train against a metric, keeping three steps."""
    given = {
        "--model": "train.preference.Preference",
        "--model.base": base,
        "--model.prompt_template": "Tell me of {topic}.",
        "--model.chat": "false",
        "--model.max_length": "64",
        "--model.lr": "0.05",
        "--data": "train.data.RecordData",
        "--data.train": f"{name}/preferences_train.jsonl",
        "--data.dev": f"{name}/preferences_dev.jsonl",
        "--name": name,
        "--export_to": f"checkpoints/{name}",
        "--export_steps": json.dumps(STEPS),
        "--trainer.max_steps": str(STEPS[-1]),
        "--trainer.accelerator": "cpu",
        "--trainer.precision": "32-true",
        "--trainer.enable_progress_bar": "false",
        "--trainer.enable_model_summary": "false",
        "--trainer.val_check_interval": "2",
        "--trainer.check_val_every_n_epoch": "null",
    }
    assert train(["fit", *[part for pair in given.items() for part in pair]]) == 0


def authors(name: str) -> dict:
    """Who writes at each step."""
    found = {}
    for step in STEPS:
        folder = f"checkpoints/{name}_step_{step}"
        writer = {"class_path": "eval.models.local.LocalModel", "init_args": {"model": folder}}
        fields = {"adversary": name, "step": step}
        found[f"{name} {step}"] = {"writer": writer, "prompts": {"a": folder}, "fields": fields}
    return found


@pytest.mark.slow
def test_preferences_training_texts_of_the_steps_and_the_experiment(
    config, tiny_llama, monkeypatch
):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    who = ["--generator", str(tiny_llama), "--prompt", "Tell me of {topic}.", "--cache", "a.sqlite"]
    for name in NAMES:
        own = ["--selection", name, "--output", name]
        assert build(["preferences", "--config", config, *who, *own]) == 0
        fit(str(tiny_llama), name)
    options = {"output": "texts", "topics": ["topics.jsonl"], "max_new_tokens": 40}
    options |= {"authors": authors("none") | authors("core"), "temperature": 2.0}
    Path("texts.yaml").write_text(yaml.safe_dump(options), encoding="utf-8")
    assert build(["generations", "--config", "texts.yaml"]) == 0
    texts = lines(Path("texts/a.jsonl"))
    assert len(texts) == 2 * len(STEPS) * len(TOPICS)
    start = [[r["text"] for r in texts if (r["adversary"], r["step"]) == (n, 0)] for n in NAMES]
    assert start[0] == start[1], "both trainings start from one model"

    pipeline = yaml.safe_load(Path("pipeline.yaml").read_text(encoding="utf-8"))["pipeline"]
    selector = pipeline.pop("select")
    given = {"metrics": {"nli": pipeline}, "defences": {"core": {"select": selector}}}
    given["adversaries"] = ["texts/a.jsonl"]
    Path("optimise.yaml").write_text(yaml.safe_dump({"experiment": given}), encoding="utf-8")
    assert experiment(["optimise", "--config", "optimise.yaml", "--output", "run"]) == 0
    rows = read_results("run/results.json").results
    found = {(r.kind, r.variant, r.selection): r for r in rows if r.metric == "gain"}
    assert set(found) == {(n, s, d) for n in NAMES for s in (2, 4) for d in ("none", "core")}
    claims = [(r.kind, r.variant) for r in rows if (r.metric, r.selection) == ("claims", "core")]
    assert sorted(claims) == [(name, step) for name in sorted(NAMES) for step in STEPS]
