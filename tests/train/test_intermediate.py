"""Components that start from another component, and options that change the input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from components.checkpoint import read_component
from eval.commands.component import judge
from tests.train.conftest import unli_rows
from train.__main__ import main

MARKED = ["--model.mark_new", "true", "--trainer.max_steps", "3"]
EXTRACTS = ["--model.focus_words", "6"]


@pytest.mark.parametrize(
    ("component", "options", "focus_words"),
    [("relation", EXTRACTS, 6), ("lss", EXTRACTS, 6), ("unli", [], None)],
)
def test_eval_reads_extracts_and_marks_as_training_did(
    component: str,
    options: list[str],
    focus_words: int | None,
    arguments: Callable,
    tmp_path: Path,
) -> None:
    main(arguments(component, *MARKED, *options))
    folder = tmp_path / "checkpoints/run"
    exported = read_component(folder, component)
    assert (exported.focus_words, exported.mark_new) == (focus_words, True)
    result = judge(str(folder), str(tmp_path / f"{component}.jsonl"))["metrics"]
    assert set(exported.metrics) <= set(result)
    for name, value in exported.metrics.items():
        assert result[name]["value"] == pytest.approx(value, abs=1e-5), name


def test_unli_starts_from_the_encoder_of_our_relation_model(
    arguments: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    main(arguments("relation", "--trainer.max_steps", "2", run="nli"))
    nli = tmp_path / "checkpoints/nli"
    options = ["--model.base", str(nli), "--trainer.max_steps", "0"]
    main(arguments("unli", *options, run="unli"))
    message = "head probability initialised as entailment minus contradiction"
    assert message in capsys.readouterr().out
    before = load_file(nli / "model.safetensors")
    after = load_file(tmp_path / "checkpoints/unli/model.safetensors")
    head = before["classifier.weight"]
    torch.testing.assert_close(after["classifier.weight"][0], head[0] - head[2])
    encoder = [name for name in before if not name.startswith("classifier")]
    assert encoder
    assert all(torch.equal(before[name], after[name]) for name in encoder)


@pytest.mark.parametrize("component", ["relation", "unli"])
def test_a_start_gives_its_weights_and_the_form_of_its_input(
    arguments: Callable, tmp_path: Path, component: str
) -> None:
    main(arguments("relation", *MARKED, *EXTRACTS, run="start"))
    start = tmp_path / "checkpoints/start"
    main(arguments(component, "--model.start", str(start), "--trainer.max_steps", "0"))
    exported = read_component(tmp_path / "checkpoints/run", component)
    assert (exported.focus_words, exported.mark_new) == (6, True)
    assert exported.base["id"] == str(start)
    before, after = (
        load_file(tmp_path / f"checkpoints/{run}/model.safetensors") for run in ("start", "run")
    )
    same = [name for name in before if component == "relation" or "classifier" not in name]
    assert same
    assert all(torch.equal(before[name], after[name]) for name in same)


def test_platt_scaling_of_unli_is_exported_and_applied(
    arguments: Callable, write: Callable, tmp_path: Path
) -> None:
    dev = write("dev", unli_rows() * 20)
    main(arguments("unli", "--data.dev", dev))
    folder = tmp_path / "checkpoints/run"
    exported = read_component(folder, "unli")
    assert (exported.temperature, exported.shift) != (1.0, 0.0)
    result = judge(str(folder), dev)["metrics"]
    assert result["ece"]["value"] == pytest.approx(exported.metrics["ece"], abs=1e-6)
