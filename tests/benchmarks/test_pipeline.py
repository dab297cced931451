"""The pipeline's benchmark through a real server: its calls, tokens and shares of labels."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.eval.conftest import make_checkpoint, relation  # noqa: F401 (fixtures)
from tests.model_server import ModelServer, prompt_of

PATH = Path(__file__).parents[2] / "benchmarks/pipeline.py"


@pytest.fixture(scope="module")
def pipeline() -> ModuleType:
    """The benchmark, which is a file and no package."""
    spec = importlib.util.spec_from_file_location("pipeline", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """Two documents of four claims each."""
    path = tmp_path / "documents.jsonl"
    claims = [{"id": str(n), "text": f"Ann sold {n} birds.", "sentence": 0} for n in range(4)]
    rows = [
        {"id": f"d{n}", "topic": f"Ann {n}", "text": "Ann sold birds.", "claims": claims}
        for n in range(2)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def config(path: Path, verify: dict) -> Path:
    given = {"class_path": "eval.decompose.given.Given"}
    path.write_text(json.dumps({"pipeline": {"decompose": given, "verify": [verify]}}))
    return path


def judge(body: dict) -> str:
    """True, but of several claims the first is false, and the last has no label."""
    listed = re.findall(r"^(\d)\. ", prompt_of(body).partition("CLAIMS:")[2], re.MULTILINE)
    return "\n".join(f"{n}. [{n != '1'}]" for n in listed[:-1]) or "True"


def test_a_row_a_number_of_claims_with_what_it_costs_and_moves(
    pipeline: ModuleType, documents: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    local = {"class_path": "eval.models.local.LocalModel", "init_args": {"model": "absent"}}
    factscore = {
        "class_path": "eval.verify.factscore.FActScore",
        "init_args": {"writer": local, "retrieval": False},
    }
    path = config(tmp_path / "factscore.yaml", factscore)
    with ModelServer(judge) as server:
        options = ["--documents", str(documents), "--configs", str(path), "--base_url", server.url]
        pipeline.main([*options, "--model", "m", "--claims_per_call", "1", "4"])
        assert len(server.asked) == (1 + 8) + (1 + 2 + 2)
    _, one, four, *note = capsys.readouterr().out.splitlines()
    fields = [re.sub(" %", "%", row).split() for row in (one, four)]
    # The server counts 7 tokens a prompt and 3 an answer.
    assert [row[4:] for row in fields] == [
        ["4.0", "28", "12", "0%", "0%", "100%", "100%"],
        ["2.0", "14", "6", "75%", "0%", "75%", "100%"],
    ]
    assert [row[:2] for row in fields] == [["factscore", "1"], ["factscore", "4"]]
    assert "2510.12839" in "".join(note)


def test_pairs_of_encoders_are_counted_where_no_model_writes(
    pipeline: ModuleType,
    documents: Path,
    tmp_path: Path,
    relation: Path,  # noqa: F811 (the fixture)
    capsys: pytest.CaptureFixture,
) -> None:
    entailment = {
        "class_path": "eval.models.encoder.Entailment",
        "init_args": {"checkpoint": str(relation)},
    }
    nli = {"class_path": "eval.verify.nli.NLI", "init_args": {"entailment": entailment}}
    rows = [json.loads(row) for row in documents.read_text(encoding="utf-8").splitlines()]
    pages = [{"id": str(n), "title": "Ann", "text": f"Ann sold {n}."} for n in range(3)]
    lines = [json.dumps(row | {"passages": pages}) + "\n" for row in rows]
    documents.write_text("".join(lines), encoding="utf-8")
    options = ["--documents", str(documents)]
    pipeline.main([*options, "--configs", str(config(tmp_path / "nli.yaml", nli))])
    row = capsys.readouterr().out.splitlines()[1].split()
    # Four claims and three passages; both documents have the same ones, which are judged once.
    assert row[:2] == ["nli", "–"]
    assert row[3:5] == ["6", "0.0"]
