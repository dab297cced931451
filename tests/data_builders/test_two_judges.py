"""Builders with real engines: a build that one checkpoint began is not resumed with another."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from components.identity import identity
from data_builders.dataset import start_build
from data_builders.published.source_priors import SourcePriors
from data_builders.written.ambigbio.ambigbio import AmbigBio
from data_builders.written.attacks.attacks import Attacks
from data_builders.written.attacks.triviality import HedgedTrivia
from data_builders.written.claims.fact_gold import FactGold
from data_builders.written.generations import Author, Generations
from data_builders.written.preferences import Preferences
from eval.decompose.sentences import Sentences
from eval.defences import PipelineScore
from eval.models.encoder import Entailment
from eval.models.local import LocalModel
from eval.pipeline import Pipeline
from eval.verify.nli import NLI
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


def _source_priors(judge: Entailment) -> SourcePriors:
    claim = {"id": "c", "text": "Ann sang.", "label": "S"}
    passages = [{"id": n, "text": f"Ann sang {n}.", "source": n} for n in "abcdefgh"]
    row = {"id": "d", "topic": "Ann", "text": "x", "claims": [claim], "passages": passages}
    write_jsonl("d.jsonl", [row])
    return SourcePriors("out", ["d.jsonl"], judge)


def _generations(judge: Entailment, model: LocalModel) -> Generations:
    write_jsonl("pages.jsonl", [{"id": "p", "title": "Ann", "text": "Ann sang. She left."}])
    Path("topics.txt").write_text("Ann\n")
    authors = {"a": Author(model, {"normal": "Tell of {topic}."})}
    gold = FactGold(judge, ["pages.jsonl"])
    return Generations("out", ["topics.txt"], authors, gold=gold, max_new_tokens=8)


def _preferences(judge: Entailment, model: LocalModel) -> Preferences:
    Path("topics.txt").write_text("Ann\nBob\n")
    metric = PipelineScore(Pipeline(Sentences(), [NLI(judge)]))
    return Preferences("out", ["topics.txt"], model.model, metric, max_new_tokens=8)


def _ambigbio(judge: Entailment, model: LocalModel) -> AmbigBio:
    write_jsonl("names.jsonl", [{"name": "Ann Lee"}])
    write_jsonl("pages.jsonl", [{"id": "p", "title": "Ann Lee", "text": "Ann Lee sang."}])
    options = {"writer": model, "judge": judge, "max_new_tokens": 8}
    return AmbigBio("out", names=Path("names.jsonl"), passages=Path("pages.jsonl"), **options)


@pytest.mark.parametrize(
    ("make", "option"),
    [
        (_source_priors, "entailment"),
        (_generations, "gold"),
        (_preferences, "metric"),
        (_ambigbio, "judge"),
    ],
)
def test_a_folder_of_one_judge_is_refused_to_another(make, option, judges, tiny_llama):
    models = [] if make is _source_priors else [LocalModel(str(tiny_llama), dtype="float32")]
    folder = Path("out")
    folder.mkdir()
    (folder / "rows.jsonl").touch()
    first, second = (make(judge, *models) for judge in judges)
    start_build(folder, first.config(), overwrite=True)
    start_build(folder, first.config(), overwrite=False)
    with pytest.raises(UserError, match=f"contains a build with another {option}"):
        start_build(folder, second.config(), overwrite=False)
