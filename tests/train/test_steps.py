"""A component as it was at several steps of its training."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from components.checkpoint import read_component
from records import UserError
from tests.train.test_preference import preference, started
from tests.train.test_resume import crash_at
from train.__main__ import main

__all__ = ["preference", "started"]  # fixtures

STEPS = ["--export_steps", "[0, 2, 6]"]


def exported(tmp_path: Path, run: str) -> dict[str, dict[str, bytes]]:
    """Folder of a step to its files, but for those that name the command and its options."""
    return {
        folder.name.removeprefix(f"{run}_step_"): {
            path.name: path.read_bytes()
            for path in folder.iterdir()
            if path.name not in {"README.md", "component.json"}
        }
        for folder in (tmp_path / "checkpoints").glob(f"{run}_step_*")
    }


def test_each_step_is_a_checkpoint_of_its_own(arguments: Callable, tmp_path: Path) -> None:
    more = ["--trainer.val_check_interval", "6"]  # the best weights are those of step 6
    main(arguments("unli", *STEPS, *more))
    result = exported(tmp_path, "run")
    assert sorted(result) == ["0", "2", "6"]
    weights = {step: step_weights["model.safetensors"] for step, step_weights in result.items()}
    assert len(set(weights.values())) == 3
    assert weights["6"] == (tmp_path / "checkpoints/run/model.safetensors").read_bytes()
    shorter = arguments("unli", "--trainer.max_steps", "0", run="none")
    main(shorter)
    assert weights["0"] == (tmp_path / "checkpoints/none/model.safetensors").read_bytes()
    metrics = [read_component(tmp_path / f"checkpoints/run_step_{s}").metrics for s in (0, 6)]
    assert metrics[0] != metrics[1] == read_component(tmp_path / "checkpoints/run").metrics
    message = {"none": "before the first step", "run": "with the best `dev/pearson`"}
    message |= {"run_step_0": "before the first step", "run_step_2": "of step 2"}
    for name, which in message.items():
        card = (tmp_path / f"checkpoints/{name}/README.md").read_text("utf-8")
        assert f"# {name}\n" in card
        assert f"The weights are those {which}." in card


@pytest.mark.parametrize(("step", "validating"), [(2, False), (3, True)])
def test_a_crash_anywhere_leaves_the_same_steps(
    arguments: Callable, tmp_path: Path, step: int, validating: bool
) -> None:
    options = [*STEPS, "--save_every", "1"]
    main(arguments("unli", *options, run="whole"))
    crash = ["--trainer.callbacks", f"[{crash_at(step, validating)}]"]
    with pytest.raises(RuntimeError, match="crash"):
        main(arguments("unli", *options, *crash, run="killed"))
    last = str(tmp_path / "runs/killed/last.ckpt")
    main(arguments("unli", *options, "--ckpt_path", last, run="killed"))
    assert exported(tmp_path, "killed") == exported(tmp_path, "whole")


def test_an_adversary_starts_as_the_one_it_goes_on_from(
    preference: Callable, started: str, tmp_path: Path
) -> None:
    accumulated = ["--trainer.accumulate_grad_batches", "2", "--trainer.max_steps", "2"]
    main(preference("--model.start", started, "--export_steps", "[0, 1, 2]", *accumulated))
    start = load_file(Path(started) / "adapter_model.safetensors")
    adapters = [
        load_file(tmp_path / f"checkpoints/run_step_{s}/adapter_model.safetensors")
        for s in (0, 1, 2)
    ]
    assert all(torch.equal(start[name], adapters[0][name]) for name in start)
    for single, other in itertools.pairwise(adapters):
        assert any(not torch.equal(single[name], other[name]) for name in single)


def test_no_step_at_all_is_the_start(arguments: Callable, tmp_path: Path) -> None:
    main(arguments("unli", "--trainer.max_steps", "0", "--export_steps", "[0]"))
    result = exported(tmp_path, "run")["0"]["model.safetensors"]
    assert result == (tmp_path / "checkpoints/run/model.safetensors").read_bytes()


def test_a_step_that_was_passed_cannot_be_had(arguments: Callable, tmp_path: Path) -> None:
    crash = ["--trainer.callbacks", f"[{crash_at(4, False)}]", "--save_every", "1"]
    with pytest.raises(RuntimeError, match="crash"):
        main(arguments("unli", *crash))
    last = str(tmp_path / "runs/run/last.ckpt")
    with pytest.raises(UserError, match="--export_steps 0: the run is at step 4"):
        main(arguments("unli", *STEPS, "--ckpt_path", last))


def test_a_folder_of_something_else_is_left_alone(arguments: Callable, tmp_path: Path) -> None:
    precious = tmp_path / "checkpoints/run_step_2/thesis.tex"
    precious.parent.mkdir(parents=True)
    precious.write_text("years of work", encoding="utf-8")
    with pytest.raises(UserError, match="run_step_2: not a checkpoint"):
        main(arguments("unli", *STEPS))
    assert precious.is_file()
