"""How robustness and informativeness are keyed, what they keep, and what they say was used."""

from __future__ import annotations

from functools import partialmethod
from pathlib import Path

import pytest

from eval.decompose.sentences import Sentences
from eval.experiments.core.informativeness import Informativeness, Source
from eval.experiments.robustness.robustness import Robustness
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.prompting.prompts import Prompt
from eval.run.run import Run
from eval.verify.factscore import FActScore
from records import UserError, write_jsonl
from tests.model_server import ModelServer

TOPICS = ("Ann", "Bob", "Cy")


class AskedUnli:
    """Asks a language model how likely a claim is."""

    def __init__(self, writer, prompt):
        self.writer, self.prompt = writer, Prompt(prompt)

    def likelihood(self, pairs):
        prompts = [self.prompt.messages(premise=p, hypothesis=h) for p, h in pairs]
        answers = self.writer.answer(prompts, temperature=0)
        return [float(answer[0].text) for answer in answers]


def robustness(server):
    def pipeline():
        writer = OpenAIServer("m", server.url, retries=0, concurrency=1, prices=(1e6, 2e6))
        return Pipeline(Sentences(), [FActScore(writer, retrieval=False)])

    return Robustness(["texts.jsonl"], {"one": pipeline(), "two": pipeline()})


def informativeness(server):
    writer = OpenAIServer("m", server.url, retries=0, concurrency=1, prices=(1e6, 2e6))
    classes = {kind: Source(file="texts.jsonl", kind=kind) for kind in ("normal", "uninformative")}
    unli = AskedUnli(writer, "prompts/unli.jinja")
    return Informativeness(classes, unli, ["{topic} is someone."])


def reply(body):
    requests = body["messages"][-1]["content"]
    number = "0.9" if "lived" in requests else "0.2"
    return number if "how likely" in requests else str("lived" in requests)


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
    Path("prompts/unli.jinja").write_text("=== user\n{{ premise }} how likely: {{ hypothesis }}\n")
    monkeypatch.setattr("eval.verify.factscore._PROMPTS", Path("prompts"))
    return Path("prompts")


@pytest.mark.parametrize("make", [robustness, informativeness])
def test_nothing_is_asked_twice_and_usage_is_told(make, shipped, monkeypatch):
    monkeypatch.setattr(Run, "process", partialmethod(Run.process, chunk=2))
    with ModelServer(reply) as server:
        calm = make(server).run(Path("calm"), {})
        total = len(server.answered)
        assert total == 2 * len(TOPICS), "the second metric asks the same"
        make(server).run(Path("calm"), {})
        assert len(server.answered) == total, "the answers are kept in the run's folder"
        server.faults.extend([None] * 5 + ["503"])
        with pytest.raises(UserError, match="503"):
            make(server).run(Path("rough"), {})
        rough = make(server).run(Path("rough"), {})
        assert len(server.answered) == 2 * total
    assert rough == calm
    assert Path("calm/results.json").read_bytes() == Path("rough/results.json").read_bytes()
    assert [model["model"] for model in calm.provenance["models"]] == ["m"]
    (row,) = calm.provenance["usage"]
    both = 2 if make is robustness else 1
    assert (row["answers"], row["failed"]) == (both * total, 0)
    assert row["cost"] == row["prompt_tokens"] + 2 * row["completion_tokens"] > 0
    assert not list(Path("rough").glob(".*.partial.jsonl"))
