"""Corrupted texts: which claims change and how, what is appended, one corruption for all k."""

from __future__ import annotations

import json
import os
import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from datasets import load_dataset

from data_builders.__main__ import main
from data_builders.kb.facts import Person
from data_builders.kb.graph import Value
from data_builders.written.corruption.corrupters import (
    NOTHING,
    PromptedCorrupter,
    ToChange,
    read_change,
)
from data_builders.written.corruption.corruption import Corruption
from data_builders.written.corruption.sources import read_sources
from data_builders.written.corruption.swap import Values, ValueSwap
from data_builders.written.corruption.texts import place_claims
from eval.models import openai_server
from eval.models.chat import Answer
from eval.models.openai_server import OpenAIServer
from records import Document, UserError, read_records, write_jsonl
from tests.model_server import ModelServer

TOPICS = ("Ann Lee", "Bob Ray", "Eve Roe")
# Of each topic four supported claims, one that is not, one without anything to change.
CLAIMS = [
    ("{X} was born in 1950.", "S"),
    ("{X} is a chemist.", "S"),
    ("{X} is Swedish.", "S"),
    ("{X} is quiet", "S"),
    ("{X} won three prizes.", "S"),
    ("{X} is a queen.", "NS"),
    ("The sun shines.", "IR"),
]


def person(name: str, country: str, *occupations: str) -> Person:
    facts = {"P27": (Value(country, f"c:{country}"),)}
    facts["P106"] = tuple(Value(o, f"o:{o}") for o in occupations)
    return Person(f"p:{name}", name, name, (), "", facts, None, "D", 0)


PEOPLE = [
    person("Ann Lee", "Sweden", "chemist", "poet"),
    person("Zed Zoe", "France", "chemist"),
    person("Yan Yu", "Italy", "writer"),
    person("Lu Xu", "Dominican Republic", "film director"),
]


@pytest.fixture(autouse=True)
def documents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(openai_server, "_FIRST_WAIT", 0.01)
    rows = []
    for topic in TOPICS:
        claims = [
            {"id": f"c{i}", "text": text.format(X=topic), "label": label}
            for i, (text, label) in enumerate(CLAIMS)
        ]
        rows.append({"id": topic, "topic": topic, "text": "x", "claims": claims})
        rows[-1] |= {"group": "A", "bin": "rare"}
    bare = {"id": "bare", "topic": "Ann Lee", "text": "x"}
    bare["claims"] = [{"id": "c0", "text": "Ann Lee flew.", "label": "NS"}]
    write_jsonl("docs.jsonl", [*rows, bare])
    told = [
        {"topic": topic, "text": f"{topic} {verb}. {topic} is. {topic} was."}
        for topic in TOPICS[:2]
        for verb in ("sang", "swam")
    ]
    write_jsonl("info.jsonl", told)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def build(output: str = "out", corrupter: object = None, **options: object) -> Path:
    options = {"documents": ["docs.jsonl"], "appended": [0, 1, 4]} | options
    return Corruption(output, corrupter=corrupter or ValueSwap(), **options).build().parent


def test_every_k_has_the_same_corruption_and_a_longer_text():
    folder = build(adversarial=["info.jsonl"], probability=0.6)
    assert sorted(p.name for p in folder.iterdir()) == [
        "README.md",
        "changes.jsonl",
        "documents.jsonl",
        "manifest.json",
        "statistics.json",
    ]
    rows = read_records(folder / "documents.jsonl", Document)
    assert [(row.document, row.k) for row in rows] == [
        (f"docs/{topic}", k) for topic in TOPICS[:2] for k in (0, 1, 4)
    ]
    changes = {(c["document"], c["claim"]): c for c in lines(folder / "changes.jsonl")}
    assert len(changes) == 2 * 5
    told = defaultdict(list)
    for row in rows:
        own = [c for c in row.claims if c.id.startswith("c")]
        told[row.document].append([(c.text, c.label) for c in own])
        assert [c.id for c in own] == [f"c{i}" for i in range(5)]
        for claim in own:
            change = changes[row.document, claim.id]
            assert (claim.text, claim.label) == (change["text"], change["label"])
            assert (claim.label == "NS") == (change["text"] != change["original"])
            assert change["drawn"] or claim.label == "S"
            assert claim.labelled_by == ("rule: another value" if claim.label == "NS" else "human")
        added = row.claims[5:]
        assert [c.text for c in added] == [
            f"{row.topic} sang.", f"{row.topic} is.", f"{row.topic} was.", f"{row.topic} swam."
        ][: row.k]  # fmt: skip
        assert all(c.label is None and c.kind == "info" for c in added)
        sentences = [c.source for c in row.claims]
        assert row.text == " ".join(sentences)
        assert [c.sentence for c in row.claims] == list(range(5 + row.k))
        assert (row.group, row.bin) == ("A", "rare")
        assert row.kind == f"corrupted_info_{row.k:02d}"
        assert row.generator == "docs"
    assert all(versions[0] == version for versions in told.values() for version in versions)
    assert {label for versions in told.values() for _, label in versions[0]} == {"S", "NS"}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["dropped"] == {
        "claim that is not supported": 3 * 2 + 1,
        "document with too few adversarial sentences on its topic": 1,  # Eve Roe
        "document without a supported claim": 1,
    }
    assert [entry["file"] for entry in manifest["inputs"]] == ["docs.jsonl", "info.jsonl"]
    assert load_dataset(str(folder), "documents")["test"].num_rows == 6
    assert load_dataset(str(folder), "changes")["test"].num_rows == 10


