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
from data_builders.written.ambigbio.shared_names import csv_text, read_names, shares_name
from eval.metrics.citations import cited_sentences
from eval.models.chat import Answer
from eval.models.local import LocalModel
from eval.prompting.prompts import Prompt
from eval.retrieve.wikipedia import article_text
from records import (
    Document,
    Generation,
    Passage,
    RelationPair,
    read_records,
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


@pytest.fixture
def writer(save_llama, word_tokenizer) -> LocalModel:
    """A tiny model that writes words at random."""
    return LocalModel(str(save_llama(word_tokenizer(pairs=False))), dtype="float32", device="cpu")


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


def test_biographies_of_a_real_model(folder, writer):
    manifest = build(writer=writer, temperature=1.0, max_new_tokens=12, seed=1)
    made = read_records("out/generations.jsonl", Generation)
    assert [generation.topic for generation in made] == NAMES[:3]
    assert all(generation.text and generation.kind == "normal" for generation in made)
    assert manifest["config"]["writer"]["class"] == "eval.models.local.LocalModel"
    assert manifest["config"]["prompt"]["file"] == "ambigbio.jinja"
    assert not list(Path("out").glob(".*"))
    other = Path("out/.biographies.0123456789abcdef.partial.jsonl")
    other.write_text('{"name": "Bob Ray"}\n')
    build(writer=writer, temperature=1.0, max_new_tokens=12, seed=1)
    assert list(Path("out").glob(".*")) == [other], "another configuration goes on with it"


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


@pytest.mark.parametrize(
    ("titles", "shares"),
    [
        (["John Bruce"], True),
        (["John Bruce (surgeon)"], True),
        (["john  bruce (Surgeon)"], True),
        (["Sir John Bruce, 3rd Baronet"], True),
        (["John Bruce, Jr"], True),
        (["J. Bruce", "John Bruce (poet)"], True),  # a redirect
        (["John Bruce Williamson"], False),
        (["St John Bruce"], False),
        (["Bruce, John"], False),
    ],
)
def test_titles_that_share_a_name(titles, shares):
    assert shares_name("John Bruce", titles) is shares
    assert shares_name("JOHN BRUCE", titles) is shares


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


def test_judged_citations_are_relation_pairs(tmp_path):
    answers = {"Ann": Answer("Ann won [1][2]. She lost [2].")}
    made = list(generations(answers, {"Ann": PASSAGES}, "tiny", Judge(), {}, Counter()))
    write_jsonl(tmp_path / "g.jsonl", made)
    pairs = read_records(tmp_path / "g.jsonl", RelationPair)
    assert [(pair.premise, pair.hypothesis, pair.label) for pair in pairs] == [
        ("Title: T1\nText 1.\nTitle: T2\nText 2.", "Ann won.", "entailment"),
        ("Title: T2\nText 2.", "She lost.", "not_entailment"),
    ]
    (document,) = read_records(tmp_path / "g.jsonl", Document)
    assert [passage.id for passage in document.passages] == ["1", "2"]


def test_extract_loses_headings_and_lists():
    extract = (
        "Ann was a poet.\n\n\n== Life ==\nBorn in 1901.\n\n=== Notes ===\nA note.\n"
        "==== Deeper ====\nDeep.\n=== Youth ===\nYoung.\n\n== References ==\nSmith 1990.\n"
        "=== Books ===\nA book.\n== Work ==\nShe wrote.\n== See also ==\nBob"
    )
    assert article_text(extract) == "Ann was a poet. Born in 1901. Young. She wrote."


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Ann[2], a poet [1], won [2].", [("Ann, a poet, won.", [2, 1])]),
        ("Ann won in [sic] 1901 [x].", [("Ann won in [sic] 1901 [x].", [])]),
        ("She “won [1].” Ann [2]", [("She “won.”", [1]), ("Ann", [2])]),
        ("[1][2]", [("", [1, 2])]),
    ],
)
def test_citations_within_sentences_are_read(text, sentences):
    assert [tuple(cited) for cited in cited_sentences(text)] == sentences
