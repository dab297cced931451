"""Files of the repository, and its console script, in another working directory."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli.shipped import find_shipped
from components.base import resolve_base
from eval.audit.texts import text_files
from eval.commands import score
from eval.defences import read_pipeline

ROOT = Path(__file__).parents[2]
CONFIG = "configs/eval/ready/factual_precision.yaml"
JUDGE = "checkpoints/ready/relation"
STAGE = """
from collections.abc import Sequence

from records import Claim, Document


class Words:
    def __init__(self, longest: int = 3):
        self.longest = longest

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        return [[] for _ in documents]
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    code = "from cli.factfoundry import main; main()"
    command = [sys.executable, "-c", code, *words]
    environment = {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_a_file_of_the_repository_is_found_unless_the_working_directory_has_it(elsewhere):
    assert find_shipped(CONFIG) == str(ROOT / CONFIG)
    assert find_shipped("configs/none.yaml") == "configs/none.yaml"
    assert find_shipped("tests/leads.jsonl") == "tests/leads.jsonl", "no input of a user"
    (elsewhere / JUDGE).mkdir(parents=True)
    assert find_shipped(JUDGE) == JUDGE


@pytest.mark.parametrize("words", [["--config", CONFIG], [f"--config={CONFIG}"]])
def test_a_configuration_names_the_judge_of_the_repository(words):
    arguments = [*words, "--documents", "my.jsonl", "--output", "runs/my"]
    options = score.parse(score.build_parser(), arguments)
    assert str(ROOT / JUDGE) in str(options.pipeline)
    assert options.output == "runs/my"
    assert read_pipeline(CONFIG).verify


def test_the_base_of_an_adapter_is_that_of_the_repository():
    assert resolve_base(JUDGE) == ROOT / JUDGE


def test_texts_of_an_audit_are_those_of_the_repository(monkeypatch, elsewhere):
    root = elsewhere / "repository"
    for builder in ("leads", "ladders", "attacks"):
        (root / "data" / builder).mkdir(parents=True)
        (root / "data" / builder / "manifest.json").touch()
    (root / "data/attacks/trivia.jsonl").write_text("{}\n")
    monkeypatch.setattr("eval.audit.texts.ROOT", root)
    names = ("ladders/ladder", "ladders/affirmed", "attacks/trivia")
    assert text_files() == [f"{root}/data/{name}.jsonl" for name in names]


def test_the_console_script_runs_programs_and_custom_stages(elsewhere):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"factfoundry": "cli.factfoundry:main"}
    (elsewhere / "custom.py").write_text(STAGE)
    done = run("eval", "score", "--pipeline.decompose.help", "custom.Words")
    assert "longest" in done.stdout, done.stderr
    wrong = run("bild")
    assert wrong.returncode == 2
    assert wrong.stderr == "error: no command 'bild'; expected one of: train, build, eval\n"