def test_statistics_count_what_changed_and_what_could_not():
    figures = json.loads((build(probability=1.0) / "statistics.json").read_text())
    assert (figures["documents"], figures["claims"], figures["to_be_changed"]) == (3, 15, 15)
    assert figures["changed_by_kind"] == {"P106": 3, "P27": 3, "number": 3, "year": 3}
    assert figures["stayed_by_reason"] == {NOTHING: 3}
    none = json.loads((build("none", probability=0) / "statistics.json").read_text())
    assert (none["to_be_changed"], none["changed"]) == (0, 0)


def test_about_half_is_drawn_and_by_the_claim_alone():
    builder = Corruption("out", ["docs.jsonl"], ValueSwap())
    sources = read_sources(["docs.jsonl"], None, Counter())
    drawn = builder._drawn(sources)
    assert builder._drawn(sources[1:]) == drawn[1:]
    many = [sources[0].__class__(**(vars(sources[0]) | {"id": str(i)})) for i in range(400)]
    assert 0.45 < sum(map(len, builder._drawn(many))) / (400 * 5) < 0.55


def test_without_files_and_model_anyone_is_said_to_be_someone():
    folder = build(appended=[0, 20])
    rows = [row for row in lines(folder / "documents.jsonl") if row["k"] == 20]
    assert len(rows) == 3
    for row in rows:
        added = [c["text"] for c in row["claims"] if c["id"].startswith("a")]
        assert len(set(added)) == 20
        assert sum(row["topic"].split()[-1] in text for text in added) >= 18


def test_the_same_seed_gives_the_same_bytes():
    one, two = build("one"), build("two")
    for path in one.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes(), path.name
    other = build("other", seed=1)
    assert (one / "changes.jsonl").read_bytes() != (other / "changes.jsonl").read_bytes()


def test_generations_of_the_knowledge_base_and_kinds():
    def row(kind: str, told: list[tuple[str, bool]]) -> dict:
        sentences = [{"text": text, "true": true} for text, true in told]
        text = " ".join(text for text, _ in told)
        return {"topic": "Ann Lee", "text": text, "kind": kind, "sentences": sentences}

    normal = row("normal", [("Ann Lee was born in 1950.", True), ("Ann Lee died in 1999.", False)])
    empty = row("uninformative", [("Ann Lee is.", True), ("She was.", True)])
    again = row("repetitive", [("Ann Lee sang.", True), ("She sang.", True)])
    write_jsonl("kb.jsonl", [normal, empty, again])
    options = {"documents": ["kb.jsonl"], "adversarial": ["kb.jsonl"], "source_kind": "normal"}
    folder = build(**options, kind="repetitive", appended=[2], probability=1.0)
    (found,) = read_records(folder / "documents.jsonl", Document)
    assert [(c.id, c.label, c.labelled_by) for c in found.claims] == [
        ("c0", "NS", "rule: another value"),
        ("a0", "S", "knowledge base"),
        ("a1", "S", "knowledge base"),
    ]
    assert found.text.endswith(". Ann Lee sang. She sang.")


