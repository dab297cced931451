"""Scoring on Ray: the same bytes as one process, whoever is killed; nobody else can reach it."""

import json
import os
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from eval.commands.score import main as score_main
from eval.decompose.sentences import Sentences
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.run.on_ray import OnRay, _Worker
from eval.run.run import _process_on_worker
from eval.verify.factscore import FActScore
from records import Document, Passage, read_results, write_json, write_jsonl
from tests.model_server import ModelServer
from tests.on_ray import Started, on_ray

LOOPBACK = {"0100007F", "0" * 16 + "FFFF0000" + "0100007F", "0" * 24 + "01000000"}
LISTENS = "0A"
OUTPUTS = ("claims.csv", "documents.csv", "results.json", "scored.jsonl")
TEXTS, CHUNK = 22, 4
COMMAND = ("eval", "score")


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
    fields = {"model": "m", "base_url": server.url, "concurrency": 1, "prices": [1.0, 2.0]}
    writer = {"class_path": "eval.models.openai_server.OpenAIServer", "init_args": fields}
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
    run = Started([*COMMAND, *arguments], tmp_path / "two", 2)
    run.until_kept(1)
    first, _ = run.workers()
    listening = listened_to([run.process.pid, *run.started()])
    assert listening, "Ray's processes talk to each other"
    assert listening <= LOOPBACK
    os.kill(first, signal.SIGKILL)
    run.ends_well()
    for name in OUTPUTS:
        assert (run.folder / name).read_bytes() == (calm / name).read_bytes()
    # A worker that is stopped leaves SQLite's own two files beside its cache.
    left = {p.name.removesuffix("-shm").removesuffix("-wal") for p in run.folder.iterdir()}
    assert left == {".answers.sqlite", *OUTPUTS}
    times = Counter(body["messages"][-1]["content"] for body in server.answered)
    assert len(times) == 2 * TEXTS
    assert times.total() <= 2 * TEXTS + 1, "only what was under way is asked again"


@on_ray
def test_a_killed_run_goes_on_with_other_workers(tmp_path, arguments, server, calm, monkeypatch):
    # A cluster that another user started on this machine is not joined.
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    run = Started([*COMMAND, *arguments], tmp_path / "a", 1)
    run.until_kept(1)
    run.is_killed()
    assert 1 <= run.kept() < TEXTS / CHUNK
    started = Started([*COMMAND, *arguments], tmp_path / "a", 2)
    started.ends_well()
    for name in OUTPUTS:
        assert (started.folder / name).read_bytes() == (calm / name).read_bytes()
    (usage,) = read_results(started.folder / "results.json").provenance["usage"]
    assert usage["answers"] == 2 * TEXTS
    assert len(server.answered) <= 2 * TEXTS + 1, "only what was under way is asked again"


class Slow:
    """Does nothing, and takes a while."""


def where(made, chunk):
    time.sleep(0.3)
    context = pytest.importorskip("ray").get_runtime_context()
    return [{"chunk": chunk, "node": context.get_node_id()}]


@on_ray
def test_a_machine_that_is_lost_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    cluster = cluster_utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        lost = cluster.add_node(num_cpus=1)
        done = []
        for rows in OnRay(2, cluster.address).rows(Slow, {}, tmp_path, where, range(12)):
            done += rows
            if lost and {lost.node_id} < {row["node"] for row in done}:
                cluster.remove_node(lost, allow_graceful=False)
                lost = None
        assert lost is None
        assert sorted(row["chunk"] for row in done) == list(range(12))
    finally:
        cluster.shutdown()


@on_ray
def test_a_worker_on_another_machine_keeps_answers_in_files_of_its_own(tmp_path, server):
    cache = tmp_path / "cache/all.sqlite"
    made = []

    class Asking(Pipeline):
        def __init__(self, cache: str):
            made.append(cache)
            super().__init__(
                Sentences(), [FActScore(OpenAIServer("m", server.url), retrieval=False)]
            )

    work = partial(_process_on_worker, "score", (), Document, True)
    place = os.getcwd()
    node_ip_address = pytest.importorskip("ray").util.get_node_ip_address()
    chunk = json.dumps([{"id": "a", "topic": "Ann", "text": "Ann painted 2 birds."}])
    for host in (node_ip_address, "192.0.2.9"):
        options = {"cache": str(cache)}
        worker = _Worker(Asking, options, tmp_path / "out", work, host, place)
        _, (row,), _ = json.loads(worker({"chunk_id": "0", "chunk": chunk})["rows"])
        assert json.loads(row)["verdicts"][0]["label"] == "supported"
    assert made == [str(cache), str(tmp_path / f"cache/all.{node_ip_address}.sqlite")]
    kept = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.sqlite")}
    assert kept == {"out/.answers.sqlite", f"out/.{node_ip_address}/.answers.sqlite"}
