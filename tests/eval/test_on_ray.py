"""Scoring on Ray: the same bytes as one process, whoever is killed; nobody else can reach it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from eval.commands.score import main as score_main
from eval.decompose.sentences import Sentences
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.run.on_ray import _Worker
from eval.verify.factscore import FActScore
from records import Passage, UserError, read_results, write_json, write_jsonl
from records.errors import run_door
from tests.model_server import ModelServer

ROOT = Path(__file__).parents[2]
LOOPBACK = {"0100007F", "0" * 16 + "FFFF0000" + "0100007F", "0" * 24 + "01000000"}
LISTENS = "0A"
OUTPUTS = ("results.json", "scored.jsonl")
TEXTS, CHUNK = 22, 4


def on_ray(test):
    """A test that starts Ray."""
    skip = pytest.mark.skipif(find_spec("ray") is None, reason="Ray: requirements-ray.txt")
    return pytest.mark.integration(skip(test))


def true_or_false(body):
    """Calls true what has an even number, and takes long enough to be killed meanwhile."""
    time.sleep(0.02)
    number = int("".join(char for char in body["messages"][-1]["content"] if char.isdigit()))
    return "True" if number % 2 == 0 else "False"


@pytest.fixture
def server():
    with ModelServer(true_or_false) as running:
        yield running


@pytest.fixture
def arguments(tmp_path, server, relation):
    """Of a run with a trained model, whose answers have a cache, and a language model."""
    passages = [Passage(id="p", title="Ann", text="Ann painted some birds. She sold many of them.")]
    rows = [
        {
            "id": str(n),
            "topic": "Ann",
            "text": f"Ann painted {n} birds. She sold {n + 100} of them.",
            "passages": [p.model_dump(exclude_none=True) for p in passages],
        }
        for n in range(TEXTS)
    ]
    write_jsonl(tmp_path / "texts.jsonl", rows)
    model = {"checkpoint": str(relation), "cache": str(tmp_path / "cache/pairs.sqlite")}
    given = {"model": "m", "base_url": server.url, "concurrency": 1, "prices": [1.0, 2.0]}
    writer = {"class_path": "eval.models.openai_server.OpenAIServer", "init_args": given}
    entailment = {"class_path": "eval.models.encoder.Entailment", "init_args": model}
    judges = {
        "eval.verify.factscore.FActScore": {"writer": writer, "retrieval": False},
        "eval.verify.nli.NLI": {"entailment": entailment},
    }
    pipeline = {
        "decompose": {"class_path": "eval.decompose.sentences.Sentences"},
        "verify": [{"class_path": name, "init_args": args} for name, args in judges.items()],
    }
    write_json(tmp_path / "score.yaml", {"pipeline": pipeline, "chunk": CHUNK})
    files = {"config": "score.yaml", "documents": "texts.jsonl"}
    return [f"--{name}={tmp_path / file}" for name, file in files.items()]


@pytest.fixture
def calm(tmp_path, arguments, server):
    """The folder of one process; its answers are forgotten."""
    folder = tmp_path / "calm"
    assert score_main([*arguments, f"--output={folder}"]) == 0
    server.answered.clear()
    (tmp_path / "cache").rename(tmp_path / "before")
    return folder


class Started:
    """The command in a process of its own, with what it starts."""

    def __init__(self, arguments, folder, workers):
        self.folder = folder
        self.said = folder.with_suffix(f".{workers}.log")
        command = [sys.executable, "-m", "eval", "score", *arguments, f"--output={folder}"]
        with open(self.said, "wb") as said:
            self.process = subprocess.Popen(
                [*command, f"--ray.workers={workers}"],
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdout=said,
                stderr=said,
            )

    def until_kept(self, chunks):
        """Wait until so many chunks are in the journal."""
        while self.kept() < chunks:
            assert self.process.poll() is None, self.said.read_text()
            time.sleep(0.01)

    def kept(self):
        journals = list(self.folder.glob(".scored.*.partial.jsonl"))
        return sum(path.read_text().count('"usage"') for path in journals)

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

    def ends_well(self):
        assert self.process.wait(timeout=120) == 0, self.said.read_text()
        return [self.folder / name for name in OUTPUTS]


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


def listened_to(pids):
    """Addresses, in the kernel's hexadecimal, on which processes listen."""
    sockets = set()
    for pid in pids:
        for fd in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                sockets.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                continue
    rows = [
        row.split()
        for name in ("tcp", "tcp6")
        for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {row[1].partition(":")[0] for row in rows if row[3] == LISTENS and row[9] in sockets}


@on_ray
def test_a_worker_that_is_killed_loses_nothing_and_nobody_else_reaches_one(
    tmp_path, arguments, server, calm
):
    run = Started(arguments, tmp_path / "two", 2)
    run.until_kept(1)
    first, _ = run.workers()
    listening = listened_to([run.process.pid, *run.started()])
    assert listening, "Ray's processes talk to each other"
    assert listening <= LOOPBACK
    os.kill(first, signal.SIGKILL)
    for file in run.ends_well():
        assert file.read_bytes() == (calm / file.name).read_bytes()
    # A worker that is stopped leaves SQLite's own two files beside its cache.
    left = {p.name.removesuffix("-shm").removesuffix("-wal") for p in run.folder.iterdir()}
    assert left == {".answers.sqlite", *OUTPUTS}
    times = Counter(body["messages"][-1]["content"] for body in server.answered)
    assert len(times) == 2 * TEXTS
    assert times.total() <= 2 * TEXTS + 1, "only what was under way is asked again"


@on_ray
def test_a_killed_run_goes_on_with_other_workers(tmp_path, arguments, server, calm):
    run = Started(arguments, tmp_path / "a", 1)
    run.until_kept(1)
    workers = run.workers()
    run.process.kill()
    run.process.wait()
    assert 1 <= run.kept() < TEXTS / CHUNK
    while any(map(line, workers)):  # they go with it
        time.sleep(0.05)
    again = Started(arguments, tmp_path / "a", 2)
    for file in again.ends_well():
        assert file.read_bytes() == (calm / file.name).read_bytes()
    (usage,) = read_results(again.folder / "results.json").provenance["usage"]
    assert usage["answers"] == 2 * TEXTS
    assert len(server.answered) <= 2 * TEXTS + 1, "only what was under way is asked again"


@on_ray
def test_an_address_without_a_cluster_is_one_line(tmp_path, arguments, monkeypatch):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    given = [*arguments, f"--output={tmp_path / 'out'}", "--ray.workers=1"]
    with pytest.raises(UserError, match=rf"ray.address: {address}: no Ray cluster answers"):
        score_main([*given, f"--ray.address={address}"])


@on_ray
def test_a_worker_on_another_machine_keeps_answers_in_files_of_its_own(tmp_path, server):
    cache = tmp_path / "cache/all.sqlite"
    made = []

    def build(config):
        made.append(config)
        writer = OpenAIServer("m", server.url)
        return Pipeline(Sentences(), [FActScore(writer, retrieval=False)])

    place = os.getcwd()
    here = pytest.importorskip("ray").util.get_node_ip_address()
    texts = json.dumps([{"id": "a", "topic": "Ann", "text": "Ann painted 2 birds."}])
    for host in (here, "192.0.2.9"):
        worker = _Worker(build, {"cache": str(cache)}, tmp_path / "out", host, place)
        (row, _) = json.loads(worker({"documents": texts})["rows"])
        assert row["done"]["verdicts"][0]["label"] == "supported"
    assert [config["cache"] for config in made] == [
        str(cache),
        str(tmp_path / f"cache/all.{here}.sqlite"),
    ]
    kept = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.sqlite")}
    assert kept == {"out/.answers.sqlite", f"out/.{here}/.answers.sqlite"}


def test_without_ray_one_line_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    write_jsonl(tmp_path / "texts.jsonl", [{"id": "a", "topic": "Ann", "text": "Ann painted."}])
    (tmp_path / "score.yaml").write_text(
        "pipeline:\n  decompose: {class_path: eval.decompose.sentences.Sentences}\n"
        "  verify: [{class_path: eval.verify.labels.Labels}]\nray: {workers: 2}\n"
    )
    files = {"config": "score.yaml", "documents": "texts.jsonl", "output": "out"}
    arguments = [f"--{name}={tmp_path / file}" for name, file in files.items()]
    with pytest.raises(SystemExit) as left:
        run_door(lambda: score_main(arguments))
    assert left.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("error: ray.workers: ")
    assert "`pip install -r requirements-ray.txt`" in said
    with pytest.raises(UserError, match="at least 1"):
        score_main([*arguments, "--ray.workers=0"])
    with pytest.raises(UserError, match=r"ray.address: say with --ray.workers"):
        score_main([*arguments, "--ray.workers=null", "--ray.address=auto"])