def change(text: str, topic: str = "Cy Coe", seed: int = 0):
    return Values(PEOPLE).change(ToChange("k", topic, text), random.Random(seed))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Cy Coe was born on 7 May 1861.", {"year", "month", "day"}),
        ("Cy Coe was born on May 7.", {"month", "day"}),
        ("Cy Coe wrote in the 1920s.", {"year"}),
        ("Cy Coe has three children.", {"number"}),
        ("Cy Coe sold 12,500 books.", {"number"}),
        ("Cy Coe lived in the 19th century.", {"ordinal"}),
        ("Cy Coe was the second president.", {"ordinal"}),
        ("Cy Coe is a chemist.", {"P106"}),
        ("Cy Coe is an Italian painter.", {"P27", "P106"}),
        ("Cy Coe lives in Sweden.", {"P27"}),
    ],
)
def test_values_are_exchanged_for_others_of_their_kind(text, kind):
    seen = set()
    for seed in range(30):
        found = change(text, seed=seed)
        seen.add(found.kind)
        assert found.text != text
        assert found.old in text
        assert found.old not in found.text.replace(found.new, "")
        if found.kind == "year":
            assert 0 < abs(int(found.new) - int(found.old)) <= 30
        if found.kind == "day":
            assert 1 <= int(found.new) <= 28
    assert seen == kind


@pytest.mark.parametrize(
    "text",
    [
        "Cy Coe is quiet.",
        "Cy Coe joined the Italian Academy.",  # part of a longer name
        "Cy Coe led the University of Sweden.",
        "Cy Coe wrote Seven Years.",  # a title
        "Cy Coe studied chemistry.",  # a field says nothing of someone unknown
        "Cy Coe paid $12.5.",
        "Cy Coe may come.",
    ],
)
def test_what_holds_nothing_stays(text):
    assert change(text).reason == NOTHING


def test_a_true_value_is_never_offered():
    # Ann Lee is a chemist and a poet, and a poet is a writer.
    (find,) = Values(PEOPLE)._distinct(ToChange("k", "Ann Lee", "Ann Lee is a chemist."))
    assert "physicist" in find.others
    assert not {"chemist", "poet", "writer"} & set(find.others)


def test_a_new_value_is_neither_true_nor_ungrammatical():
    for seed in range(40):
        assert change("Cy Coe is a writer.", seed=seed).new not in {"poet", "novelist"}
        assert change("Cy Coe is British.", seed=seed).new not in {"English", "Scottish"}
        found = change("Cy Coe is an Italian.", seed=seed)  # no "is a French"
        article = found.text.removeprefix("Cy Coe is ").split()[0]
        assert article == ("an" if found.new[0] in "AEIOU" else "a")
        assert found.new not in {"French", "Swedish"}
        found = change("Cy Coe is from the Dominican Republic.", seed=seed).text
        assert "the the" not in found
        assert "the Sweden" not in found
    assert change("Italy Smith is quiet.", "Italy Smith").reason == NOTHING


def test_fields_of_a_known_person_are_exchanged():
    assert change("Ann Lee studied chemistry.", "Ann Lee").kind == "P106"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer("Ann Lee is a poet."), "Ann Lee is a poet."),
        (Answer('"Ann Lee is a poet"\n'), "Ann Lee is a poet."),
        (Answer("Changed sentence: Ann Lee is a poet."), "Ann Lee is a poet."),
        (Answer("Here is one:\n- Lee is a poet."), "Lee is a poet."),
        (Answer("Ann Lee is a chemist!"), "the claim as it was"),
        (Answer("Bob is a poet."), "another topic"),
        (Answer("I cannot help with that."), "refused in words"),
        (Answer("", "content filter"), "content filter"),
        (Answer("Ann Lee is a poet. Ann Lee is old."), "no single sentence"),
        (Answer("Ann Lee is " + "very " * 30 + "old."), "no single sentence"),
    ],
)
def test_a_model_s_change_is_read_or_failed(answer, expected):
    found = read_change(ToChange("k", "Ann Lee", "Ann Lee is a chemist."), answer)
    assert expected == (found.reason if found.text is None else found.text)


def model(body: dict) -> str:
    """Changes, merges and writes as it is told; refuses to touch quiet people."""
    first, asked = body["messages"][0]["content"], body["messages"][-1]["content"]
    topic = asked.splitlines()[0].removeprefix("Person: ")
    if "exactly one detail" in first:
        claim = asked.partition("Sentence: ")[2]
        return "I cannot do that." if "quiet" in claim else f"{claim.rstrip('.')} of old."
    if "one short paragraph" in first:
        if topic == "Bob Ray":
            return "Bob Ray is someone."
        return " ".join(line[2:].rstrip(".") + "." for line in asked.splitlines()[1:])
    return f"{topic} exists. {topic} lives {body['seed']}. {topic} is."


