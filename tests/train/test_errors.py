"""A user's mistake: one line on standard error, exit code 2, no traceback and no usage."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cli.command import run_command
from train.__main__ import main


def complaint(arguments: list[str], capsys: pytest.CaptureFixture) -> str:
    with pytest.raises(SystemExit) as stop:
        run_command(partial(main, arguments))
    assert stop.value.code == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if not _notice(line)]
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]


def _notice(line: str) -> bool:
    return line.startswith("Seed set to")


@pytest.mark.parametrize(
    ("options", "expected_message"),
    [
        (["--data.train", "nosuch.jsonl"], "nosuch.jsonl: no such file"),
        (["--ckpt_path", "nosuch.ckpt"], "nosuch.ckpt"),
        (["--ckpt_path", __file__], "not a training checkpoint"),
        (["--trainer.max_steps", "-1", "--trainer.max_epochs", "-1"], "max_steps"),
        (["--model.base", "package:nosuch/model"], "package nosuch is not installed"),
        (["--model.base", "."], "base model ."),
        (["--model.max_length", "65"], "at most 64 tokens"),
        (["--model.optimizer", "torch.optim.SDG"], "did you mean SGD?"),
        (["--model.monitor", "dev/nosuch"], "dev/nosuch: unknown measure; expected one of dev/e"),
    ],
)
def test_bad_options(
    arguments: Callable, capsys: pytest.CaptureFixture, options: list[str], expected_message: str
) -> None:
    assert expected_message in complaint(arguments("unli", *options), capsys)


def test_weights_of_another_component_are_refused(
    arguments: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    main(arguments("relation", "--trainer.max_steps", "3", run="other"))
    other = ["--ckpt_path", str(tmp_path / "runs/other/last.ckpt")]
    for component in ("unli", "adversary"):
        capsys.readouterr()
        message = complaint(arguments(component, *other), capsys)
        assert "its weights do not match --model" in message


def test_bad_data_names_file_line_and_field(
    arguments: Callable, write: Callable, capsys: pytest.CaptureFixture
) -> None:
    bad = write("bad", [{"premise": "a", "hypothesis": "b", "label": 1.5}])
    assert f"{bad}:1: label" in complaint(arguments("unli", "--data.train", bad), capsys)


@pytest.mark.parametrize(
    ("component", "row", "expected_message"),
    [
        ("adversary", {"topic": "ada", "text": " "}, "empty text; drop the row"),
        (
            "lss",
            {"reference": "ada .", "claim": "ada " * 60, "annotations": [{"lss": "ada"}]},
            "does not fit into 48 tokens",
        ),
    ],
)
def test_a_row_that_cannot_be_encoded_is_named(
    arguments: Callable,
    write: Callable,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    component: str,
    row: dict,
    expected_message: str,
) -> None:
    inputs = arguments(component)
    good = (tmp_path / f"{component}.jsonl").read_text(encoding="utf-8").splitlines()
    bad = write("bad", [*map(json.loads, good[:2]), row])
    result = complaint([*inputs, "--data.train", bad], capsys)
    assert f"{bad}:3: " in result
    assert expected_message in result
