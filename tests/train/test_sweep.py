"""Sweeps: the trials that are drawn, a failed and an interrupted trial, and the configurations."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import wandb
import yaml

from components.checkpoint import read_component
from records import UserError
from train.__main__ import main
from train.sweep import draw_trials, fit_arguments, run_trial

RANGES = {"model.lr": (1e-5, 1e-2)}


@pytest.fixture
def sweep(tmp_path: Path) -> Callable[..., int]:
    """Run a sweep of learning rates over a fit, with the output folder ``out``."""

    def _sweep(fit: list[str], rates: list[float], *options: str) -> int:
        path = tmp_path / "sweep.yaml"
        content = {"fit": fit, "measure": "mse", "choices": {"model.lr": rates}}
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        output = str(tmp_path / "out")
        return main(["sweep", "--config", str(path), "--output", output, *options])

    return _sweep


def test_interrupted_sweep_resumes_and_failed_trial_has_no_value(
    sweep: Callable, arguments: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    options = ["--trainer.max_steps", "60", "--save_every", "4"]
    options += ["--trainer.val_check_interval", "30"]
    output = tmp_path / "out"
    _, *fit = arguments("unli", *options)
    command = ["fit", *fit, "--model.lr=0.002", "--name", "000", "--runs", str(output / "runs")]
    kill_at_checkpoint(
        [*command, "--export_to", str(output / "checkpoints/000")], output / "runs/000/last.ckpt"
    )
    rates = [0.002, 1e30]  # the second makes the loss infinite
    assert sweep(fit, rates) == 0

    with open(output / "trials.csv", encoding="utf-8", newline="") as rows:
        good, bad = csv.DictReader(rows)
    assert (good["model.lr"], good["reason"]) == ("0.002", "")
    assert bad["mse"] == ""
    assert "Lower --model.lr" in bad["reason"]
    main(arguments("unli", *options, "--model.lr", "0.002", run="whole"))
    folders = output / "checkpoints/000", tmp_path / "checkpoints/whole"
    resumed, whole = ((folder / "model.safetensors").read_bytes() for folder in folders)
    assert resumed == whole
    assert float(good["mse"]) == read_component(folders[1]).metrics["mse"]
    assert not list((output / "runs").rglob("000/*.ckpt"))
    printed = capsys.readouterr().out
    assert "best: trial 000" in printed
    assert "to repeat it: python -m train fit --model train.unli.Unli" in printed

    with pytest.raises(UserError, match="another sweep or seed"):
        sweep(fit, rates, "--seed", "2")
    row = run_trial(fit, "accuracy", output, 0, {})
    assert row["accuracy"] is None
    assert row["reason"].startswith("no accuracy; measured ")


def kill_at_checkpoint(command: list[str], last: Path) -> None:
    """Start ``python -m train`` and kill it when it has written a checkpoint."""
    process = subprocess.Popen(
        [sys.executable, "-m", "train", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not last.is_file() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    assert process.wait() < 0


def test_grid_has_all_combinations() -> None:
    choices = {"model.lr": [0.1, 0.2], "model.r": [1, 2, 3]}
    grid = draw_trials(choices, {}, None, seed=1)
    assert len(grid) == 6
    assert grid[1] == {"model.lr": 0.1, "model.r": 2}
    with pytest.raises(UserError, match="--trials"):
        draw_trials(choices, RANGES, None, seed=1)


def test_random_draws_depend_on_seed_and_number_only() -> None:
    drawn = draw_trials({"data.batch_size": [8, 16]}, RANGES, 9, seed=5)
    assert draw_trials({"data.batch_size": [8, 16]}, RANGES, 4, seed=5) == drawn[:4]
    assert draw_trials({"data.batch_size": [8, 16]}, RANGES, 9, seed=6) != drawn
    rates = [options["model.lr"] for options in drawn]
    assert len(set(rates)) == 9
    assert all(1e-5 <= rate <= 1e-2 for rate in rates)


def test_values_become_arguments_of_fit() -> None:
    options = {"x": 1e30, "y": True, "z": None, "name": "a b"}
    assert fit_arguments(["--config", "f.yaml"], options) == [
        "fit", "--config", "f.yaml", "--x=1e+30", "--y=true", "--z=null", "--name=a b",
    ]  # fmt: skip


def test_wandb_has_the_exported_measures(
    arguments: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture,
) -> None:
    command = arguments("unli", "--model.lr", "0.3", "--model.monitor", "dev/mse",
                        "--trainer.val_check_interval", "1")  # fmt: skip
    monkeypatch.setenv("WANDB_MODE", "offline")
    wandb.finish()  # a run that another test of this process left open would be continued
    try:
        main(command)
        assert "wandb: WARNING" not in capfd.readouterr().err
        metrics = read_component(tmp_path / "checkpoints/run").metrics
        assert wandb.run.summary["dev/mse"] == metrics["mse"]
        config = dict(wandb.run.config)
        assert (config["lr"], config["monitor"], config["weight_decay"]) == (0.3, "dev/mse", 0.01)
        assert config["train"].endswith("unli.jsonl")
        assert (config["batch_size"], config["seed_everything"]) == (4, 1)
        assert config["trainer"]["max_steps"] == 6
    finally:
        wandb.finish()


def test_a_refused_log_server_does_not_end_the_training(
    arguments: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture,
) -> None:
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.setenv("WANDB_API_KEY", "short")
    wandb.teardown()  # its settings are read once per process
    try:
        main(arguments("unli"))
        errors = capfd.readouterr().err
        assert "this run is logged offline" in errors
        assert "Traceback" not in errors
        assert read_component(tmp_path / "checkpoints/run").metrics
        assert list(tmp_path.glob("runs/run/wandb/offline-run-*"))
    finally:
        wandb.teardown()