def test_prompted_models_change_merge_and_write(monkeypatch):
    with ModelServer(model) as server:
        writer = OpenAIServer("tiny", server.url, timeout_s=5, retries=2)
        options = {"merger": writer, "writer": writer, "probability": 1.0, "appended": [0, 5]}
        folder = build(corrupter=PromptedCorrupter(writer), **options)
        rows = read_records(folder / "documents.jsonl", Document)
        assert [(row.topic, row.k) for row in rows] == [
            ("Ann Lee", 0), ("Ann Lee", 5), ("Eve Roe", 0), ("Eve Roe", 5)
        ]  # fmt: skip
        first = rows[0]
        assert first.text.startswith(
            "Ann Lee was born in 1950 of old. Ann Lee is a chemist of old."
        )
        assert [c.label for c in first.claims] == ["NS", "NS", "NS", "S", "NS"]
        assert first.claims[0].labelled_by == "prompted: tiny"
        assert [c.sentence for c in first.claims] == [0, 1, 2, 3, 4]
        assert all(c.text.rstrip(".") in c.source for c in first.claims)
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["dropped"]["document whose merged text failed: it lost a claim"] == 1
        figures = json.loads((folder / "statistics.json").read_text())
        assert figures["stayed_by_reason"] == {"refused in words": 2}
        assert figures["changed_by_kind"] == {"by a model": 8}
        # Killed after the first documents, it goes on and ends with the same bytes.
        monkeypatch.setattr("data_builders.journal.A_WRITE", 1)
        server.answered.clear()

        def dies(body: dict) -> str:
            if len(server.answered) == 8:
                server.faults.extend(["503"] * 100)
            return model(body)

        server.reply = dies
        with pytest.raises(UserError, match="no answer in 3 tries"):
            build("killed", PromptedCorrupter(writer), **options)
        assert list(Path("killed").glob(".changes.*.partial.jsonl"))
        server.faults.clear()
        server.reply = model
        server.answered.clear()
        resumed = build("killed", PromptedCorrupter(writer), **options)
        assert len(server.answered) == 2 * 6 + 3 * 5  # nothing of the first document again
        for path in folder.iterdir():
            assert path.read_bytes() == (resumed / path.name).read_bytes(), path.name
        assert sorted(p.name for p in resumed.iterdir()) == sorted(p.name for p in folder.iterdir())


def test_claims_stand_where_most_of_their_words_are():
    sentences = ["Ann Lee, a chemist, was born in 1950.", "She won three prizes."]
    claims = ["Ann Lee was born in 1950.", "She won three prizes.", "Ann Lee is a chemist."]
    assert place_claims(claims, sentences) == [0, 1, 0]


def test_the_command_line_its_plan_and_limit(capsys):
    arguments = ["corruption", "--output", "out", "--documents", '["docs.jsonl"]', "--limit", "2"]
    swap = ["--corrupter", "data_builders.written.corruption.swap.ValueSwap"]
    assert main([*arguments, *swap, "--probability", "1", "--dry_run"]) == 0
    assert "10 claims" in capsys.readouterr().out
    assert not Path("out").exists()
    assert main([*arguments, *swap]) == 0
    assert len(lines(Path("out/documents.jsonl"))) == 2 * 21


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"probability": 1.5}, "probability: 1.5 is no probability"),
        ({"appended": [-1]}, "appended: give numbers"),
        ({"kind": "repetitive"}, "repetitive needs `adversarial` files or a `writer`"),
        ({"documents": ["nosuch.jsonl"]}, "nosuch.jsonl: no such file"),
        ({"documents": ["info.jsonl"]}, "info.jsonl: no labelled claims"),
        ({"source_kind": "normal"}, "no row of source_kind normal"),
        ({"adversarial": ["info.jsonl"], "appended": [99]}, "no document is left"),
        ({"documents": ["docs.jsonl", "./docs.jsonl"]}, "two files have the same name"),
    ],
)
def test_mistakes_say_what_to_change(options, said):
    with pytest.raises(UserError, match=said):
        build(**options)


@pytest.mark.skipif("FACTFOUNDRY_DATA" not in os.environ, reason="FACTFOUNDRY_DATA is not set")
def test_a_third_of_the_human_claims_can_be_changed_by_the_rule():
    path = Path(os.environ["FACTFOUNDRY_DATA"]) / "factscore_labeled" / "InstructGPT.jsonl"
    sources = read_sources([str(path)], None, Counter())[:20]
    claims = [ToChange(f"{s.id}:{i}", s.topic, c) for s in sources for i, c in enumerate(s.claims)]
    changed = [c for c in ValueSwap().corrupt(claims, 0) if c.text]
    assert 0.25 < len(changed) / len(claims) < 0.6
