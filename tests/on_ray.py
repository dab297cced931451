"""Commands that run on Ray, as processes that a test may kill."""

import os
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def on_ray(test):
    """Mark a test that starts Ray."""
    skip = pytest.mark.skipif(find_spec("ray") is None, reason="Ray: requirements-ray.txt")
    return pytest.mark.integration(skip(test))


class Gate:
    """Lets a number of a server's replies pass; further ones wait. There is no limit by default."""

    def __init__(self):
        self.most, self.passed = float("inf"), 0
        self._changed = threading.Condition()

    def let(self, most):
        with self._changed:
            self.most, self.passed = most, 0
            self._changed.notify_all()

    def is_reached(self):
        return self.passed >= self.most

    def __call__(self):
        with self._changed:
            self._changed.wait_for(lambda: self.passed < self.most)
            self.passed += 1


class Started:
    """A command in a separate process, with the processes that it starts.

    Args:
        command: arguments of ``python -m``.
        folder: output folder.
        workers: number of Ray workers.
        chunk: text that a journal contains once per chunk.
    """

    def __init__(self, command, folder, workers, chunk='"usage"'):
        self.folder, self.chunk = folder, chunk
        self.log = folder.with_suffix(f".{workers}.log")
        options = [f"--output={folder}", f"--ray.workers={workers}"]
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command, *options],
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                },
                stdout=log,
                stderr=log,
            )

    def until(self, condition):
        """Wait until a condition is true while the command runs."""
        while not condition():
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)

    def until_kept(self, chunks):
        """Wait until the journals have a number of chunks."""
        self.until(lambda: self.kept() >= chunks)

    def kept(self):
        journals = list(self.folder.glob(".*.partial.jsonl"))
        return sum(path.read_text().count(self.chunk) for path in journals)

    def started(self):
        """Map the id of each process that the command started to its command line."""
        processes, above = {}, {self.process.pid}
        parents = {int(path.name): parent(path) for path in Path("/proc").glob("[0-9]*")}
        while above:
            above = {pid for pid, parent in parents.items() if parent in above}
            processes |= {pid: line(pid) for pid in above}
        return processes

    def workers(self):
        return [pid for pid, name in self.started().items() if "_Worker" in name]

    def is_killed(self):
        """Kill the command, and wait until its workers have ended."""
        workers = self.workers()
        self.process.kill()
        self.process.wait()
        while any(map(line, workers)):
            time.sleep(0.05)

    def ends_well(self):
        assert self.process.wait(timeout=600) == 0, self.log.read_text()


def parent(path):
    try:
        return int((path / "stat").read_text().rpartition(") ")[2].split()[1])
    except OSError:  # it has ended
        return 0


def line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\0", " ")
    except OSError:
        return ""
