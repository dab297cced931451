"""A key, a token or a password is in nothing that a run writes, logs or says."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from cli.command import run_command
from clients.sparql import SparqlClient
from data_builders.__main__ import main as build_main
from eval.__main__ import main as eval_main
from records import Document, UserError, write_jsonl
from tests.model_server import ModelServer

SECRET = "s3cr3t-0123456789"
CONFIG = """
pipeline:
  decompose: {{class_path: eval.decompose.given.Given}}
  verify:
    - class_path: eval.verify.factscore.FActScore
      init_args:
        writer:
          class_path: eval.models.openai_server.OpenAIServer
          init_args: {{model: tiny, base_url: "{url}", cache: answers.sqlite, retries: 0}}
        retrieval: false
"""


def door(main, *arguments: str) -> int:
    """The exit code of a door."""
    with pytest.raises(SystemExit) as left:
        run_command(lambda: main(list(arguments)))
    return left.value.code


def everything(folder: Path) -> bytes:
    """The names and the content of all files."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return b"\n".join([str(path).encode() + path.read_bytes() for path in files])


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Path:
    """An empty folder, the current one; all that is logged is kept."""
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    return tmp_path


def test_a_score_run_writes_no_api_key(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    claims = [{"id": "a", "text": "Ann sang."}, {"id": "b", "text": "Ann won."}]
    document = {"id": "d", "topic": "Ann", "text": "Ann sang. Ann won.", "claims": claims}
    write_jsonl("documents.jsonl", [Document(**document)])
    with ModelServer(lambda body: "True") as server:
        Path("config.yaml").write_text(CONFIG.format(url=server.url), encoding="utf-8")
        score_arguments = ("score", "--config", "config.yaml", "--documents", "documents.jsonl")
        assert door(eval_main, *score_arguments, "--output", "run") == 0
        assert door(eval_main, "report", "--run", "run") == 0
        assert f"Bearer {SECRET}" in server.keys
        # A server that repeats what it was sent, in its refusal and in its trouble.
        Path("answers.sqlite").unlink()
        for fault in (f"401 invalid_api_key|Incorrect API key: {SECRET}", f"503 |busy {SECRET}"):
            server.faults += [fault] * 2
            assert door(eval_main, *score_arguments, "--output", f"refused{fault[:3]}") == 2
            server.faults.clear()
    output = "".join(capfd.readouterr())
    assert "***" in output
    assert SECRET not in output + caplog.text
    assert SECRET.encode() not in everything(folder)


@pytest.mark.parametrize("url", [f"http://me:{SECRET}@127.0.0.1:1/v1", f"me:{SECRET}@127.0.0.1/v1"])
def test_a_password_in_an_address_is_refused_and_not_repeated(
    folder: Path, url: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture
) -> None:
    Path("config.yaml").write_text(CONFIG.format(url=url), encoding="utf-8")
    write_jsonl("documents.jsonl", [Document(id="d", topic="Ann", text="Ann sang.", claims=[])])
    score_arguments = ("score", "--config", "config.yaml", "--documents", "documents.jsonl")
    assert door(eval_main, *score_arguments, "--output", "run") == 2
    assert "base_url" in capfd.readouterr().err
    Path("config.yaml").unlink()
    made = ("bios", "--endpoint", url, "--user_agent", "me/1 (me@x.example)")
    assert door(build_main, *made, "--output", "data") == 2
    output = "".join(capfd.readouterr())
    assert "endpoint: contains credentials" in output
    assert SECRET not in output + caplog.text
    assert SECRET.encode() not in everything(folder)


def test_a_proxys_password_is_not_repeated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://me:{SECRET}@127.0.0.1:1")
    client = SparqlClient("https://kb.example/sparql", "me/1 (me@x.example)", "kept", retries=0)
    with pytest.raises(UserError, match="no answer in") as caught:
        client.select("SELECT * { ?s ?p ?o }", "all")
    assert SECRET not in str(caught.value)
