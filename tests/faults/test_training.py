"""A training on a full disk, beside another one, or into a folder that cannot be made."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch.callbacks import Callback

from cli.command import run_command
from records.writing import lock_folder
from tests.faults.test_disk import closed, files_of_at_most  # noqa: F401 (a fixture)
from tests.integration.kill import ROOT
from tests.train.conftest import arguments, tiny_bert, tiny_llama, write  # noqa: F401 (fixtures)
from tests.train.test_resume import crash_at
from train.__main__ import main
from train.resume import is_first

# Arguments of `python -m train` to its exit code, and what it said on standard error.
Door = Callable[[list[str]], tuple[int, list[str]]]


class StartsAnother(Callback):
    """Starts the same training once more, in the middle of a step."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx) -> None:
        if trainer.global_step == 2:
            command = [sys.executable, "-m", "train", *StartsAnother.given]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            StartsAnother.said = done.returncode, done.stderr.splitlines()


@pytest.fixture
def train(capsys: pytest.CaptureFixture) -> Door:
    """Runs ``python -m train``."""

    def run(options: list[str]) -> tuple[int, list[str]]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            run_command(partial(main, options))
        return left.value.code, capsys.readouterr().err.splitlines()

    return run


def exported(folder: Path, run: str) -> bytes:
    return (folder / f"checkpoints/{run}/model.safetensors").read_bytes()


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*")]


def test_a_second_training_is_refused_and_the_first_not_disturbed(
    tmp_path, arguments, train  # noqa: F811 (a fixture)
):  # fmt: skip
    assert train(arguments("unli", run="calm")) == (0, [])
    StartsAnother.given = arguments("unli", run="run")
    callback = "tests.faults.test_training.StartsAnother"
    assert train([*StartsAnother.given, "--trainer.callbacks", callback]) == (0, [])
    refused = "another process runs in this folder; wait for it or set another --name"
    assert StartsAnother.said == (2, [f"error: {tmp_path / 'runs/run'}: {refused}"])
    assert exported(tmp_path, "run") == exported(tmp_path, "calm")
    assert hidden(tmp_path) == []


@pytest.mark.parametrize(
    ("rank", "node", "first"), [(0, None, True), (0, "0", True), (1, None, False), (0, "1", False)]
)
def test_one_process_of_several_takes_the_folder(rank, node, first, monkeypatch):
    # Lightning reads the rank from what a launcher says, and of its own launcher not the machine.
    monkeypatch.setattr(rank_zero_only, "rank", rank)
    if node is not None:
        monkeypatch.setenv("NODE_RANK", node)
    assert is_first() is first


def test_a_full_disk_keeps_the_last_checkpoint(
    tmp_path, arguments, train  # noqa: F811 (a fixture)
):  # fmt: skip
    options = ["--save_every", "1"]
    assert train(arguments("unli", *options, run="calm")) == (0, [])
    crash = ["--trainer.callbacks", f"[{crash_at(4, False)}]"]
    with pytest.raises(RuntimeError, match="crash"):
        main(arguments("unli", *options, *crash))
    last = tmp_path / "runs/run/last.ckpt"
    before = last.read_bytes()
    resumed = arguments("unli", *options, "--ckpt_path", str(last))
    with files_of_at_most(len(before) // 2):
        code, errors = train(resumed)
    assert (code, len(errors)) == (2, 1), errors
    assert errors[0] == (
        f"error: {last}: cannot be written (File too large); free some space or choose a "
        "writable folder"
    )
    assert last.read_bytes() == before
    assert hidden(tmp_path) == []
    assert train(resumed) == (0, [])
    assert exported(tmp_path, "run") == exported(tmp_path, "calm")


def test_a_full_disk_keeps_the_exported_checkpoint(
    tmp_path, arguments, train  # noqa: F811 (a fixture)
):  # fmt: skip
    options = arguments("unli", "--trainer.max_steps", "0")  # nothing is written but the export
    assert train(options) == (0, [])
    before = exported(tmp_path, "run")
    with files_of_at_most(len(before) - 1):
        code, errors = train([*options, "--overwrite", "--seed_everything", "2"])
    assert (code, len(errors)) == (2, 1), errors
    assert f"{tmp_path / 'checkpoints/run'}: cannot be written (File too large)" in errors[0]
    assert exported(tmp_path, "run") == before
    assert hidden(tmp_path) == []


def test_a_killed_training_leaves_no_lock(tmp_path, arguments, train):  # noqa: F811 (a fixture)
    folder = tmp_path / "runs/run"
    options = arguments("unli", "--trainer.max_steps", "0")
    folder.mkdir(parents=True)
    (folder / ".lock").write_text("")  # as a killed one leaves it
    (folder / ".last.ckpt.abcdefgh").write_text("torn")
    assert train(options) == (0, [])
    assert hidden(folder) == []
    with lock_folder(folder):
        assert train(options)[0] == 2
