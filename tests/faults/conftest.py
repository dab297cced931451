"""The doors in this process, as a user sees them: an exit code and lines on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.command import run_command
from eval.commands.score import main as score_main
from tests.eval.conftest import make_checkpoint, relation  # noqa: F401 (fixtures)

# Arguments of `python -m eval score` to its exit code, and what it said on standard error.
Door = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def score(capsys: pytest.CaptureFixture) -> Door:
    """Runs ``python -m eval score``."""

    def run(*arguments: object) -> tuple[int, list[str]]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            run_command(lambda: score_main([str(argument) for argument in arguments]))
        return left.value.code, capsys.readouterr().err.splitlines()

    return run


@pytest.fixture
def by_nli(tmp_path: Path, relation: Path) -> Path:  # noqa: F811 (a fixture)
    """A configuration: each sentence is a claim, judged by a tiny relation model."""
    entailment = {
        "class_path": "eval.models.encoder.Entailment",
        "init_args": {"checkpoint": str(relation)},
    }
    nli = {"class_path": "eval.verify.nli.NLI", "init_args": {"entailment": entailment}}
    decompose = {"class_path": "eval.decompose.sentences.Sentences"}
    path = tmp_path / "nli.yaml"
    path.write_text(json.dumps({"pipeline": {"decompose": decompose, "verify": [nli]}}))
    return path


@pytest.fixture
def by_labels(tmp_path: Path) -> Path:
    """A configuration: the documents' own claims, judged by their labels."""
    decompose = {"class_path": "eval.decompose.given.Given"}
    labels = {"class_path": "eval.verify.labels.Labels"}
    path = tmp_path / "labels.yaml"
    path.write_text(json.dumps({"pipeline": {"decompose": decompose, "verify": [labels]}}))
    return path
