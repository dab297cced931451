"""A sweep file works here and with wandb; an interrupted sweep resumes; failures have no score."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import wandb
import yaml
from optuna.trial import TrialState

from components.checkpoint import read_component
from records import UserError
from train.__main__ import main
from train.sweep import (
    Search,
    Trials,
    command_of,
    count_of,
    distribution_of,
    grid_of,
    read_sweep,
    space_of,
)

ROOT = Path(__file__).parents[2]
SWEEPS = sorted((ROOT / "configs/train").glob("*/sweep_*.yaml"))
LR = {"distribution": "log_uniform_values", "min": 1e-5, "max": 1e-2}


@pytest.fixture
def sweep_file(tmp_path: Path, arguments: Callable) -> Callable[..., str]:
    """Write a sweep over a small UNLI run and return its path."""

    def _sweep_file(parameters: dict, *options: str, **more: object) -> str:
        whole = {
            "program": "train",
            "method": "grid",
            "metric": {"name": "dev/mse", "goal": "minimize"},
            "parameters": parameters,
            "command": ["${env}", "python", "-m", "${program}",
                        *arguments("unli", *options), "${args}"],
        }  # fmt: skip
        path = tmp_path / "sweep.yaml"
        path.write_text(yaml.safe_dump(whole | more), encoding="utf-8")
        return str(path)

    return _sweep_file


def sweep(file: str, output: Path, *options: str) -> int:
    return main(["sweep", "--sweep", file, "--output", str(output), *options])


def test_a_killed_sweep_goes_on_and_a_failure_is_no_score(
    sweep_file: Callable, arguments: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    options = ["--trainer.max_steps", "60", "--save_every", "4"]
    options += ["--trainer.val_check_interval", "30"]
    # The absurd rate breaks the loss, which ends that trial and no other.
    file = sweep_file({"model.lr": {"values": [0.002, 1e30]}}, *options)
    output = tmp_path / "out"
    output.mkdir()
    kill_first_trial(Search(read_sweep(file), output, seed=1), output / "runs/000/last.ckpt")
    assert sweep(file, output) == 0

    with open(output / "trials.csv", encoding="utf-8", newline="") as rows:
        good, bad = csv.DictReader(rows)
    assert (good["state"], good["model.lr"], good["reason"]) == ("complete", "0.002", "")
    assert (bad["state"], bad["dev/mse"]) == ("fail", "")
    assert "lower --model.lr" in bad["reason"]
    main(arguments("unli", *options, "--model.lr", "0.002", run="whole"))
    folders = output / "checkpoints/000", tmp_path / "checkpoints/whole"
    resumed, whole = ((folder / "model.safetensors").read_bytes() for folder in folders)
    assert resumed == whole
    assert float(good["dev/mse"]) == read_component(folders[1]).metrics["mse"]
    best = json.loads((output / "best.json").read_text(encoding="utf-8"))
    assert best["parameters"] == {"model.lr": 0.002}
    assert best["trials"] == {"complete": 1, "failed": 1}
    assert best["command"].startswith("python -m train fit --model train.unli.Unli")
    assert best["command"].endswith("--model.lr=0.002")
    assert (output / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert not list((output / "runs").rglob("000/*.ckpt"))
    assert "best: trial 000" in capsys.readouterr().out

    assert sweep(file, output) == 0  # nothing is missing
    assert "of 2: python" not in capsys.readouterr().out
    with pytest.raises(UserError, match="another sweep or seed"):
        sweep(file, output, "--seed", "2")


def kill_first_trial(search: Search, last: Path) -> None:
    """Draw a trial and kill its process once it has a checkpoint, as kill -9 of a sweep would."""
    trial = search.draw(None)
    command = search.trials.command(trial.number, trial.params)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not last.is_file() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    assert process.wait() < 0


def test_a_trial_that_cannot_begin_stops_the_sweep_and_is_not_recorded(
    sweep_file: Callable, tmp_path: Path
) -> None:
    code = "import sys; print('error: no option --model.lrr'); sys.exit(2)"
    command = ["python", "-c", code, "${args}"]
    file = sweep_file({"model.lrr": {"values": [0.1, 0.2]}}, command=command)
    with pytest.raises(UserError, match=r"trial 000: no option --model\.lrr"):
        sweep(file, tmp_path / "out")
    search = Search(read_sweep(file), tmp_path / "out", seed=1)
    assert [trial.state for trial in search.study.trials] == [TrialState.RUNNING]


@pytest.mark.parametrize("method", ["random", "bayes"])
def test_draws_do_not_depend_on_when_a_sweep_was_killed(
    sweep_file: Callable, tmp_path: Path, method: str
) -> None:
    space = {
        "model.lr": LR,
        "data.batch_size": {"values": [8, 16]},
        "model.r": {"min": 1, "max": 9},
    }
    file = sweep_file(space, method=method)
    drawn = {}
    for name, kills in (("whole", ()), ("broken", (3, 7))):
        output = tmp_path / name
        output.mkdir()
        search, stale = Search(read_sweep(file), output, seed=5), None
        for number in range(13):
            if number in kills:  # between the draw and the result
                lost = search.draw(None)
                search = Search(read_sweep(file), output, seed=5)
                (stale,) = search.study.get_trials(states=(TrialState.RUNNING,))
                assert stale.number == lost.number
            trial = search.draw(stale)
            stale = None
            drawn.setdefault(name, []).append(trial.params)
            search.study.tell(trial, trial.params["model.lr"] * trial.params["model.r"])
    assert drawn["whole"] == drawn["broken"]
    assert len({p["model.lr"] for p in drawn["whole"]}) == 13
    assert all(1e-5 <= p["model.lr"] <= 1e-2 for p in drawn["whole"])
    (tmp_path / "other").mkdir()
    other = Search(read_sweep(file), tmp_path / "other", seed=6)
    assert other.draw(None).params != drawn["whole"][0]


def test_a_checkpoint_without_the_measure_has_no_value(
    sweep_file: Callable, arguments: Callable, tmp_path: Path
) -> None:
    main(arguments("unli", "--trainer.max_steps", "0"))
    file = sweep_file({"model.lr": LR}, method="random",
                      metric={"name": "dev/accuracy", "goal": "maximize"})  # fmt: skip
    outcome = Trials(read_sweep(file), tmp_path).read(tmp_path / "checkpoints/run")
    assert outcome.value is None
    assert "dev/accuracy: no value" in outcome.reason


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"command": ["python"]}, r"expected \$\{args\}"),
        ({"parameters": {"model.lr": {"values": ["1e-4"]}}}, r"write it as 1\.0e-04"),
        ({"parameters": {"model.lr": LR}}, "a grid needs values"),
    ],
)
def test_files_that_cannot_be_run(sweep_file: Callable, changes: dict, said: str) -> None:
    file = sweep_file(**({"parameters": {"model.lr": {"values": [0.1]}}} | changes))
    with pytest.raises(UserError, match=said):
        read_sweep(file)


def test_how_many_trials(sweep_file: Callable) -> None:
    grid = {"model.lr": {"values": [0.1, 0.2]}, "model.r": {"min": 1, "max": 3}, "x": {"value": 1}}
    file = read_sweep(sweep_file(grid))
    assert grid_of(space_of(file))["model.r"] == [1, 2, 3]
    assert [count_of(file, trials) for trials in (None, 4, 40)] == [6, 4, 6]
    file = read_sweep(sweep_file({"model.lr": LR}, method="random", run_cap=7))
    assert [count_of(file, trials) for trials in (None, 4)] == [7, 4]
    with pytest.raises(UserError, match="--trials N"):
        count_of(read_sweep(sweep_file({"model.lr": LR}, method="bayes")), None)


@pytest.mark.parametrize(
    "parameter",
    [
        {"value": 3},
        {"values": [1, 2.5]},
        {"values": ["x", True], "distribution": "categorical"},
        {"min": 1, "max": 9},
        {"min": 1, "max": 9.0},
        {"min": 1, "max": 9, "distribution": "uniform"},
        {"min": 1, "max": 9, "distribution": "int_uniform"},
        {"min": 1e-5, "max": 1e-2, "distribution": "log_uniform_values"},
        {"min": 1, "max": 9, "q": 2, "distribution": "q_uniform"},
        {"min": 0.0, "max": 0.3, "q": 0.05, "distribution": "q_uniform"},
    ],
)
def test_distributions_are_those_of_wandb(parameter: dict) -> None:
    # wandb reads a sweep for Optuna, too, in a module that is not public and may go.
    theirs = pytest.importorskip("wandb.sdk.sweeps.scheduler.optuna")
    assert distribution_of(parameter) == theirs.sweep_parameter_to_distribution(parameter)


def test_macros_of_a_command(sweep_file: Callable) -> None:
    command = ["${env}", "${interpreter}", "-m", "${program}", 7, "${args}"]
    found = read_sweep(sweep_file({"x": {"values": [1]}}))
    found = found.model_copy(update={"command": command})
    shown = ["python", "-m", "train", "7", "--x=1", "--y=True", "--z=null"]
    assert command_of(found, {"x": 1, "y": True, "z": None}, for_display=True) == shown
    assert command_of(found, {})[0] == sys.executable
    with pytest.raises(UserError, match=r"unknown macro \$\{args_json\}"):
        command_of(found.model_copy(update={"command": ["${args_json}"]}), {})


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.name)
def test_every_sweep_is_a_fit_that_parses(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(ROOT)
    found = read_sweep(path)
    assert count_of(found, None) > 1
    values = {
        name: p["values"][0] if "values" in p else p["min"] for name, p in found.parameters.items()
    }
    python, *command = command_of(found, values, for_display=True)
    assert [python, *command[:3]] == ["python", "-m", "train", "fit"]
    with pytest.raises(SystemExit) as left:
        main([*command[2:], "--print_config"])
    assert left.value.code == 0
    parsed = yaml.safe_load(capsys.readouterr().out)
    for name, value in values.items():
        room, _, option = name.partition(".")
        assert float(parsed[room]["init_args"][option]) == value
    relative = path.relative_to(ROOT)
    assert f"wandb sweep {relative}" in path.read_text(encoding="utf-8")


def test_wandb_compares_the_exported_measures(
    arguments: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture,
) -> None:
    given = arguments("unli", "--model.lr", "0.3", "--model.monitor", "dev/mse",
                      "--trainer.val_check_interval", "1")  # fmt: skip
    monkeypatch.setenv("WANDB_MODE", "offline")
    wandb.finish()  # what an earlier test of this process left open would be gone on with
    try:
        main(given)
        assert "wandb: WARNING" not in capfd.readouterr().err
        metrics = read_component(tmp_path / "checkpoints/run").metrics
        assert wandb.run.summary["dev/mse"] == metrics["mse"]
        # The run holds its configuration: of module, data and trainer.
        config = dict(wandb.run.config)
        assert (config["lr"], config["monitor"], config["weight_decay"]) == (0.3, "dev/mse", 0.01)
        assert config["train"].endswith("unli.jsonl")
        assert (config["batch_size"], config["seed_everything"]) == (4, 1)
        assert config["trainer"]["max_steps"] == 6
    finally:
        wandb.finish()
