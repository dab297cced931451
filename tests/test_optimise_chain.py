"""Iterated DPO by ``make attack``, killed in every stage, and the page of its adversaries."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from data_builders.__main__ import main as build
from eval.commands.experiment import main as experiment
from records import read_results
from tests.data_builders.test_preferences import TOPICS, config, lines
from tests.eval.conftest import adversary, make_checkpoint, relation, tiny_llama, unli

__all__ = ["adversary", "config", "make_checkpoint", "relation", "tiny_llama", "unli"]  # fixtures
ROOT = Path(__file__).parents[1]
NAMES = ("core",)


def make(seconds: float | None = None) -> bool:
    """Run ``make attack``; after so many seconds it is killed. Whether it finished."""
    options = ["READY=", "NEEDS=", "LOGS=logs", "ROUNDS=2", f"ATTACKS={' '.join(NAMES)}"]
    options += ["PREFERENCES=config.yaml", "DPO=fit.yaml", f"PY={sys.executable}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "WANDB_MODE": "disabled"}
    with subprocess.Popen(
        ["make", "-f", ROOT / "Makefile", "attack", *options],
        env=environment, start_new_session=True, stdout=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return False


def made() -> dict[str, bytes]:
    folders = [*Path("data").iterdir(), *Path("checkpoints/small").iterdir()]
    paths = [path for folder in folders for path in folder.iterdir()]
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


@pytest.mark.slow
def test_killed_attack_rounds_resume_byte_identical(config, tiny_llama):
    options = yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))
    options |= {"generator": str(tiny_llama), "prompt": "Tell me of {topic}."}
    Path("config.yaml").write_text(yaml.safe_dump(options), encoding="utf-8")
    model = {"base": str(tiny_llama), "prompt_template": "Tell me of {topic}.", "chat": False}
    model |= {"max_length": 64, "lr": 0.05}
    trainer = {"max_steps": 3, "accelerator": "cpu", "precision": "32-true"}
    trainer |= {"val_check_interval": 1, "check_val_every_n_epoch": None}
    fit = {
        "model": {"class_path": "train.preference.Preference", "init_args": model},
        "data": {"class_path": "train.data.RecordData", "init_args": {"train": "", "dev": ""}},
        "trainer": trainer,
        "save_every": 1,
    }
    Path("fit.yaml").write_text(yaml.safe_dump(fit), encoding="utf-8")
    start = time.monotonic()
    assert make()
    seconds = time.monotonic() - start
    whole = made()
    assert {f"data/attack_{n}_{r}/samples.jsonl" for n in NAMES for r in (1, 2)} <= set(whole)
    for name in ("data", "checkpoints", "runs"):
        Path(name).rename(f"whole_{name}")
    kills = 0
    while not make(seconds * (0.2 + 0.05 * kills)):
        kills += 1
    assert kills > 1
    assert made() == whole

    authors = {}
    for name in NAMES:
        for step, model in enumerate((tiny_llama, *(f"attack_{name}_{r}" for r in (1, 2)))):
            folder = f"checkpoints/small/{model}" if step else str(model)
            writer = {"class_path": "eval.models.local.LocalModel", "init_args": {"model": folder}}
            prompts = {"a": "Tell me of {topic}."}
            fields = {"adversary": name, "step": step}
            authors[f"{name} {step}"] = {"writer": writer, "prompts": prompts, "fields": fields}
    options = {"output": "texts", "topics": ["topics.jsonl"], "max_new_tokens": 40}
    options |= {"authors": authors, "temperature": 2.0}
    Path("texts.yaml").write_text(yaml.safe_dump(options), encoding="utf-8")
    assert build(["generations", "--config", "texts.yaml"]) == 0
    texts = lines(Path("texts/a.jsonl"))
    assert len(texts) == len(NAMES) * 3 * len(TOPICS)
    pipeline = yaml.safe_load(Path("pipeline.yaml").read_text(encoding="utf-8"))["pipeline"]
    selector = pipeline.pop("select")
    options = {"metrics": {"nli": pipeline}, "defences": {"core": {"select": selector}}}
    options["adversaries"] = ["texts/a.jsonl"]
    Path("optimise.yaml").write_text(yaml.safe_dump({"experiment": options}), encoding="utf-8")
    assert experiment(["optimise", "--config", "optimise.yaml", "--output", "run"]) == 0
    rows = read_results("run/results.json").results
    scored = {(r.kind, r.variant, r.selection) for r in rows if r.metric == "factual_precision"}
    assert scored == {(n, s, d) for n in NAMES for s in (0, 1, 2) for d in ("none", "core")}
