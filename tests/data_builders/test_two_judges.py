"""Builders with real engines: a build that one checkpoint began is not resumed with another."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from components.identity import identity
from data_builders.written.attacks.attacks import Attacks
from data_builders.written.attacks.triviality import HedgedTrivia
from eval.models.encoder import Entailment
from records import UserError, write_jsonl
from tests.components.test_identity import shifted
from tests.eval.conftest import adversary, make_checkpoint, relation, tiny_llama

__all__ = ["adversary", "make_checkpoint", "relation", "tiny_llama"]  # fixtures


class Interrupted(HedgedTrivia):
    """Stops the build that runs it, as Ctrl-C does, while the file ``stop`` exists."""

    def attack(self, source, world, rng: random.Random):
        if Path("stop").exists():
            raise KeyboardInterrupt
        return super().attack(source, world, rng)


@pytest.fixture
def judges(relation, tmp_path, monkeypatch) -> tuple[Entailment, Entailment]:
    """Two checkpoints of one name that differ in their weights only."""
    monkeypatch.chdir(tmp_path)
    return Entailment(relation), Entailment(shifted(relation, tmp_path / relation.name))


def _judge_sha256(folder: str) -> str:
    manifest = json.loads(Path(folder, "manifest.json").read_text("utf-8"))
    return manifest["config"]["entailment"]["checkpoint"]["sha256"]


def test_an_interrupted_build_of_attacks_is_refused_to_another_judge(judges):
    claims = [
        {"id": f"c{n}", "text": text, "sentence": n, "source": text, "label": label}
        for n, (text, label) in enumerate(
            [("Ann Lee was born in Oslo in 1932.", "S"), ("She died in 1999.", "NS")]
        )
    ]
    text = " ".join(claim["text"] for claim in claims)
    write_jsonl("docs.jsonl", [{"id": "ann", "topic": "Ann Lee", "text": text, "claims": claims}])

    def build(output: str, judge: Entailment, **options: object) -> bytes:
        attacks = {"trivia": HedgedTrivia(), "later": Interrupted()}
        Attacks(output, ["docs.jsonl"], attacks, entailment=judge, **options).build()
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
