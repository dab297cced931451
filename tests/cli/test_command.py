"""How a command ends: one line for a user's mistake, and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import run_command
from records import UserError

ROOT = Path(__file__).parents[2]


def test_ctrl_c_is_one_line_and_no_traceback(capsys):
    def main():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as left:
        run_command(main)
    assert left.value.code == 130
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("interrupted; the same command resumes")


def test_a_reader_that_has_read_enough_is_no_defect():
    door = [sys.executable, "-m", "eval", "--help"]
    with subprocess.Popen(door, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 1


def test_what_is_repeated_of_the_input_gives_the_terminal_no_command(capsys):
    def main():
        raise UserError("\x1b]52;c;aGk=\x07a\x9b2J\u202eb: é\u200c no such\nfile")

    with pytest.raises(SystemExit):
        run_command(main)
    err = capsys.readouterr().err
    assert err == "error: �]52;c;aGk=�a�2J�b: é\u200c no such\nfile\n"


def process_of(main, *words, **env):
    """A process that runs ``main`` as a command in another environment."""
    code = f"import sys\nfrom cli.command import run_command\nrun_command({main})"
    call = [sys.executable, "-c", code, *words]
    return subprocess.run(call, capture_output=True, cwd=ROOT, env=os.environ | env)


def test_a_config_is_read_alike_in_every_locale(tmp_path):
    (tmp_path / "own.yaml").write_text("domain: Zoë – 1  # …\n", encoding="utf-8")
    arguments = ["score", "--config", str(tmp_path / "own.yaml"), "--print_config"]
    ascii_alone = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    main = "__import__('eval.__main__', fromlist=['main']).main"
    done = process_of(main, *arguments, **ascii_alone)
    assert b"domain: Zo\\xeb \\u2013 1\n" in done.stdout, done.stderr
