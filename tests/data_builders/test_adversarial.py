"""Uninformative and repetitive texts: asked of a real server, sifted, written, resumed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from datasets import load_dataset

from data_builders.topics import Stratum, read_topics, split_topics
from data_builders.written.adversarial import (
    Adversarial,
    filter_texts,
    load_prompt,
    names_topic,
    paragraph,
)
from eval.models.chat import Answer
from eval.models.openai_server import OpenAIServer
from records import Generation, UserError, read_records, write_jsonl
from tests.model_server import ModelServer

TOPICS = [f"{first} {last}" for first in ("Ann", "Bob", "Eve", "Joe") for last in ("Lee", "Ray")]


def tell(body: dict) -> str:
    """What a good model would say; another text for every seed."""
    name = body["messages"][-1]["content"].removeprefix("Person: ")
    if "true of any person" in body["messages"][0]["content"]:
        return f"{name} is. {name} has {'slept' if body['seed'] % 2 else 'eaten'}. {name} lives."
    return f"{name} sang song {body['seed']}. {name} was a singer. A singer was {name}."


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("clients.polite.MAX_BACKOFF_S", 0.01)
    with ModelServer(tell) as running:
        yield running


@pytest.fixture(autouse=True)
def topics(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_jsonl(
        "train.jsonl", [{"topic": t, "group": "A", "bin": "rare"} for t in TOPICS[:5] + TOPICS[:1]]
    )
    Path("dev.txt").write_text(f"{TOPICS[5]}\n\n{TOPICS[6]}\n", encoding="utf-8-sig")
    write_jsonl("test.jsonl", [{"topic": TOPICS[7], "text": "x"}])
    return {"train": ["train.jsonl"], "dev": ["dev.txt"], "test": ["test.jsonl"]}


def build(server: ModelServer, topics: object, output: str = "out", **options: object) -> Path:
    writer = OpenAIServer("tiny", server.url, timeout_s=5, retries=2)
    return Adversarial(output, topics, writer, **options).build().parent


def test_the_folder_holds_both_kinds_by_split(server, topics):
    folder = build(server, topics, per_topic=3)
    files = [f"{kind}_{split}.jsonl" for kind in ("info", "repetitive") for split in topics]
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        [*files, "README.md", "manifest.json", "statistics.json"]
    )
    rows = {name: read_records(folder / name, Generation) for name in files}
    assert {row.topic for row in rows["info_train.jsonl"]} == set(TOPICS[:5])
    assert [row.topic for row in rows["repetitive_dev.jsonl"]] == [TOPICS[5]] * 3 + [TOPICS[6]] * 3
    first = rows["info_train.jsonl"][0]
    assert (first.kind, first.generator) == ("info", "tiny")
    assert (first.group, first.bin) == ("A", "rare")
    assert first.text.startswith("Ann Lee is. Ann Lee has ")
    manifest = json.loads((folder / "manifest.json").read_text())
    # Two wordings for three seeds: the same text again is left out.
    repeated = manifest["dropped"].pop("info text: the same text again")
    assert repeated >= 8
    assert manifest["dropped"] == {}
    assert manifest["kept"] == 2 * 3 * len(TOPICS) - repeated
    assert manifest["config"]["writer"]["model"] == "tiny"
    figures = json.loads((folder / "statistics.json").read_text())
    assert figures["repetitive_train.jsonl"] == {
        "texts": 15, "topics": 5, "sentences_a_text": 3.0
    }  # fmt: skip
    loaded = load_dataset(str(folder), "info")
    assert set(loaded) == set(topics)
    assert loaded["test"]["topic"][0] == TOPICS[7]


def test_invalid_texts_are_counted_by_reason():
    dropped: Counter[str] = Counter()
    good = "Ann Lee is. Ann lives. Ann has slept."
    answers = [
        Answer(good),
        Answer("", "content filter"),
        Answer("I'm sorry, but I cannot write about Ann Lee."),
        Answer("A person is. A person lives. A person sleeps."),
        Answer("Ann Lee is. Ann lives."),
        Answer(f"Sure, here it is:\n\n- {good.replace('. ', '.' + chr(10) + '- ')}"),
    ]
    assert list(filter_texts("info", "Ann Lee", answers, 3, dropped)) == [good]
    assert dropped == {
        "info text: content filter": 1,
        "info text: refused in words": 1,
        "info text: does not name its topic": 1,
        "info text: too few sentences": 1,
        "info text: the same text again": 1,
    }


def test_answers_become_paragraphs():
    assert paragraph("1. Ann is.\n2) Ann was.\n* So.") == "Ann is. Ann was. So."
    assert paragraph("Ann is.\n\nPerson: Bob\n\nBob is.") == "Ann is."
    assert paragraph("Sure! \n\nAnn is.") == "Ann is."
    assert paragraph("Surely Ann is.\nHere she was.") == "Surely Ann is. Here she was."
    assert names_topic("Lee is.", "Ann B. Lee")
    assert not names_topic("B. is.", "Ann B. Lee")
    assert names_topic("Xi is.", "Xi")


def test_topics_are_split_by_file_or_by_the_seed_alone(topics):
    by_seed = split_topics(["train.jsonl", "dev.txt", "test.jsonl"], (6, 1, 1), 0)
    assert [len(split_rows) for split_rows in by_seed.values()] == [6, 1, 1]
    assert by_seed == split_topics(["test.jsonl", "train.jsonl", "dev.txt"], (6, 1, 1), 0)
    assert by_seed != split_topics(["train.jsonl", "dev.txt", "test.jsonl"], (6, 1, 1), 1)
    assert read_topics(["train.jsonl"]) == dict.fromkeys(TOPICS[:5], Stratum("A", "rare"))
    # The released frequency map of the test topics.
    Path("empty.csv").write_text("topic,group,bin\nAda,,\nBob,A,rare\n")
    Path("full.csv").write_text("topic,group,bin\nAda,B,frequent\n")
    assert read_topics(["empty.csv"]) == {"Ada": Stratum(), "Bob": Stratum("A", "rare")}
    assert read_topics(["empty.csv", "full.csv"])["Ada"] == Stratum("B", "frequent")
    Path("bins.json").write_text(json.dumps({TOPICS[0]: "rare", TOPICS[1]: "frequent"}))
    assert read_topics(["bins.json"]) == {
        TOPICS[0]: Stratum(bin="rare"),
        TOPICS[1]: Stratum(bin="frequent"),
    }
    # A file of one topic is no map, though its fields are texts, too.
    Path("one.json").write_text(json.dumps({"topic": "Ada", "bin": "rare"}))
    assert read_topics(["one.json"]) == {"Ada": Stratum(bin="rare")}


@pytest.mark.parametrize(("kind", "turns"), [("info", 13), ("repetitive", 13)])
def test_the_papers_prompts_have_its_turns(kind, turns):
    """Tables 6 and 7: instruction, the question for a name, five demonstrations, the name."""
    messages = load_prompt(f"core_{kind}").messages(topic="Ann Lee")
    assert [m["role"] for m in messages] == ["user", "assistant"] * (turns // 2) + ["user"]
    assert messages[0]["content"].startswith("Tell me a short paragraph of tautological")
    assert messages[-1]["content"] == "Name: Ann Lee"
    ours = load_prompt(kind).messages(topic="Ann Lee")
    assert ours[0]["content"].startswith(("Write about ten", "Choose the one thing"))
    for request, answer in zip(messages[2:-1:2], messages[3::2], strict=True):
        name = request["content"].removeprefix("Name: ")
        assert answer["content"].count(name) >= 9


def test_the_papers_corruption_is_asked_for_without_demonstrations():
    """Table 5."""
    messages = load_prompt("corrupt").messages(topic="Ann Lee", claim="She sang.", domain="person")
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert messages[-1]["content"] == "She sang."


@pytest.mark.parametrize("kind", ["info", "repetitive"])
@pytest.mark.parametrize("domain", ["place", "work", "question"])
def test_prompts_of_other_domains_have_the_turns_and_three_demonstrations(kind, domain):
    messages = load_prompt(f"core_{kind}_{domain}").messages(topic="Mount Ida")
    assert [m["role"] for m in messages] == ["user", "assistant"] * 4 + ["user"]
    assert messages[0]["content"].startswith("Tell me a short paragraph of tautological")
    assert messages[-1]["content"].endswith(": Mount Ida")
    assert all(m["content"].count(". ") >= 7 for m in messages[3::2])


def test_a_prompt_names_the_subject_and_the_text_keeps_its_topic(server):
    write_jsonl("films.jsonl", [{"topic": "Ann Lee", "group": "dance"}])
    server.reply = lambda body: "Ann Lee was. Bob was. Eve was. Joe Ray was."
    options = {"subject": "{topic} in {group}", "per_topic": 1}
    options["prompts"] = {"info": "core_info_work"}
    folder = build(server, {"test": ["films.jsonl"]}, **options)
    (text,) = read_records(folder / "info_test.jsonl", Generation)
    assert (text.topic, text.group) == ("Ann Lee", "dance")
    assert server.asked[-1]["messages"][-1]["content"] == "Name: Ann Lee in dance"
    Path("films.txt").write_text("Ann Lee")
    with pytest.raises(UserError, match="subject: Ann Lee has no group"):
        build(server, {"test": ["films.txt"]}, output="other", **options)
