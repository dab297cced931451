"""GRPO: a reward rises, a killed run ends with the same adapter, failures are counted."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from transformers.trainer_callback import CallbackHandler

from cli.command import CommandError
from components.checkpoint import read_component
from eval.models.causal import CausalLM
from records import write_jsonl
from tests.eval.conftest import tiny_llama
from train.__main__ import main

__all__ = ["tiny_llama"]  # fixtures
SIZES = {
    "max_steps": 10, "per_device_train_batch_size": 32, "num_generations": 16, "save_steps": 2,
    "max_completion_length": 24, "learning_rate": 0.05, "bf16": False,
}  # fmt: skip


class Words:
    """Words of a text; a text that starts with a digit fails."""

    def __init__(self, scale: float = 1.0):
        self.scale = scale

    def score(self, documents):
        texts = [document.text for document in documents]
        return [None if text[:1].isdigit() else self.scale * len(text.split()) for text in texts]


def train(base: Path, name: str) -> Path:
    write_jsonl("topics.jsonl", [{"topic": topic} for topic in ("Ann", "Bob", "Eve")])
    options = {
        "--model": "train.rl.Reinforced", "--model.base": str(base), "--model.chat": "false",
        "--model.prompt_template": "Tell me of {topic}.", "--topics": '["topics.jsonl"]',
        "--reward": json.dumps({"class_path": "tests.train.test_rl.Words"}),
        "--grpo": json.dumps(SIZES), "--export_steps": "[0, 6]", "--name": name,
    }  # fmt: skip
    assert main(["rl", *[part for pair in options.items() for part in pair]]) == 0
    return Path("checkpoints") / name


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_word_count_rises_and_a_killed_run_ends_with_the_same_bytes(
    tiny_llama, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    whole = train(tiny_llama, "rl")
    rows = list(csv.DictReader(Path("runs/train/rl/metrics.csv").read_text().splitlines()))
    rewards = [float(row["train/reward"]) for row in rows]
    print(rewards, [row["train/kl"] for row in rows], [row["train/failed"] for row in rows])
    assert len(rows) == 10
    assert sum(rewards[-3:]) > sum(rewards[:3]) + 1
    assert float(rows[-1]["train/kl"]) > float(rows[0]["train/kl"]) == 0
    before = {name: files(Path(name)) for name in map(str, Path("checkpoints").iterdir())}
    assert set(before) == {f"checkpoints/rl{end}" for end in ("", "_step_0", "_step_6")}

    real, steps = CallbackHandler.on_step_end, []

    def dies(self, args, state, control):
        steps.append(state.global_step)
        if len(steps) == 7:
            raise KeyboardInterrupt
        return real(self, args, state, control)

    shutil.rmtree("runs/train/rl/checkpoint-10")  # so that it starts again
    monkeypatch.setattr(CallbackHandler, "on_step_end", dies)
    with pytest.raises(KeyboardInterrupt):
        train(tiny_llama, "rl")
    Path("runs/train/rl/checkpoint-8").mkdir()  # killed while it was written
    train(tiny_llama, "rl")
    assert steps == [*range(1, 8), *range(7, 11)]
    assert {name: files(Path(name)) for name in before} == before
    component = read_component(whole, "adversary")
    assert component.metrics["train/reward"] == rewards[-1]
    assert component.evaluation["reward"]["class_path"].endswith("Words")
    assert CausalLM(whole).sample(["Ann"], max_new_tokens=4) != [[""]]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"class_path": "no.such.Metric"}, "No module named 'no'"),
        ({"class_path": "tests.train.test_rl.Words", "init_args": {"size": 1}}, "size"),
    ],
)
def test_a_wrong_reward_is_one_line(spec, message):
    options = ["--model", "train.rl.Reinforced", "--topics", "[x]", "--reward", json.dumps(spec)]
    with pytest.raises(CommandError, match=message):
        main(["rl", *options])
