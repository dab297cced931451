"""The hash of the code: rules and imports change it; comments and docstrings do not."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from components.code import code_sha256, describe_code
from eval.commands.score import main
from records import UserError, read_results, write_jsonl

STAGE = '''
"""A user's verifier."""
from collections.abc import Sequence

from records import Claim, Document, Passage, Verdict


class Mine:
    judges_sets = False

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        from my_rule import label  # imported when it is needed

        return [
            [Verdict(claim=c.id, assessor="mine", label=label(c.text)) for c in group]
            for group in claims
        ]
'''
RULE = '''
def label(text):
    """The rule."""
    return "supported" if len(text) > 5 else "not_supported"  # long claims
'''
DOCUMENTED = RULE.replace("The rule.", "Another docstring.").replace("# long claims", "# changed")
STRICTER = RULE.replace("> 5", "> 500")


@pytest.fixture
def write_rule(tmp_path, monkeypatch):
    """Writes the module that the verifier imports, and forgets the loaded one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("my_stage.py").write_text(STAGE)
    write_jsonl("docs.jsonl", [{"id": "a", "topic": "Ann", "text": "Ann sang in Oslo."}])

    def write(text: str) -> None:
        Path("my_rule.py").write_text(text)
        for name in ("my_rule", "my_stage"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        importlib.import_module("my_stage")

    yield write
    for name in ("my_rule", "my_stage"):
        sys.modules.pop(name, None)


def test_a_rule_changes_the_hash_and_its_comments_do_not(write_rule):
    hashes = []
    for text in (RULE, DOCUMENTED, STRICTER):
        write_rule(text)
        hashes.append(code_sha256(["my_stage"]))
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_hash_does_not_depend_on_what_is_imported():
    before = code_sha256(["eval.pipeline"])
    importlib.import_module("eval.experiments.papers.papers")
    assert code_sha256(["eval.pipeline"]) == before != code_sha256(["eval.defences"])


def test_the_commit_of_this_repository_is_named():
    described = describe_code(["records.writing"])
    assert set(described) == {"commit", "changed", "sha256"}
    assert described["commit"] is None or len(described["commit"]) == 40


def _score(*more: str) -> float:
    pipeline = {
        "decompose": {"class_path": "eval.decompose.sentences.Sentences"},
        "verify": [{"class_path": "my_stage.Mine"}],
    }
    options = ["--documents", "docs.jsonl", "--output", "out", "--pipeline", json.dumps(pipeline)]
    assert main([*options, *more]) == 0
    rows = read_results("out/results.json").results
    return next(row.value for row in rows if row.metric == "factual_precision")


def test_results_of_an_edited_rule_are_refused_and_computed_anew_with_overwrite(write_rule):
    write_rule(RULE)
    assert _score() == 1
    finished = Path("out/results.json").read_bytes()
    write_rule(DOCUMENTED)
    assert _score() == 1
    assert Path("out/results.json").read_bytes() == finished
    write_rule(STRICTER)
    with pytest.raises(UserError, match=r"differing: code of commit .*--overwrite to replace them"):
        _score()
    assert Path("out/results.json").read_bytes() == finished
    assert _score("--overwrite") == 0
    assert (
        read_results("out/results.json").provenance["code"]["sha256"]
        != (json.loads(finished)["provenance"]["code"]["sha256"])
    )
