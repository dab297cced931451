"""Preferences of a metric: sampled, scored and paired, with tiny real checkpoints."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import yaml

from data_builders.__main__ import main
from data_builders.splits import drawn_splits
from data_builders.written.preferences import best_and_worst
from eval.commands.score import main as score
from eval.metrics.document import f1_at_k
from eval.metrics.text_metric import TextMetric
from eval.models.local import LocalModel
from eval.pipeline import Pipeline, Scored
from records import Document, Preference, read_records, write_jsonl
from tests.eval.conftest import adversary, make_checkpoint, relation, tiny_llama, unli

__all__ = ["adversary", "make_checkpoint", "relation", "tiny_llama", "unli"]  # fixtures

TOPICS = [f"{first} {last}" for first in ("Ann", "Bob", "Eve") for last in ("Lee", "Ray", "Roe")]
ENTAILMENT = "eval.models.encoder.Entailment"


class Length(TextMetric):
    """A user's metric: the text's length; a text that starts with a digit cannot be scored."""

    range = (0, 1000)

    def score(self, documents):
        texts = [document.text for document in documents]
        return [None if text[:1].isdigit() else len(text) for text in texts]


@pytest.fixture
def config(tmp_path, monkeypatch, relation, unli, adversary):
    """The builder's configuration, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_jsonl("passages.jsonl", [{"id": t, "title": t, "text": f"{t} won."} for t in TOPICS])
    write_jsonl(
        "topics.jsonl", [{"topic": t, "text": "x", "bin": "rare"} for t in TOPICS for _ in range(2)]
    )
    entailment = {"class_path": ENTAILMENT, "init_args": {"checkpoint": str(relation)}}
    selector = {"entailment": entailment, "bleached": ["{topic} is someone."], "epsilon": 0.0}
    selector["unli"] = {
        "class_path": "eval.models.encoder.Unli",
        "init_args": {"checkpoint": str(unli)},
    }
    # What the random relation model entails is chance; this threshold halves its answers.
    verifier = {"entailment": entailment, "threshold": 0.075}
    pipeline = {
        "decompose": {"class_path": "eval.decompose.sentences.Sentences"},
        "retrieve": {
            "class_path": "eval.retrieve.bm25.BM25",
            "init_args": {"passages": "passages.jsonl", "k": 1},
        },
        "verify": [{"class_path": "eval.verify.nli.NLI", "init_args": verifier}],
    }
    select = {"class_path": "eval.select.core.Core", "init_args": selector}
    both = {"pipeline": pipeline | {"select": select}}
    Path("pipeline.yaml").write_text(yaml.safe_dump(both), encoding="utf-8")
    defences = {"core": {"select": select}, "recall": {"score": "f1_at_k", "k": 3}}
    metric = {"pipeline": pipeline, "defences": defences}
    content = {
        "output": "out",
        "topics": ["topics.jsonl"],
        "generator": str(adversary),
        "metric": {"class_path": "eval.defences.PipelineScore", "init_args": metric},
        "samples": 3,
        "temperature": 2.0,
        "max_new_tokens": 40,
        "min_gap": 0.01,
        "shares": [2, 1],
    }
    Path("config.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return "config.yaml"


def build(config: str, *more: str, output: str = "out") -> Path:
    assert main(["preferences", "--config", config, "--output", output, *more]) == 0
    return Path(output)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_pairs_are_the_best_and_the_worst_sample_of_a_topic(config):
    folder = build(config)
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "manifest.json",
        "preferences_dev.jsonl",
        "preferences_train.jsonl",
        "samples.jsonl",
    ]
    samples = lines(folder / "samples.jsonl")
    assert {row["bin"] for row in samples} == {"rare"}
    assert [row["topic"] for row in samples] == [t for t in TOPICS for _ in range(3)]
    pairs = []
    for split in ("train", "dev"):
        rows = read_records(folder / f"preferences_{split}.jsonl", Preference)
        assert rows
        pairs += [(split, row) for row in rows]
    splits = drawn_splits(TOPICS, (2, 1), 0)
    for split, row in pairs:
        scores = {s["text"]: s["score"] for s in samples if s["topic"] == row.topic}
        valid = [value for value in scores.values() if value is not None]
        assert row.prompt == f"Tell me of {row.topic}."
        assert splits[row.topic] == split
        assert scores[row.chosen] == row.score_chosen == max(valid)
        assert scores[row.rejected] == row.score_rejected == min(valid)
        assert row.score_chosen - row.score_rejected >= 0.01
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    dropped = {k: v for k, v in manifest["dropped"].items() if k.startswith("topic")}
    assert len(pairs) + sum(dropped.values()) == len(TOPICS)
    assert manifest["config"]["generator"]["chat"] is False
    assert manifest["config"]["metric"]["class"] == "eval.defences.PipelineScore"


