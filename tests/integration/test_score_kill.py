"""A scoring run that is killed at any moment, against a server with faults, ends as a calm one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from records import write_json, write_jsonl
from tests.integration.kill import ROOT
from tests.model_server import ModelServer

pytestmark = pytest.mark.integration

CONCURRENCY = 4
KILLS = 2
FAULTS = ["429", "503", "retry-after 0.05", "cut", "short", "drop", "slow", "html"]

# Imports once, then runs the real door in a process of its own for every line of arguments, since
# to import takes longer than to score. Only the wait before another try passes faster.
_DOORS = """
import json, os, sys
from clients import polite
from eval.commands.score import build_parser, main
from cli.command import run_command
polite.MAX_BACKOFF_S = 0.02
known = None
for line in sys.stdin:
    known = known or build_parser().parse_args(json.loads(line))  # imports the stages
    process = os.fork()
    if not process:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        run_command(lambda: main(json.loads(line)))
    print(process, flush=True)
    print(os.waitpid(process, 0)[1], flush=True)
"""

Run = Callable[[list[str], Callable[[], bool]], int]


@contextmanager
def doors(log: Path) -> Iterator[Run]:
    """A function that runs ``score``, kills it where a condition holds, and gives its status."""
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", _DOORS],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )

        def run(arguments: list[str], reached: Callable[[], bool]) -> int:
            print(json.dumps(arguments), file=process.stdin, flush=True)
            pid = int(process.stdout.readline())
            while Path(f"/proc/{pid}").exists() and not reached():
                time.sleep(0.002)
            if reached():
                os.kill(pid, signal.SIGKILL)
            return int(process.stdout.readline())

        yield run
        process.stdin.close()
        process.wait()


def answers(body: dict) -> str:
    """A model that splits at semicolons, and calls true what has an even number."""
    time.sleep(0.005)
    prompts_sent = body["messages"][-1]["content"].splitlines()
    if not prompts_sent[-1].startswith("Output:"):
        return "\n".join(
            f"- {part.strip()}" for part in prompts_sent[-1].partition(": ")[2].split(";")
        )
    number = int("".join(char for char in prompts_sent[-2] if char.isdigit()))
    return "True" if number % 2 == 0 else "I cannot say" if number % 5 == 0 else "False"


def arguments(folder: Path, server: ModelServer) -> list[str]:
    """Of the command that scores thirty texts, up to its output."""
    texts = [f"Ann painted {n} birds; she sold {n + 100} of them." for n in range(30)]
    write_jsonl(folder / "texts.jsonl", [{"topic": "Ann Lee", "output": text} for text in texts])
    options = {"model": "m", "base_url": server.url, "timeout_s": 0.5, "retries": 8}
    writer = {
        "class_path": "eval.models.openai_server.OpenAIServer",
        "init_args": options | {"concurrency": CONCURRENCY, "prices": [1.0, 2.0]},
    }
    judge = {"writer": writer, "retrieval": False, "temperature": 0.7}
    decompose = {"writer": writer, "method": "factscore", "static": 1, "retrieved": 0}
    pipeline = {
        "decompose": {"class_path": "eval.decompose.prompted.Prompted", "init_args": decompose},
        "verify": [{"class_path": "eval.verify.factscore.FActScore", "init_args": judge}],
    }
    write_json(folder / "score.yaml", {"pipeline": pipeline, "chunk": 8})
    paths = ["--config", folder / "score.yaml", "--documents", folder / "texts.jsonl"]
    return [*map(str, paths), "--output"]


def distinct(bodies: list[dict]) -> Counter[str]:
    """How often each request was made."""
    return Counter(json.dumps(body, sort_keys=True) for body in bodies)


def test_killed_against_a_bad_server_ends_the_same_and_asks_nothing_twice(tmp_path):
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    draw = random.Random("score:kills")
    with ModelServer(answers) as server, doors(tmp_path / "said") as run:
        options = arguments(tmp_path, server)
        assert run([*options, str(calm)], lambda: False) == 0, (tmp_path / "said").read_text()
        prompts_sent = distinct(server.answered)
        server.answered.clear()
        faults = [*draw.sample(FAULTS, len(FAULTS)), *[None] * 32]
        server.faults.extend(draw.sample(faults, len(faults)))
        for target in sorted(draw.sample(range(5, 80), KILLS)):
            status = run([*options, str(rough)], lambda t=target: len(server.answered) >= t)
            assert os.WIFSIGNALED(status), (tmp_path / "said").read_text()
        assert run([*options, str(rough)], lambda: False) == 0, (tmp_path / "said").read_text()
        prompts_resent = distinct(server.answered)
        assert not server.faults
    assert set(prompts_resent) == set(prompts_sent)
    assert prompts_resent.total() - prompts_sent.total() <= KILLS * CONCURRENCY, (
        "only what was under way"
    )
    for name in ("results.json", "scored.jsonl"):
        assert (rough / name).read_bytes() == (calm / name).read_bytes()
    names = {".answers.sqlite", "claims.csv", "documents.csv", "results.json", "scored.jsonl"}
    assert {path.name for path in rough.iterdir()} == names
    (used,) = json.loads((rough / "results.json").read_text())["provenance"]["usage"]
    assert (used["answers"], used["failed"]) == (30 + 60, 0)
    rows = [json.loads(line) for line in (rough / "scored.jsonl").read_text().splitlines()]
    labels = Counter(verdict["label"] for row in rows for verdict in row["verdicts"])
    assert labels == {"supported": 30, "not_supported": 24, "failed": 6}
