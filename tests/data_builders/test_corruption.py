"""Corrupted texts: which claims change and how, what is appended, one corruption for all k."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from datasets import load_dataset

from data_builders.splits import SPLITS
from data_builders.written.claims.labelled import read_sources
from data_builders.written.corruption.corrupters import (
    ENTAILED_BY_ANOTHER,
    NOTHING_TO_CHANGE,
    STATED_BY_ANOTHER,
    STILL_TRUE,
    UNJUDGED,
    Change,
    PromptedCorrupter,
    ToChange,
    read_change,
    refuse_true_changes,
)
from data_builders.written.corruption.corruption import Corruption
from data_builders.written.corruption.curves import read_appended, sentences_for_topic
from data_builders.written.corruption.merging import ToMerge, find_claims
from data_builders.written.corruption.swap import ValueSwap, _parse_number
from data_builders.written.leads.lead_statements import Lead, lead_statements
from data_builders.written.leads.leads import passage_of
from eval.decompose.given import Given
from eval.models.chat import Answer
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.verify.claim_by_claim import ClaimByClaim
from eval.verify.labels import Labels
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


# Of the topics only Ann Lee has a lead.
LEADS = [
    Lead("Ann Lee", "Swedish chemist and poet (1950–1999)",
         "Ann Lee was a Swedish chemist and poet.", "People"),
    Lead("Zed Zoe", "French chemist (1920–1990)", "Zed Zoe was a French chemist.", "People"),
    Lead("Lu Xu", "film director", "Lu Xu is a film director.", "People"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def documents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("clients.polite.MAX_BACKOFF_S", 0.01)
    for split, lead in zip(SPLITS, LEADS, strict=True):
        statements = [
            {"topic": lead.title, "group": lead.topic} | statement._asdict()
            for statement in lead_statements(lead)
        ]
        write_jsonl(f"data/leads/passages_{split}.jsonl", [passage_of(lead)])
        write_jsonl(f"data/leads/statements_{split}.jsonl", statements)
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
    silent = {"id": "silent", "topic": "Eve Roe", "text": "I do not know.", "claims": []}
    write_jsonl("docs.jsonl", [*rows, bare, silent])
    info = [
        {"topic": topic, "text": f"{topic} {verb}. {topic} is. {topic} was."}
        for topic in TOPICS[:2]
        for verb in ("sang", "swam")
    ]
    write_jsonl("info.jsonl", info)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def build(output: str = "out", corrupter: object = None, **options: object) -> Path:
    info = {"info": ["info.jsonl"]}
    options = {"documents": ["docs.jsonl"], "adversarial": info, "appended": [0, 1, 4]} | options
    return Corruption(output, corrupter=corrupter or ValueSwap(), **options).build().parent


def test_every_k_has_the_same_corruption_a_longer_text_and_a_clean_twin():
    folder = build(probability=0.6)
    assert sorted(p.name for p in folder.iterdir()) == [
        "README.md",
        "changes.jsonl",
        "curve_info.jsonl",
        "manifest.json",
        "statistics.json",
    ]
    rows = read_records(folder / "curve_info.jsonl", Document)
    about = ["docs/Ann Lee", "docs/Bob Ray", "docs/bare"]
    twins = {row.id: row for row in rows if row.kind == "clean"}
    assert list(twins) == about
    for name, twin in twins.items():
        assert twin.text == "x"
        assert not {"clean", "k"} & set(twin.model_extra)
        if name != "docs/bare":
            labels = [(c.id, c.label) for c in twin.claims]
            assert labels == [(f"c{i}", label) for i, (_, label) in enumerate(CLAIMS)]
    corrupted = [row for row in rows if row.kind == "corrupted"]
    assert [(row.clean, row.k) for row in corrupted] == [
        (name, k) for name in about for k in (0, 1, 4)
    ]
    assert len({row.id for row in rows}) == len(rows)
    changes = {(c["document"], c["claim"]): c for c in lines(folder / "changes.jsonl")}
    assert len(changes) == 3 * 7 + 1
    versions = defaultdict(list)
    for row in corrupted:
        twin = twins[row.clean]
        number = len(twin.claims)
        row_claims = row.claims[:number]
        versions[row.clean].append([(c.text, c.label) for c in row_claims])
        for claim, was in zip(row_claims, twin.claims, strict=True):
            change = changes[row.clean, claim.id]
            assert claim.id == was.id
            assert (claim.text, claim.label) == (change["text"], change["label"])
            assert was.text == change["original"]
            false = change["text"] != change["original"]
            assert claim.label == ("NS" if false else was.label)
            assert not false or (change["drawn"] and was.label == "S")
            assert claim.labelled_by == ("rule: another value" if false else "given")
        added = row.claims[number:]
        assert [c.text for c in added] == [
            f"{row.topic} sang.", f"{row.topic} is.", f"{row.topic} was.", f"{row.topic} swam."
        ][: row.k]  # fmt: skip
        assert all(c.label is None and c.kind == "info" for c in added)
        assert row.text == " ".join(c.source for c in row.claims)
        assert [c.sentence for c in row.claims] == list(range(number + row.k))
        stratum = (None, None) if row.clean == "docs/bare" else ("A", "rare")
        assert (row.group, row.bin) == stratum == (twin.group, twin.bin)
        assert row.generator == twin.generator == "docs"
        assert row.appended == "info"
    assert all(
        version == row_claims[0] for row_claims in versions.values() for version in row_claims
    )
    assert {c["text"] != c["original"] for c in changes.values() if c["drawn"]} == {True, False}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["dropped"] == {
        "document on a topic without info sentences": 1,
        "document without claims": 1,
    }
    assert [entry["file"] for entry in manifest["inputs"]] == ["docs.jsonl", "info.jsonl"]
    assert load_dataset(str(folder), "curve_info")["test"].num_rows == 3 * 4
    assert load_dataset(str(folder), "changes")["test"].num_rows == 22


def test_statistics_count_what_changed_what_could_not_and_what_was_appended():
    figures = json.loads((build(probability=1.0) / "statistics.json").read_text())
    assert (figures["documents"], figures["claims"], figures["to_be_changed"]) == (4, 22, 15)
    assert figures["claims_by_label"] == {"IR": 3, "NS": 4, "S": 15}
    assert figures["documents_without_a_supported_claim"] == 1
    assert figures["documents_without_a_change"] == 1
    assert figures["changed_by_kind"] == {
        "born": 1,
        "nationality": 3,
        "number": 3,
        "occupation": 3,
        "year": 2,
    }
    assert figures["stayed_by_reason"] == {NOTHING_TO_CHANGE: 3}
    assert (figures["changed"], figures["invalid"]) == (12, 0)
    assert figures["claims_in_text"] == {"listed": 22}
    assert figures["appended"] == {
        "info": {
            "documents": 3,
            "fewest_distinct_sentences": 4,
            "documents_with_repeated_sentences": 0,
            "documents_with_sentences_of_another_topic": 0,
            "topics_without_sentences": ["Eve Roe"],
        }
    }
    none = json.loads((build("none", probability=0) / "statistics.json").read_text())
    assert (none["to_be_changed"], none["changed"]) == (0, 0)


def test_too_few_sentences_are_repeated_in_order():
    folder = build(appended=[0, 6])
    figures = json.loads((folder / "statistics.json").read_text())
    assert figures["appended"]["info"]["documents_with_repeated_sentences"] == 3
    row = read_records(folder / "curve_info.jsonl", Document)[2]
    added = [c.text for c in row.claims if c.id.startswith("a")]
    assert added == [f"Ann Lee {verb}." for verb in ("sang", "is", "was", "swam", "sang", "is")]
    assert len({c.id for c in row.claims}) == len(row.claims)


def test_kinds_share_the_corruption_and_count_missing_topics_separately():
    write_jsonl("all.jsonl", [
        {"topic": "Ann Lee", "text": "Ann Lee sings. She sings.", "kind": "repetitive"},
        {"topic": "Eve Roe", "text": "Eve Roe is. Eve Roe was.", "kind": "info"},
        {"topic": "Ann Lee", "text": "Ann Lee is.", "kind": "info"},
        {"topic": "Ann Lee", "text": "Ann Lee once was.", "kind": "normal"},
        # `generations` leaves no refusal out.
        {"topic": "Bob Ray", "text": "I'm sorry, but I cannot help with that.", "kind": "info"},
    ])  # fmt: skip
    folder = build(
        adversarial={"repetitive": ["all.jsonl"], "info": ["all.jsonl"]}, probability=1.0
    )
    by_kind = {kind: read_records(folder / f"curve_{kind}.jsonl", Document) for kind in
             ("repetitive", "info")}  # fmt: skip
    topics = {kind: list(dict.fromkeys(r.topic for r in rows)) for kind, rows in by_kind.items()}
    assert topics == {"repetitive": ["Ann Lee"], "info": ["Ann Lee", "Eve Roe"]}
    stated = {
        kind: [[(c.text, c.label) for c in r.claims] for r in rows if r.model_extra.get("k") == 0]
        for kind, rows in by_kind.items()
    }
    assert stated["repetitive"][0] == stated["info"][0]
    assert json.loads((folder / "manifest.json").read_text())["dropped"] == {
        "document on a topic without info sentences": 1,
        "document on a topic without repetitive sentences": 2,
        "document without claims": 1,
    }
    # The same kind alone has the same bytes.
    alone = build("alone", adversarial={"info": ["all.jsonl"]}, probability=1.0)
    name = "curve_info.jsonl"
    assert (alone / name).read_bytes() == (folder / name).read_bytes()


def test_topic_without_sentences_takes_those_of_another_topic_with_of_anyone():
    topics = read_appended({"info": ["info.jsonl"]}, None)["info"]
    assert sentences_for_topic("Eve Roe", topics, False, 0) == ("Eve Roe", [])
    other, sentences = sentences_for_topic("Eve Roe", topics, True, 0)
    assert other in TOPICS[:2]
    verbs = ("sang", "is", "was", "swam")
    assert [s.text for s in sentences] == [f"Eve Roe {verb}." for verb in verbs]
    assert all(c.text == c.source == s.text for s in sentences for c in s.claims)
    assert sentences_for_topic("Ann Lee", topics, True, 0) == ("Ann Lee", topics["Ann Lee"])
    drawn_topics = {
        sentences_for_topic(f"Eve {number}", topics, True, 0)[0] for number in range(20)
    }
    assert drawn_topics == set(TOPICS[:2])
    folder = build(of_anyone=["info"], assumed={"info": "S"})
    rows = [r for r in read_records(folder / "curve_info.jsonl", Document) if r.topic == "Eve Roe"]
    assert len(rows) == 4
    added = [c for c in rows[-1].claims if c.id.startswith("a")]
    assert [(c.label, c.labelled_by) for c in added] == [("S", "assumed")] * 4
    figures = json.loads((folder / "statistics.json").read_text())["appended"]["info"]
    assert figures["documents_with_sentences_of_another_topic"] == 1
    assert figures["topics_without_sentences"] == []


def test_generations_of_the_knowledge_base_and_kinds():
    def row(kind: str, stated: list[tuple[str, bool]]) -> dict:
        sentences = [{"text": text, "true": true} for text, true in stated]
        text = " ".join(text for text, _ in stated)
        row = {"topic": "Ann Lee", "text": text, "kind": kind, "sentences": sentences}
        return row | {"generator": "kb", "bin": "rare"}

    normal = row("normal", [("Ann Lee was born in 1950.", True), ("Ann Lee died in 1999.", False)])
    empty = row("uninformative", [("Ann Lee is.", True), ("She was.", True)])
    repetitive = row("repetitive", [("Ann Lee sang.", True), ("She sang.", True)])
    write_jsonl("kb.jsonl", [normal, empty, repetitive])
    options = {"documents": ["kb.jsonl"], "source_kind": "normal"}
    folder = build(
        **options, adversarial={"repetitive": ["kb.jsonl"]}, appended=[2], probability=1.0
    )
    twin, corrupted = read_records(folder / "curve_repetitive.jsonl", Document)
    assert [(c.id, c.label, c.source) for c in twin.claims] == [
        ("c0", "S", "Ann Lee was born in 1950."),
        ("c1", "NS", "Ann Lee died in 1999."),
    ]
    assert twin.text == normal["text"]
    assert (twin.generator, corrupted.bin) == ("kb", "rare")
    assert [(c.id, c.label, c.labelled_by) for c in corrupted.claims] == [
        ("c0", "NS", "rule: another value"),
        ("c1", "NS", "knowledge base"),
        ("a0", "S", "knowledge base"),
        ("a1", "S", "knowledge base"),
    ]
    assert corrupted.text.endswith("Ann Lee died in 1999. Ann Lee sang. She sang.")


class Doubts(ClaimByClaim):
    """Finds nothing supported but what names Ann."""

    assessor = "doubts"
    reads_passages = False

    def judge(self, queries):
        return [
            self.verdict(a.claim, "supported" if "Ann" in a.claim.text else "undecided")
            for a in queries
        ]


def scored(verifiers: list) -> None:
    documents = read_records("docs.jsonl", Document)
    pipeline = Pipeline(decompose=Given(irrelevant=True), verify=verifiers)
    write_jsonl("scored.jsonl", [row.model_dump() for row in pipeline.score(documents)])


def test_verdicts_of_scored_texts_are_the_labels():
    scored([Labels(), Doubts()])
    options = {"documents": ["scored.jsonl"], "appended": [0], "probability": 1.0}
    with pytest.raises(UserError, match=r"several verdicts; choose one .* labels, doubts"):
        build(**options)
    with pytest.raises(UserError, match="no verdict 'nli'"):
        build(**options, verdict="nli")
    twin, row, *_ = read_records(
        build(**options, verdict="doubts.default") / "curve_info.jsonl", Document
    )
    assert [c.label for c in twin.claims] == ["S"] * 6 + ["NS"]
    assert {c.labelled_by for c in twin.claims} == {"doubts"}
    assert [c.label for c in row.claims] == ["NS", "NS", "NS", "S", "NS", "S", "NS"]
    first, _, second, *_ = read_records(
        build("labels", **options, verdict="labels") / "curve_info.jsonl", Document
    )
    assert [c.label for c in first.claims] == [label for _, label in CLAIMS]
    assert second.kind == "clean"
    # One verdict needs no name; a claim that could not be judged has no label and stays.
    write_jsonl("half.jsonl", [
        {"id": "d", "topic": "Ann Lee", "text": "x", "claims": [
            {"id": "c0", "text": "Ann Lee was born in 1950.", "label": "S"},
            {"id": "c1", "text": "Ann Lee was born in 1960."}]}])  # fmt: skip
    results = Pipeline(decompose=Given(), verify=[Labels()]).score(
        read_records("half.jsonl", Document)
    )
    write_jsonl("scored.jsonl", [row.model_dump() for row in results])
    twin, row = read_records(build("half", **options) / "curve_info.jsonl", Document)
    assert [c.label for c in twin.claims] == ["S", None]
    assert [c.labelled_by for c in twin.claims] == ["labels", "none"]
    assert [c.label for c in row.claims] == ["NS", None]
    assert row.claims[1].text == "Ann Lee was born in 1960."


def change(text: str, topic: str = "Cy Coe", seed: int = 0):
    return ValueSwap().change(ToChange("k", topic, text), random.Random(seed))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Cy Coe was born on 7 May 1861.", {"year", "month", "day"}),
        ("Cy Coe wrote in the 1920s.", {"year"}),
        ("Cy Coe sold 12,500 books.", {"number"}),
        ("Cy Coe lived in the 19th century.", {"ordinal"}),
        ("Cy Coe is a chemist.", {"occupation"}),
        ("Cy Coe is an Italian painter.", {"nationality", "occupation"}),
    ],
)
def test_value_is_replaced_by_another_of_its_kind(text, kind):
    seen = set()
    for seed in range(30):
        result = change(text, seed=seed)
        seen.add(result.kind)
        assert result.text != text
        assert result.old in text
        assert result.old not in result.text.replace(result.new, "")
        if result.kind == "year":
            assert 0 < abs(int(result.new) - int(result.old)) <= 30
        if result.kind == "day":
            assert 1 <= int(result.new) <= 28
    assert seen == kind


@pytest.mark.parametrize(
    ("text", "larger"),
    [
        ("Cy Coe sold more than 100 records.", True),  # who sold more than 78 as well
        ("Cy Coe has at least three children.", True),
        ("Cy Coe sold fewer than 100 records.", False),
        ("Cy Coe was born before 1950.", False),
    ],
)
def test_bounds_are_replaced_by_false_ones(text, larger):
    (find,) = ValueSwap().replaceable(ToChange("k", "Cy Coe", text))
    old = _parse_number(text[find.start : find.end])
    assert find.replacements
    assert all((_parse_number(other) > old) == larger for other in find.replacements)


def test_a_range_is_made_narrower():
    for text in ("It took place between 1926 and 1929.", "It was between the 1930s and the 1950s."):
        first, last = ValueSwap().replaceable(ToChange("k", "Cy Coe", text))
        assert all(other > text[first.start : first.end] for other in first.replacements)
        assert all(other < text[last.start : last.end] for other in last.replacements)
        assert first.replacements
        assert last.replacements


def test_new_value_is_not_in_the_lead_and_of_another_field_or_region():
    for seed in range(40):
        assert change("Ann Lee was a writer.", "Ann Lee", seed).new not in {"chemist", "botanist"}
        assert change("Cy Coe is a writer.", seed=seed).new not in {"playwright", "translator"}
        assert change("Cy Coe is British.", seed=seed).new not in {"English", "Scottish"}
        result = change("Cy Coe is an Italian.", seed=seed)  # no "is a French"
        article = result.text.removeprefix("Cy Coe is ").split()[0]
        assert article == ("an" if result.new[0] in "AEIOU" else "a")
        assert result.new not in {"French", "Swedish"}
    for text in ("Cy Coe met a film director.", "Cy Coe left the American Academy."):
        assert change(text).reason == NOTHING_TO_CHANGE
    assert change("French Smith is quiet.", "French Smith").reason == NOTHING_TO_CHANGE


def test_values_of_the_topics_lead_are_replaced_whole():
    for seed in range(10):
        result = change("Lu Xu worked as a film director.", "Lu Xu", seed)
        assert (result.kind, result.old) == ("occupation", "film director")
        assert result.new not in {"film director", "choreographer"}


def test_identity_of_the_corrupter_changes_with_the_leads():
    before = ValueSwap().identity
    write_jsonl("data/leads/statements_dev.jsonl", [{"topic": "Zed Zoe"}])
    assert ValueSwap().identity != before


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer("Ann Lee is a poet."), "Ann Lee is a poet."),
        (Answer("Changed sentence: Ann Lee is a poet."), "Ann Lee is a poet."),
        (Answer("Here is one:\n- Lee is a poet."), "Lee is a poet."),
        (Answer("Ann Lee is a chemist!"), "the claim as it was"),
        (Answer("Bob is a poet."), "another topic"),
        (Answer("I cannot help with that."), "refused in words"),
        (Answer("", "content filter"), "content filter"),
        (Answer("Ann Lee is a poet. Ann Lee is old."), "no single sentence"),
    ],
)
def test_a_model_s_change_is_read_or_failed(answer, expected):
    result = read_change(ToChange("k", "Ann Lee", "Ann Lee is a chemist."), answer)
    assert expected == (result.reason if result.text is None else result.text)


def model(body: dict) -> str:
    """Changes and merges as it is told; refuses to touch quiet people, and loses claims."""
    messages = body["messages"]
    first, request = messages[0]["content"], messages[-1]["content"]
    if "factually incorrect" in first:
        return "I cannot do that." if "quiet" in request else f"{request.rstrip('.')} of old."
    facts = [line.partition(". ")[2] for line in first.splitlines() if line[:1].isdigit()]
    sentences = [f"{fact.rstrip('.')}." for fact in facts]
    if "bio of Bob Ray" in first:  # loses two claims, and one of them again
        return " ".join(sentences[2:] if len(messages) == 1 else sentences[1:])
    if "bio of Eve Roe" in first:
        return "I cannot help with that."
    return " ".join(sentences)


def test_prompted_models_change_and_merge_and_no_claim_is_lost(monkeypatch):
    with ModelServer(model) as server:
        writer = OpenAIServer("tiny", server.url, timeout_s=5, retries=2)
        write_jsonl("topics.jsonl", [{"topic": topic, "text": "It is."} for topic in TOPICS])
        options = {"merger": writer, "probability": 1.0, "appended": [0, 5], "merge_again": 1}
        options |= {"adversarial": {"info": ["topics.jsonl"]}}
        folder = build(corrupter=PromptedCorrupter(writer), **options)
        rows = read_records(folder / "curve_info.jsonl", Document)
        assert [(r.topic, r.model_extra.get("k")) for r in rows] == [
            (topic, k) for topic in (*TOPICS, "Ann Lee") for k in (None, 0, 5)
        ]
        assert all(body["temperature"] == 0 for body in server.asked)
        lengths = {body.get("max_tokens") or body["max_completion_tokens"] for body in server.asked}
        assert lengths == {128, 512}
        first = rows[1]
        assert first.text.startswith(
            "Ann Lee was born in 1950 of old. Ann Lee is a chemist of old."
        )
        assert [c.label for c in first.claims] == ["NS", "NS", "NS", "S", "NS", "NS", "IR"]
        assert first.claims[0].labelled_by == "prompted: tiny"
        assert [c.sentence for c in first.claims] == list(range(7))
        assert all(c.text.rstrip(".") in c.source for c in first.claims)
        how = defaultdict(list)
        for change in lines(folder / "changes.jsonl"):
            how[change["document"]].append(change["in_text"])
        assert how == {
            "docs/Ann Lee": ["merged"] * 7,
            "docs/Bob Ray": ["appended", "again", *["merged"] * 5],
            "docs/Eve Roe": ["listed"] * 7,
            "docs/bare": ["merged"],
        }
        second = rows[4]
        assert second.text.endswith(" The sun shines. Bob Ray was born in 1950 of old.")
        assert second.claims[0].sentence == 6
        repeated = [body for body in server.asked if len(body["messages"]) == 3
                 and "leaves out" in body["messages"][2]["content"]]  # fmt: skip
        assert len(repeated) == 1
        request = repeated[0]["messages"][2]["content"]
        assert "- Bob Ray was born in 1950 of old." in request
        assert "- Bob Ray is a chemist of old." in request
        assert "Swedish" not in request
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["dropped"] == {"document without claims": 1}
        figures = json.loads((folder / "statistics.json").read_text())
        assert figures["stayed_by_reason"] == {"refused in words": 3}
        assert figures["changed_by_kind"] == {"by a model": 12}
        assert figures["texts_not_merged_by_reason"] == {"refused in words": 1}
        assert figures["claims_in_text"] == {"again": 1, "appended": 1, "listed": 7, "merged": 13}
        # Killed after the first document, it goes on and ends with the same bytes.
        monkeypatch.setattr("data_builders.journal.BATCH_SIZE", 1)
        server.answered.clear()

        def dies(body: dict) -> str:
            if len(server.answered) == 8:
                server.faults.extend(["503"] * 100)
            return model(body)

        server.reply = dies
        with pytest.raises(UserError, match="no answer in 3 attempts"):
            build("killed", PromptedCorrupter(writer), **options)
        assert list(Path("killed").glob(".changes.*.partial.jsonl"))
        server.faults.clear()
        server.reply = model
        server.answered.clear()
        resumed = build("killed", PromptedCorrupter(writer), **options)
        # Nothing of the first document again: two of five claims and two or one text, and a text.
        assert len(server.answered) == (5 + 2) + (5 + 1) + 1
        for path in folder.iterdir():
            assert path.read_bytes() == (resumed / path.name).read_bytes(), path.name
        assert sorted(p.name for p in resumed.iterdir()) == sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize(
    ("claim", "original", "sentence", "is_held"),
    [
        ("Ann Lee was born in Riga.", None, "She was born in Riga in 1931.", True),
        ("Ann Lee was born in Riga.", None, "Born in Tartu, she was a chemist.", False),
        ("Ann Lee worked as a chemist.", None, "A working chemist, she won prizes.", True),
        ("Ann Lee taught chemistry at Riga University.", None,
         "She taught chemistry at Tartu University.", False),
        # The merging model put the truth back.
        ("Ann Lee worked for years as a poet.", "Ann Lee worked for years as a chemist.",
         "She worked for years as a chemist.", False),
        ("Ann Lee is not a chemist.", None, "Ann Lee is a chemist.", False),
        ("Ann Lee is a chemist.", None, "", False),
    ],
)  # fmt: skip
def test_a_sentence_holds_a_claim_with_its_names_numbers_and_changed_words(
    claim, original, sentence, is_held
):
    merge = ToMerge("Ann Lee", [claim], [original or claim])
    assert find_claims(merge, [sentence] if sentence else []) == [is_held]
    assert find_claims(merge, ["It rained.", *([sentence] if sentence else [])]) == [is_held]


class Relations:
    """A relation model: a premise entails a hypothesis that ends in the same word."""

    identity = {"model": "last words"}  # noqa: RUF012

    def relations(self, pairs):
        ends = [[text.rstrip(".").split()[-1] for text in pair] for pair in pairs]
        return np.array([[0.9, 0.1, 0.0] if a == b else [0.1, 0.9, 0.0] for a, b in ends])


def test_relation_model_finds_claims_and_refuses_true_changes():
    def answer(body: dict) -> str:
        request = body["messages"][-1]["content"]
        if "factually incorrect" in body["messages"][0]["content"]:
            return request.replace("1950", "three prizes").replace("chemist", "Swedish person")
        return "A soul who is Swedish. One who won prizes. There was a queen. The sun shines."

    with ModelServer(answer) as server:
        writer = OpenAIServer("tiny", server.url, timeout_s=5, retries=2)
        options = {"merger": writer, "entailment": Relations(), "merge_again": 0, "limit": 1}
        folder = build(corrupter=PromptedCorrupter(writer), probability=1.0, **options)
    changes = lines(folder / "changes.jsonl")
    # "… in three prizes" ends as "won three prizes" does, which stayed; it is refused.
    assert [(c["reason"], c["refused"]) for c in changes[:2]] == [
        (STILL_TRUE + ENTAILED_BY_ANOTHER, "Ann Lee was born in three prizes."),
        ("", ""),
    ]
    assert [c["in_text"] for c in changes] == [
        "lost", "lost", "merged", "lost", "merged", "merged", "merged"
    ]  # fmt: skip
    texts = [row["text"] for row in lines(folder / "curve_info.jsonl")]
    assert any("There was a queen. The sun shines." in text for text in texts)
    assert not any("born in" in text for text in texts), "a lost claim is not appended"
    assert json.loads((folder / "statistics.json").read_text())["invalid"] == 1


def test_a_change_that_another_supported_claim_says_is_not_false():
    (source, *_) = read_sources(["docs.jsonl"], None, None, Counter())
    made = {"c0": Change("Ann Lee is Swedish!"), "c1": Change("Ann Lee is Danish."),
            "c2": Change("Ann Lee is a queen.")}  # fmt: skip
    result = refuse_true_changes([source], {source.id: made}, None)[source.id]
    assert result["c0"] == Change(
        reason=STILL_TRUE + STATED_BY_ANOTHER, refused="Ann Lee is Swedish!"
    )
    assert result["c1"] is made["c1"]
    assert result["c2"] is made["c2"]  # said of her, but not supported


class Silent:
    """A relation model that fails on every pair."""

    def relations(self, pairs):
        return np.full((len(pairs), 3), np.nan)


def test_a_change_that_could_not_be_judged_is_not_taken_for_false():
    (source, *_) = read_sources(["docs.jsonl"], None, None, Counter())
    made = {"c1": Change("Ann Lee is Danish.")}
    result = refuse_true_changes([source], {source.id: made}, Silent())[source.id]
    assert result["c1"] == Change(reason=STILL_TRUE + UNJUDGED, refused="Ann Lee is Danish.")
