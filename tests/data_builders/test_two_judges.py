"""Builders with real engines: a build that one checkpoint began is not resumed with another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from components.identity import identity
from data_builders.written.corruption.corrupters import Change, ToChange
from data_builders.written.corruption.corruption import Corruption
from eval.models.encoder import Entailment
from records import UserError, write_jsonl
from tests.components.test_identity import shifted
from tests.eval.conftest import adversary, make_checkpoint, relation, tiny_llama

__all__ = ["adversary", "make_checkpoint", "relation", "tiny_llama"]  # fixtures


class Danish:
    """Makes claims false; stops the build, as Ctrl-C does, while the file ``stop`` exists."""

    source = "rule: Danish"

    def corrupt(self, claims: Sequence[ToChange], seed: int) -> list[Change]:
        if Path("stop").exists():
            raise KeyboardInterrupt
        return [Change(f"{claim.topic} was Danish.") for claim in claims]


@pytest.fixture
def judges(relation, tmp_path, monkeypatch) -> tuple[Entailment, Entailment]:
    """Two checkpoints of one name that differ in their weights only."""
    monkeypatch.chdir(tmp_path)
    return Entailment(relation), Entailment(shifted(relation, tmp_path / relation.name))


def _judge_sha256(folder: str) -> str:
    manifest = json.loads(Path(folder, "manifest.json").read_text("utf-8"))
    return manifest["config"]["entailment"]["checkpoint"]["sha256"]


def test_an_interrupted_corruption_is_refused_to_another_judge(judges):
    claims = [
        {"id": f"c{n}", "text": text, "sentence": n, "source": text, "label": label}
        for n, (text, label) in enumerate(
            [("Ann Lee was born in Oslo in 1932.", "S"), ("She died in 1999.", "NS")]
        )
    ]
    text = " ".join(claim["text"] for claim in claims)
    document = {"id": "ann", "topic": "Ann Lee", "text": text, "claims": claims}
    write_jsonl("docs.jsonl", [document])
    write_jsonl("info.jsonl", [document | {"id": "info", "kind": "info"}])

    def build(output: str, judge: Entailment, **options: object) -> bytes:
        files = {"info": ["info.jsonl"]}
        Corruption(
            output, ["docs.jsonl"], Danish(), files, probability=1.0, entailment=judge, **options
        ).build()
        return b"".join(path.read_bytes() for path in sorted(Path(output).glob("*")))

    first, second = judges
    by_first, by_second = (build(f"whole {n}", judge) for n, judge in enumerate(judges))
    assert by_first != by_second
    assert [_judge_sha256(f"whole {n}") for n in range(2)] == [
        identity(judge)["checkpoint"]["sha256"] for judge in judges
    ]
    Path("stop").touch()
    with pytest.raises(KeyboardInterrupt):
        build("out", first)
    Path("stop").unlink()
    with pytest.raises(UserError, match="contains a build with another entailment"):
        build("out", second)
    assert build("out", first) == by_first
    with pytest.raises(UserError, match="contains a build with another entailment"):
        build("out", second)
    assert build("out", second, overwrite=True) == by_second
