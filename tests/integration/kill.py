"""Killing a builder at any moment, and telling whether what it leaves in the end is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST_S = 300.0
CLOCK = 1000.0  # a minute in 60 ms

# Runs the real door; only the waits that politeness asks for pass faster.
_FAST_WAITS = """
import sys, time
clock, sleep = float(sys.argv.pop(1)), time.sleep
time.sleep = lambda seconds: sleep(seconds / clock)
from data_builders.__main__ import main
from cli.command import run_command
sys.argv[0] = "data_builders"
run_command(main)
"""


def builder_command(name: str, *arguments: object, clock: float = CLOCK) -> list[str]:
    """The command that builds a dataset, with waits that pass ``clock`` times faster.

    Args:
        name: of the dataset, as after ``python -m data_builders``.
        arguments: what follows it on the command line.
        clock: 1 waits in real time.
    """
    words = [str(argument) for argument in arguments]
    return [sys.executable, "-c", _FAST_WAITS, str(clock), name, *words]


def run(
    command: Sequence[str],
    *,
    kill_after: float | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path = ROOT,
) -> bool:
    """Run a command, and kill -9 its process group after so many seconds if it still runs then.

    Returns:
        Whether it was killed.

    Raises:
        RuntimeError: it ended on its own, and badly; with what it said.
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            process.wait(LONGEST_S if kill_after is None else kill_after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if kill_after is None:
                raise
            return True
        if process.returncode:
            log.seek(0)
            tail = log.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{command[-1]} … ended with {process.returncode}: {tail}")
    return False


def same_bytes(left: str | Path, right: str | Path) -> list[str]:
    """Paths, relative to the folders, of files that differ or that only one of them has.

    Hidden files and work files count like any other: a whole dataset has none left.
    """
    first, second = ({name: _read(Path(f) / name) for name in _files(f)} for f in (left, right))
    if not first and not second:
        raise ValueError(f"{left} and {right} hold no files")
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


def _files(folder: str | Path) -> list[str]:
    folder = Path(folder)
    return [p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()]


def _read(path: Path) -> bytes:
    return os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