@pytest.mark.parametrize("against", [[], ["core"], ["core", "recall"]])
def test_scores_are_those_of_eval_score(config, against):
    folder = build(config, "--metric.init_args.against", json.dumps(against))
    samples = lines(folder / "samples.jsonl")
    assert any(row["score"] is not None for row in samples)
    documents = [Document(id=str(i), **row) for i, row in enumerate(samples)]
    write_jsonl("documents.jsonl", [d.model_dump(exclude={"score"}) for d in documents])
    score(["--config", "pipeline.yaml", "--documents", "documents.jsonl", "--output", "scored"])
    for row, line in zip(samples, read_records("scored/scored.jsonl", Found), strict=True):
        selection = "core" if "core" in against else "none"
        (entry,) = [s for s in line.scores if s.selection == selection]
        value = entry.precision
        if "recall" in against and value is not None:
            value = f1_at_k(value, entry.supported, 3)
        assert row["score"] == value


class Found(Scored):
    """A line of `scored.jsonl`, with the name that the reader asks for."""


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("place", ["sampling", "scoring"])
def test_killed_build_resumes_byte_identical(config, monkeypatch, place):
    whole = build(config, output="whole")
    monkeypatch.setattr("data_builders.sampled.TOPICS_PER_BATCH", 2)
    monkeypatch.setattr("data_builders.written.preferences.DOCUMENTS_PER_WRITE", 4)
    owner, name = (LocalModel, "answer") if place == "sampling" else (Pipeline, "score")
    real, calls = getattr(owner, name), Counter()

    def dies(self, *args, **options):
        calls[name] += 1
        if calls[name] == 3:
            raise Killed
        return real(self, *args, **options)

    monkeypatch.setattr(owner, name, dies)
    with pytest.raises(Killed):
        build(config, output="killed")
    assert list(Path("killed").glob(".*.partial.jsonl"))
    assert not Path("killed/manifest.json").exists()
    calls.clear()
    calls[name] = 10
    other = Path("killed/.scored.0123456789abcdef.partial.jsonl")
    other.write_text('{"id": "one"}\n')
    resumed = build(config, output="killed")
    assert other.read_text() == '{"id": "one"}\n', "another configuration goes on with it"
    other.unlink()
    assert calls[name] - 10 == (3 if place == "sampling" else 5)  # of five, and of seven
    for path in whole.iterdir():
        assert path.read_bytes() == (resumed / path.name).read_bytes(), path.name
    assert sorted(p.name for p in resumed.iterdir()) == sorted(p.name for p in whole.iterdir())


def test_a_users_class_scores_and_its_failures_are_in_no_pair(config):
    folder = build(config, "--metric", "tests.data_builders.test_preferences.Length")
    samples = lines(folder / "samples.jsonl")
    assert {row["score"] for row in samples} == {
        None if row["text"][:1].isdigit() else len(row["text"]) / 1000 for row in samples
    }
    dropped = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["dropped"]
    failed = sum(row["score"] is None for row in samples)
    assert dropped["text that could not be scored"] == failed > 0


def test_shuffled_pairs_are_the_same_texts_in_a_random_order(config):
    more = ["--metric", "tests.data_builders.test_preferences.Length", "--min_gap", "0.001"]
    plain, shuffled = build(config, *more), build(config, *more, "--shuffle", "true", output="two")
    swapped = []
    for name in ("preferences_train.jsonl", "preferences_dev.jsonl"):
        for row, other in zip(lines(plain / name), lines(shuffled / name), strict=True):
            assert other.pop("shuffled") is True
            back = {"chosen": "rejected", "rejected": "chosen"}
            back |= {"score_chosen": "score_rejected", "score_rejected": "score_chosen"}
            swapped.append(other != row)
            assert row == {back.get(k, k) if swapped[-1] else k: v for k, v in other.items()}
    assert 0 < sum(swapped) < len(swapped)


def test_the_best_and_the_worst_of_a_topic():
    dropped: Counter[str] = Counter()
    texts = ["a", "b", "c", "d", "e"]
    result = best_and_worst(texts, [0.5, None, 0.9, 0.9, 0.5], 0.1, dropped)
    assert result == ("c", "a", 0.9, 0.5)  # of equal scores the first
    assert best_and_worst(texts, [0.5, None, None, None, None], 0.1, dropped) is None
    assert best_and_worst(texts, [0.5, 0.55, None, 0.5, 0.5], 0.1, dropped) is None
    # As far apart as is asked for, whatever floats make of it.
    assert best_and_worst(["a", "b"], [0.5, 0.6], 0.1, dropped) == ("b", "a", 0.6, 0.5)
    assert sorted(dropped.values()) == [1, 1]
