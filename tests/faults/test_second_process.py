"""A second process on the same folder is refused in one line, and the first one is not disturbed.

Of a scoring run: ``tests/eval/test_run.py``. Of a training: ``tests/faults/test_training.py``. Of a
sweep: ``tests/train/test_sweep.py``.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.command import run_command
from data_builders.journal import journal_rows
from records import UserError
from records.writing import lock_folder
from tests.data_builders.test_builder import Words, everything
from tests.integration.kill import ROOT

# Opens a journal and appends a row to it.
_OPENS = """
import sys
from records import JsonlAppender
from cli.command import run_command
run_command(lambda: JsonlAppender(sys.argv[1], key="name").append([{"name": "b"}]))
"""
# Takes a folder and keeps it.


def test_a_second_process_on_a_journal_is_refused(tmp_path):
    path = tmp_path / ".texts.partial.jsonl"

    def second() -> tuple[int, list[str]]:
        command = [sys.executable, "-c", _OPENS, str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr.splitlines()

    def make(some):
        code, errors = second()
        assert (code, len(errors)) == (2, 1), errors
        assert f"{path}: another process writes this file; wait for it" in errors[0]
        return [{"text": "A."} for _ in some]

    assert journal_rows(path, {"a": 1}, make, unit="text") == {"a": {"name": "a", "text": "A."}}
    assert path.read_text() == '{"name": "a", "text": "A."}\n'
    assert second() == (0, [])


def test_a_second_build_into_a_folder_is_refused(tmp_path, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text("one two three")
    calm, out = tmp_path / "calm", tmp_path / "out"
    refused = []

    class Beside(Words):
        def make(self, work):
            with pytest.raises(SystemExit) as left:
                run_command(lambda: Words(out, [str(texts)], share=0.1).build() and 0)
            refused.append(left.value.code)
            return super().make(work)

    Words(calm, [str(texts)]).build()
    Beside.__module__ = Words.__module__
    Beside(out, [str(texts)]).build()
    assert refused == [2]
    (error,) = capsys.readouterr().err.splitlines()
    assert f"{out}: another process runs in this folder; wait for it" in error
    assert everything(out) == everything(calm)
    with lock_folder(calm), pytest.raises(UserError, match="another process runs in this folder"):
        Words(calm, [str(texts)]).build()
