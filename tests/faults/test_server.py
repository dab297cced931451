"""``eval score`` with a language-model server that misbehaves: no failure becomes a score.

Each fault by itself, without the pipeline: ``tests/eval/test_chat.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import Door
from tests.model_server import ModelServer, prompt_of

CLAIMS = [{"id": str(n), "text": f"Ann sold {n} birds.", "sentence": 0} for n in range(6)]
DOCUMENT = {"id": "d", "topic": "Ann Lee", "text": "Ann sold birds.", "claims": CLAIMS}


def judge(body: dict) -> str:
    return "True" if any(f"sold {n} birds" in prompt_of(body) for n in (0, 2, 4)) else "False"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setattr("clients.polite.MAX_BACKOFF_S", 0.01)
    with ModelServer(judge) as running:
        # Whoever gives up a slow answer hangs up on the server, which would say so.
        running._server.handle_error = lambda *_: None
        yield running


@pytest.fixture
def arguments(server: ModelServer, tmp_path: Path) -> list[object]:
    """Of the door, up to the output."""
    options = {"model": "m", "base_url": server.url, "timeout_s": 0.5, "retries": 2}
    writer = {
        "class_path": "eval.models.openai_server.OpenAIServer",
        "init_args": options | {"concurrency": 1},
    }
    factscore = {
        "class_path": "eval.verify.factscore.FActScore",
        "init_args": {"writer": writer, "retrieval": False},
    }
    decompose = {"class_path": "eval.decompose.given.Given"}
    config, documents = tmp_path / "score.yaml", tmp_path / "documents.jsonl"
    config.write_text(json.dumps({"pipeline": {"decompose": decompose, "verify": [factscore]}}))
    documents.write_text(json.dumps(DOCUMENT) + "\n")
    return ["--config", config, "--documents", documents, "--output"]


def labels(folder: Path) -> list[str]:
    (row,) = map(json.loads, (folder / "scored.jsonl").read_text().splitlines())
    return [verdict["label"] for verdict in row["verdicts"]]


def precisions(folder: Path) -> set[tuple[float | None, int]]:
    """Values of factual precision, and numbers of failed claims."""
    rows = json.loads((folder / "results.json").read_text())["results"]
    rows = [row for row in rows if row["metric"] == "factual_precision" and not row.get("variant")]
    return {(row["value"], row["failed"]) for row in rows}


@pytest.mark.parametrize(
    "faults", [["429", "cut"], ["slow", "503"], ["retry-after 0.01", "short"], ["drop", "html"]]
)
def test_temporary_server_faults_change_no_output(score: Door, arguments, server, tmp_path, faults):
    assert score(*arguments, tmp_path / "calm") == (0, [])
    server.faults.extend([None, *faults])
    assert score(*arguments, tmp_path / "rough") == (0, [])
    assert not server.faults
    for name in ("results.json", "scored.jsonl"):
        assert (tmp_path / "rough" / name).read_bytes() == (tmp_path / "calm" / name).read_bytes()


@pytest.mark.parametrize("fault", ["429", "503", "slow", "cut", "short", "drop"])
def test_a_lasting_server_fault_is_a_one_line_error_and_the_next_run_resumes(
    score: Door, arguments, server, tmp_path, fault
):
    server.faults.extend([None, None, *[fault] * 3])
    code, errors = score(*arguments, tmp_path / "out")
    assert (code, len(errors)) == (2, 1), errors
    assert "no answer in 3 attempts" in errors[0]
    assert [path.name for path in (tmp_path / "out").glob("[!.]*")] == []
    assert score(*arguments, tmp_path / "out") == (0, [])
    assert labels(tmp_path / "out") == ["supported", "not_supported"] * 3
    assert len(server.answered) == len(CLAIMS), "nothing was answered twice"


def test_a_server_that_is_down_is_a_one_line_error(score: Door, arguments, server, tmp_path):
    server.die()
    code, errors = score(*arguments, tmp_path / "out")
    assert (code, len(errors)) == (2, 1), errors
    assert "check the server" in errors[0] or "no answer in 3 attempts" in errors[0]


@pytest.mark.parametrize("fault", ["empty", "refusal", "filter"])
def test_a_reply_without_an_answer_is_one_failed_verdict(
    score: Door, arguments, server, tmp_path, fault
):
    server.faults.extend([None, fault])
    assert score(*arguments, tmp_path / "out") == (0, [])
    assert labels(tmp_path / "out") == ["supported", "failed", *["supported", "not_supported"] * 2]
    assert precisions(tmp_path / "out") == {(0.6, 1)}


@pytest.mark.parametrize("text", ["", " \n", "I cannot say."])
def test_empty_answers_are_failed_verdicts_without_a_score(
    score: Door, arguments, server, tmp_path, text
):
    server.reply = lambda body: text
    code, errors = score(*arguments, tmp_path / "out")
    assert (code, len(errors)) == (1, 1), errors
    assert "no claim could be judged" in errors[0]
    assert labels(tmp_path / "out") == ["failed"] * len(CLAIMS)
    assert precisions(tmp_path / "out") == {(None, len(CLAIMS))}
