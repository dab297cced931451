"""Commands that do their work on Ray, started as processes that a test may kill."""

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
    """A test that starts Ray."""
    skip = pytest.mark.skipif(find_spec("ray") is None, reason="Ray: requirements-ray.txt")
    return pytest.mark.integration(skip(test))


class Gate:
    """Lets so many of a server's replies through, any number by default; the others wait."""

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
    """A command in a process of its own, with what it starts.

    Args:
        command: of ``python -m``.
        folder: of the run.
        workers: on Ray.
        chunk: what stands in a journal once a chunk.
    """

    def __init__(self, command, folder, workers, chunk='"usage"'):
        self.folder, self.chunk = folder, chunk
        self.said = folder.with_suffix(f".{workers}.log")
        given = [f"--output={folder}", f"--ray.workers={workers}"]
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        with open(self.said, "wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command, *given],
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                },
                stdout=said,
                stderr=said,
            )

    def until(self, so):
        """Wait for something that is to be while the command runs."""
        while not so():
            assert self.process.poll() is None, self.said.read_text()
            time.sleep(0.01)

    def until_kept(self, chunks):
        """Wait until so many chunks are in the journals."""
        self.until(lambda: self.kept() >= chunks)

    def kept(self):
        journals = list(self.folder.glob(".*.partial.jsonl"))
        return sum(path.read_text().count(self.chunk) for path in journals)

    def started(self):
        """Process id to command line, of all that the command started."""
        found, above = {}, {self.process.pid}
        parents = {int(path.name): parent(path) for path in Path("/proc").glob("[0-9]*")}
        while above:
            above = {pid for pid, parent in parents.items() if parent in above}
            found |= {pid: line(pid) for pid in above}
        return found

    def workers(self):
        return [pid for pid, name in self.started().items() if "_Worker" in name]

    def is_killed(self):
        """Kill the command, and wait for its workers, who go with it."""
        workers = self.workers()
        self.process.kill()
        self.process.wait()
        while any(map(line, workers)):
            time.sleep(0.05)

    def ends_well(self):
        assert self.process.wait(timeout=600) == 0, self.said.read_text()


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
