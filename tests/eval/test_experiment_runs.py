"""How robustness caches its queries and what it reports as used."""

from __future__ import annotations

from functools import partialmethod
from pathlib import Path

import pytest

from eval.decompose.sentences import Sentences
from eval.experiments.robustness.robustness import Robustness
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.run.run import Run
from eval.verify.factscore import FActScore
from records import UserError, write_jsonl
from tests.model_server import ModelServer

TOPICS = ("Ann", "Bob", "Cy")


def robustness(server):
    def pipeline():
        writer = OpenAIServer("m", server.url, retries=0, concurrency=1, prices=(1e6, 2e6))
        return Pipeline(Sentences(), [FActScore(writer, retrieval=False)])

    return Robustness(["texts.jsonl"], {"one": pipeline(), "two": pipeline()})


def reply(body):
    return str("lived" in body["messages"][-1]["content"])


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Prompts in the place of the shipped ones: no configuration names them."""
    monkeypatch.chdir(tmp_path)
    kinds = (("normal", "painted {}"), ("uninformative", "lived {}"))
    rows = [
        {"topic": topic, "kind": kind, "text": f"{topic} {entry.format(topic[0])}."}
        for topic in TOPICS
        for kind, entry in kinds
    ]
    write_jsonl("texts.jsonl", rows)
    Path("prompts").mkdir()
    text = "=== user\n{{ topic }}: {{ claim }} True or False?\n"
    Path("prompts/factscore_no_context.jinja").write_text(text)
    monkeypatch.setattr("eval.verify.factscore._PROMPTS", Path("prompts"))
    return Path("prompts")


def test_queries_are_cached_and_usage_is_summed(shipped, monkeypatch):
    monkeypatch.setattr(Run, "process", partialmethod(Run.process, chunk=2))
    with ModelServer(reply) as server:
        calm = robustness(server).run(Path("calm"), {})
        total = len(server.answered)
        assert total == 2 * len(TOPICS), "the second metric asks the same"
        robustness(server).run(Path("calm"), {})
        assert len(server.answered) == total, "the answers are kept in the run's folder"
        server.faults.extend([None] * 5 + ["503"])
        with pytest.raises(UserError, match="503"):
            robustness(server).run(Path("rough"), {})
        rough = robustness(server).run(Path("rough"), {})
        assert len(server.answered) == 2 * total
    assert rough == calm
    assert Path("calm/results.json").read_bytes() == Path("rough/results.json").read_bytes()
    assert [model["model"] for model in calm.provenance["models"]] == ["m"]
    (row,) = calm.provenance["usage"]
    assert (row["answers"], row["failed"]) == (2 * total, 0)
    assert row["cost"] == row["prompt_tokens"] + 2 * row["completion_tokens"] > 0
    assert not list(Path("rough").glob(".*.partial.jsonl"))
