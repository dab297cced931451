"""Texts by several models: a served one, and a tiny real adversary with its own prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from data_builders.written.generations import Author, Generations
from eval.models.causal import CausalLM
from eval.models.local import LocalModel
from eval.models.openai_server import OpenAIServer
from records import Generation, UserError, read_records, write_jsonl
from tests.eval.conftest import adversary, make_checkpoint, tiny_llama
from tests.model_server import ModelServer

__all__ = ["adversary", "make_checkpoint", "tiny_llama"]  # fixtures

TOPICS = [f"{first} {last}" for first in ("Ann", "Bob", "Eve") for last in ("Lee", "Ray")]


def tell(body: dict) -> str:
    requests = body["messages"][-1]["content"]
    if requests.endswith("Eve Ray."):
        return "I'm sorry, I have no information about her."
    return f"{requests.removeprefix('Tell me a bio of ')} She sang {body['seed'] % 97} songs."


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("clients.polite.MAX_BACKOFF_S", 0.01)
    with ModelServer(tell) as running:
        yield running


@pytest.fixture(autouse=True)
def topics(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_jsonl("topics.jsonl", [{"topic": t, "group": "A", "bin": "rare"} for t in TOPICS])


def build(server, output="out", prompts=None, **options):
    author = Author(OpenAIServer("tiny", server.url, timeout_s=5, retries=2), **(prompts or {}))
    return Generations(output, ["topics.jsonl"], {"Tiny": author}, **options).build().parent


def test_every_author_writes_every_kind_on_every_topic(server, adversary):
    authors = {
        "Tiny": Author(OpenAIServer("tiny", server.url)),
        "Adversary": Author(
            LocalModel(str(adversary), cache=Path("answers.sqlite")), {"info": str(adversary)}
        ),
    }
    options = {"per_topic": 2, "max_new_tokens": 20}
    folder = Generations("out", ["topics.jsonl"], authors, **options).build().parent
    normal = read_records(folder / "normal.jsonl", Generation)
    info = read_records(folder / "info.jsonl", Generation)
    assert [row.topic for row in normal] == [row.topic for row in info]
    assert [row.topic for row in normal] == [t for t in TOPICS for _ in range(2)]
    assert {(r.kind, r.generator, r.group, r.bin) for r in normal + info} == {
        ("normal", "Tiny", "A", "rare"),
        ("info", "Adversary", "A", "rare"),
    }
    assert normal[0].text.startswith("Ann Lee. She sang ")
    assert normal[0].text != normal[1].text
    # The refusals are there.
    assert sum(row.text.startswith("I'm sorry") for row in normal) == 2
    stated = json.loads((folder / "manifest.json").read_text())["config"]["authors"]
    assert stated["Tiny"]["writer"]["model"] == "tiny"
    assert "{topic}" in stated["Adversary"]["prompts"]["info"]
    figures = json.loads((folder / "statistics.json").read_text())
    assert figures["Tiny, normal"] == {"texts": 12, "respond": 10, "failed": {}}
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        ["README.md", "manifest.json", "normal.jsonl", "info.jsonl", "statistics.json"]
    )


def test_adversary_is_prompted_with_its_checkpoints_template(adversary):
    template = json.loads((adversary / "component.json").read_text())["prompt_template"]
    options = {"per_topic": 1, "max_new_tokens": 20}
    texts = {}
    for name, prompt in {"own": str(adversary), "given": template, "other": "{topic}?"}.items():
        author = Author(LocalModel(str(adversary)), {"info": prompt})
        built = Generations(name, ["topics.jsonl"], {"A": author}, **options).build().parent
        texts[name] = (built / "info.jsonl").read_bytes()
    assert texts["own"] == texts["given"] != texts["other"]


def test_failed_answer_is_an_empty_text_with_a_reason(server):
    server.reply = lambda body: "" if "Bob Lee" in str(body) else tell(body)
    folder = build(server)
    rows = {row.topic: row for row in read_records(folder / "normal.jsonl", Generation)}
    assert len(rows) == len(TOPICS)
    assert rows["Bob Lee"].text == ""
    assert rows["Bob Lee"].failed
    assert "failed" not in rows["Ann Lee"].model_extra
    figures = json.loads((folder / "statistics.json").read_text())["Tiny, normal"]
    assert (figures["texts"], figures["respond"]) == (6, 4)
    assert sum(figures["failed"].values()) == 1


def test_interrupted_build_resumes_byte_identical(server, monkeypatch):
    monkeypatch.setattr("data_builders.sampled.TOPICS_PER_BATCH", 2)
    whole = build(server, "whole", per_topic=2)

    def dies(body: dict) -> str:
        if len(server.answered) == 7:
            server.faults.extend(["503"] * 100)
        return tell(body)

    server.answered.clear()
    server.reply = dies
    with pytest.raises(UserError, match="no answer in"):
        build(server, "killed", per_topic=2)
    server.faults.clear()
    server.reply = tell
    server.answered.clear()
    resumed = build(server, "killed", per_topic=2)
    assert 0 < len(server.answered) < 2 * len(TOPICS)
    for path in whole.iterdir():
        assert path.read_bytes() == (resumed / path.name).read_bytes(), path.name
    other = build(server, "other", per_topic=2, seed=1)
    assert (other / "normal.jsonl").read_bytes() != (whole / "normal.jsonl").read_bytes()


def test_texts_have_their_authors_fields_and_each_local_model_is_loaded_once(
    tiny_llama, monkeypatch
):
    loaded, load = [], CausalLM._load
    monkeypatch.setattr(CausalLM, "_load", lambda self: loaded.append(self) or load(self))
    authors = {
        f"step {step}": Author(
            LocalModel(str(tiny_llama)),
            {"a": f"{{topic}} {step}", "b": f"Of {{topic}} {step}"},
            {"step": step},
        )
        for step in (0, 15)
    }
    options = {"max_new_tokens": 5}
    folder = Generations("out", ["topics.jsonl"], authors, **options).build().parent
    rows = read_records(folder / "a.jsonl", Generation)
    assert [row.model_extra["step"] for row in rows] == [0] * 6 + [15] * 6
    assert len(loaded) == 2, "once an author, whatever it writes"
    assert "_model" not in vars(loaded[0])
    stated = json.loads((folder / "manifest.json").read_text())["config"]["authors"]
    assert stated["step 15"]["fields"] == {"step": 15}
