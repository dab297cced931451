"""A user's mistake: one line on standard error, exit code 2, no traceback and no usage."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from records.errors import run_door
from train.__main__ import main


def complaint(arguments: list[str], capsys: pytest.CaptureFixture) -> str:
    with pytest.raises(SystemExit) as stop:
        run_door(partial(main, arguments))
    assert stop.value.code == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if not _notice(line)]
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]


def _notice(line: str) -> bool:
    return line.startswith("Seed set to")


CONFIG = """
model:
  class_path: train.unli.Unli
  init_args: {{base: {base}}}
data:
  class_path: train.data.PairData
  init_args: {{train: {train}, dev: {train}}}
trainer: {{accelerator: cpu, enable_progress_bar: false}}
"""


@pytest.fixture
def config(tmp_path: Path, write: Callable, tiny_bert: str) -> Callable[..., str]:
    def _config(text: str = "", replace: tuple[str, str] = ("", "")) -> str:
        path = tmp_path / "config.yaml"
        whole = CONFIG.format(base=tiny_bert, train=tmp_path / "unli.jsonl") + text
        path.write_text(whole.replace(*replace), encoding="utf-8")
        return str(path)

    return _config


@pytest.mark.parametrize(
    ("text", "replace", "said"),
    [
        ("patients: 3\n", ("", ""), "patients"),
        ("", ("base:", "bass:"), "bass"),
        ("", ("enable_progress_bar", "enable_progres_bar"), "enable_progres_bar"),
        ("", ("train.unli.Unli", "train.unli.Unly"), "Unly"),
        ("", ("accelerator: cpu", "max_steps: many"), "many"),
        ("", ("accelerator: cpu", "accelerator: abacus"), "abacus"),
        ("", ("accelerator: cpu", "accelerator: [cpu"), "config"),
    ],
)
def test_bad_config(
    config: Callable, capsys: pytest.CaptureFixture, text: str, replace: tuple, said: str
) -> None:
    assert said in complaint(["fit", "--config", config(text, replace)], capsys)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "--config", "nosuch.yaml"], "nosuch.yaml"),
        (["train"], "train"),
        ([], "subcommand"),
        (["fit", "--nosuch", "1"], "--nosuch"),
    ],
)
def test_bad_arguments(capsys: pytest.CaptureFixture, arguments: list[str], said: str) -> None:
    assert said in complaint(arguments, capsys)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--data.train", "nosuch.jsonl"], "nosuch.jsonl: no such file"),
        (["--data", "train.data.LssData"], "LssData"),
        (["--ckpt_path", "nosuch.ckpt"], "nosuch.ckpt"),
        (["--data.batch_size", "0"], "batch_size"),
        (["--trainer.max_steps", "-1", "--trainer.max_epochs", "-1"], "max_steps"),
        (["--model.lr", "fast"], "fast"),
        (["--model.base", "package:nosuch/model"], "package nosuch is not installed"),
        (["--model.base", "."], "base model ."),
        (["--trainer.precision", "7"], "precision"),
    ],
)
def test_bad_options(
    arguments: Callable, capsys: pytest.CaptureFixture, options: list[str], said: str
) -> None:
    assert said in complaint(arguments("unli", *options), capsys)


def test_bad_data_names_file_line_and_field(
    arguments: Callable, write: Callable, capsys: pytest.CaptureFixture
) -> None:
    bad = write("bad", [{"premise": "a", "hypothesis": "b", "label": 1.5}])
    assert f"{bad}:1: label" in complaint(arguments("unli", "--data.train", bad), capsys)


def test_kinds_that_the_file_does_not_have(
    arguments: Callable, capsys: pytest.CaptureFixture
) -> None:
    said = complaint(arguments("adversary", "--data.kinds", "[repetitive]"), capsys)
    assert "normal, uninformative" in said


def test_test_without_test_data(arguments: Callable, capsys: pytest.CaptureFixture) -> None:
    main(arguments("unli", "--trainer.max_steps", "3"))
    capsys.readouterr()
    asked = arguments("unli", "--ckpt_path", "best", command="test")
    assert "--data.test" in complaint(asked, capsys)


CONFIGS = [
    path
    for path in sorted((Path(__file__).parents[2] / "configs/train").rglob("*.yaml"))
    if path.parent.name != "sweeps"  # tests/train/test_sweep.py
]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_config_parses(path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["fit", "--config", str(path), "--print_config"])
    assert stop.value.code == 0
    assert "class_path: train." in capsys.readouterr().out
    relative = path.relative_to(path.parents[3])
    assert f"python -m train fit --config {relative}" in path.read_text(encoding="utf-8")


def test_help_documents_every_option(capsys: pytest.CaptureFixture) -> None:
    for module in ("unli.Unli", "relation.Relation", "lss_tagger.LssTagger", "adversary.Adversary"):
        with pytest.raises(SystemExit) as stop:
            main(["fit", f"--model.help=train.{module}"])
        assert stop.value.code == 0
        text = capsys.readouterr().out
        for option in ("base", "max_length", "lr", "weight_decay", "warmup_ratio", "monitor"):
            assert f".{option}" in text
