"""A second process on the same folder is refused in one line, and the first one is not disturbed.

Of a scoring run: ``tests/eval/test_run.py``. Of a sweep: ``tests/train/test_sweep.py``.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from data_builders.journal import journalled
from records import JsonlAppender, UserError
from tests.integration.kill import ROOT

# Opens a journal and appends a row to it.
_OPENS = """
import sys
from records import JsonlAppender
from records.errors import run_door
run_door(lambda: JsonlAppender(sys.argv[1], key="name").append([{"name": "b"}]))
"""


def test_a_builders_journal_belongs_to_one_process(tmp_path):
    path = tmp_path / ".texts.partial.jsonl"

    def second() -> tuple[int, list[str]]:
        command = [sys.executable, "-c", _OPENS, str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr.splitlines()

    def make(some):
        code, said = second()
        assert (code, len(said)) == (2, 1), said
        assert f"{path}: another process writes it; wait for it" in said[0]
        return [{"text": "A."} for _ in some]

    assert journalled(path, {"a": 1}, make, unit="text") == {"a": {"name": "a", "text": "A."}}
    assert path.read_text() == '{"name": "a", "text": "A."}\n'
    assert second() == (0, [])


def test_a_journal_that_cannot_be_opened_is_free_again(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"other": 1}\n')
    with pytest.raises(KeyError):
        JsonlAppender(path, key="name")
    with JsonlAppender(path, key="other") as rows:
        assert list(rows.done) == [1]
        with pytest.raises(UserError, match="another process writes it"):
            JsonlAppender(path, key="other")
