"""ambigbio without a wiki: names from a file, passages from a file or a snapshot, biographies."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from data_builders.topics import Stratum
from data_builders.written.ambigbio.ambigbio import PROMPT, AmbigBio
from data_builders.written.ambigbio.biographies import generations
from data_builders.written.ambigbio.shared_names import csv_text, read_names
from eval.models.chat import Answer
from eval.prompting.prompts import Prompt
from records import (
    Document,
    Passage,
    sha256_file,
    write_jsonl,
)
from records.abstention import responds

NAMES = ["Ann O'Lee", "Bob Ray", "Eve Roe", "Nobody Here"]
PEOPLE = [
    ("Ann O'Lee (poet)", "Ann O'Lee was a poet. She was born in London."),
    ("Ann O'Lee (chemist)", "Ann O'Lee was a chemist. She was born in Paris."),
    ("Bob Ray", "Bob Ray won the race of 1901. He lived in Rome."),
    ("Bob Ray (judge)", "Bob Ray was a judge in Berlin."),
    ("Eve Roe", "Eve Roe wrote a book."),
    ("London", "London is a city on a river."),
]

PASSAGES = [Passage(id=str(n), title=f"T{n}", text=f"Text {n}.") for n in (1, 2)]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Names and passages in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_jsonl("names.jsonl", [{"name": name} for name in NAMES])
    write_jsonl(
        "passages.jsonl",
        [{"id": f"{title}#0", "title": title, "text": text} for title, text in PEOPLE],
    )
    return tmp_path


def rows(name: str, output: str = "out") -> list[dict]:
    with (Path(output) / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def build(output: str = "out", **options: object) -> dict:
    inputs = {"names": Path("names.jsonl"), "passages": Path("passages.jsonl"), **options}
    manifest = AmbigBio(Path(output), **inputs).build()
    return json.loads(manifest.read_text(encoding="utf-8"))


def test_passages_are_found_for_each_name(folder):
    manifest = build()
    by_name = {row["name"]: row for row in rows("retrieval")}
    assert list(by_name) == NAMES[:3]
    assert set(by_name["Ann O'Lee"]["titles"][:2]) == {"Ann O'Lee (poet)", "Ann O'Lee (chemist)"}
    assert by_name["Eve Roe"]["passages"][0] == "Eve Roe#0"
    assert manifest["dropped"] == {"name without a passage": 1}
    assert [entry["file"] for entry in manifest["inputs"]] == ["names.jsonl", "passages.jsonl"]
    assert manifest["config"]["retriever"] == {
        "class": "eval.retrieve.bm25.BM25",
        "k": 5,
        "topic_in_query": False,
        "per": "claim",
        "passages": {"id": "passages.jsonl", "sha256": sha256_file("passages.jsonl")},
    }
    # Of a file of the user's only what was found is copied.
    assert {row["title"] for row in rows("passages")} == {title for title, _ in PEOPLE[:5]}


def test_the_csv_has_the_published_form(folder):
    build()
    lines = (folder / "out" / "AmbigBio.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "Tell me a bio of Ann O'Lee\t[\"Ann O'Lee\"]"
    assert lines[1] == "Tell me a bio of Bob Ray\t['Bob Ray']"
    assert len(lines) == len(NAMES)
    assert csv_text([]) == ""
    assert [name.name for name in read_names(Path("out/AmbigBio.csv"), None)] == NAMES


@pytest.mark.parametrize("ambiguity", [True, False])
@pytest.mark.parametrize("careful", [True, False])
def test_a_demonstration_tells_of_one_person_and_only_the_careful_prompt_warns(ambiguity, careful):
    passages = [{"title": "Ada Lee", "text": "Ada Lee sang."}]
    fields = {"ambiguity": ambiguity, "careful": careful}
    (message,) = Prompt(PROMPT).messages(name="Ada Lee", passages=passages, **fields)
    *demonstrations, request = message["content"].split("\n\n\n")
    assert len(demonstrations) == 2
    assert request.endswith(
        "Name of the person: Ada Lee\n\nDocument [1] (Title: Ada Lee): Ada Lee sang.\n\nAnswer:"
    )
    for demonstration in demonstrations:
        documents, _, answer = demonstration.partition("\nAnswer: ")
        titles = re.findall(r"^Document \[\d\] \(Title: (.+)\): ", documents, re.MULTILINE)
        name = re.search(r"^Name of the person: (.+)$", documents, re.MULTILINE)[1]
        namesakes = {title for title in titles if title.removeprefix("Sir ").startswith(name)}
        cited = {titles[int(number) - 1] for number in re.findall(r"\[(\d)\]", answer)}
        assert len(titles) == 5
        assert len(namesakes) == (3 if ambiguity else 1)
        assert len(cited & namesakes) == 1  # what it merges, or keeps apart, it would cite
    for text in (*demonstrations, request):
        assert ("do not confuse them" in text) is careful


def test_published_retrieval_gives_each_name_its_first_five_passages(folder):
    write_jsonl("names.jsonl", [{"name": "Bob Ray"}, {"name": "Ann Lee"}])
    docs = [{"title": f"Bob Ray {n}", "text": f"Text {n}."} for n in range(100)]
    Path("top100.json").write_text(
        json.dumps([{"question": "Tell me a bio of Bob Ray", "docs": docs}])
    )
    manifest = build(passages=None, retrieved=Path("top100.json"))
    assert [row["title"] for row in rows("passages")] == [f"Bob Ray {n}" for n in range(5)]
    assert manifest["dropped"] == {"name without a passage": 1}


@pytest.mark.parametrize("index", [True, False])
def test_pages_come_from_a_snapshot(folder, index):
    table = sqlite3.connect("wiki.db")
    table.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
    long = " ".join(f"Bob Ray wrote line {number}." for number in range(60))
    pages = [*PEOPLE[:5], ("Bob Ray Society", f"A society for Bob Ray. {long}")]
    table.executemany("INSERT INTO documents VALUES (?, ?)", pages)
    if index:
        table.execute("CREATE VIRTUAL TABLE documents_fts USING fts5(title, text)")
        table.execute("INSERT INTO documents_fts SELECT title, text FROM documents")
    table.commit()
    table.close()
    candidates = [{"title": "Bob Ray"}, {"title": "Bob Ray (judge)"}, {"title": "Bob Ray (king)"}]
    write_jsonl("names.jsonl", [{"name": "Bob Ray", "candidates": candidates}])
    manifest = build(passages=None, knowledge=Path("wiki.db"))
    assert manifest["dropped"] == {"candidate without a page in the snapshot": 1}
    titles = {row["title"] for row in rows("passages")}
    assert titles >= {"Bob Ray", "Bob Ray (judge)"}
    assert ("Bob Ray Society" in titles) == index
    assert all(row["source"] == "wiki.db" for row in rows("passages"))
    if index:
        pieces = [row["id"] for row in rows("passages") if row["title"] == "Bob Ray Society"]
        assert pieces == [f"Bob Ray Society#{number}" for number in range(len(pieces))]
        assert len(pieces) == 4  # 5 + 60 * 5 words


class Judge:
    """Entails what speaks of winning."""

    def relations(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        self.pairs = pairs
        return np.array([[0.8, 0.1, 0.1] if "won" in c else [0.1, 0.8, 0.1] for _, c in pairs])


def test_generations_hold_citations_and_count_the_rest():
    answers = {
        "Ann": Answer("Ann won [1][2]. She lost [2]. She slept [7][0]. [1]\n[2] Nothing more."),
        "Bob": Answer("", "empty"),
        "Eve": Answer("[1]"),
        "Kim": Answer("I could not find any information about Kim."),
        "Lee": Answer("", "cut while it was thinking"),
    }
    dropped: Counter[str] = Counter()
    passages = dict.fromkeys(answers, PASSAGES)
    judge = Judge()
    made = generations(answers, passages, "tiny", judge, {"Ann": Stratum("C", "rare")}, dropped)
    ann, eve, kim = made  # the last two abstain, which the respond ratio counts
    texts = [Document.model_validate(row.model_dump()) for row in (ann, eve, kim)]
    assert [responds(text) for text in texts] == [True, False, False]
    assert (ann.group, ann.bin) == ("C", "rare")
    assert ann.text == "Ann won. She lost. She slept.\nNothing more."
    assert [(c["claim"], c["numbers"], c["entailed"]) for c in ann.citations] == [
        ("Ann won.", [1, 2], 1),
        ("She lost.", [2], 0),
        ("She slept.", [1], 0),
        ("Nothing more.", [2], 0),
    ]
    assert ann.citations[0]["passage"] == ["Title: T1\nText 1.", "Title: T2\nText 2."]
    assert judge.pairs[0] == ("Title: T1\nText 1.\nTitle: T2\nText 2.", "Ann won.")
    assert +dropped == {
        "biography that failed: empty": 1,
        "biography that failed: cut while it was thinking": 1,
        "citation of a passage that was not given": 2,
        "citation without a statement": 1,
    }
