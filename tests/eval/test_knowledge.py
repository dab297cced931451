"""FActScore's SQLite file: titles, passages, full-text search, and the retriever stage over it."""

from __future__ import annotations

import sqlite3

import pytest

from components.words import name_key
from eval.retrieve.knowledge import SEPARATOR, Knowledge, SqliteKnowledge, passages_of, plain_text
from records import Claim, Document

ADA = (
    f"<s>Ada Lovelace was a mathe{SEPARATOR}matician.</s><s>She wrote notes on an engine.</s>"
    f"{SEPARATOR}<s>Ada died in London.</s>"
)
PAGES = [
    ("Ada Lovelace", ADA),
    ("Engine", "An engine turns heat into work. " * 30),
    ("Müller-Lüdenscheid", 'A bath, a duck and a "gentleman" named Müller.'),
    ("The Who", "The Who are a band."),
]


def write(path, pages, index=True):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
        db.executemany("INSERT INTO documents VALUES (?, ?)", pages)
        if index:
            db.execute("CREATE VIRTUAL TABLE documents_fts USING fts5(title, text, content='')")
            rows = [(n, t, plain_text(x)) for n, (t, x) in enumerate(pages, 1)]
            db.executemany("INSERT INTO documents_fts (rowid, title, text) VALUES (?, ?, ?)", rows)
    db.close()
    return path


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "kb #1?.db", PAGES)  # characters that a URI has a meaning for


def test_marks_are_removed_and_split_words_are_joined(path):
    text = "Ada Lovelace was a mathematician. She wrote notes on an engine. Ada died in London."
    assert Knowledge(path).text("Ada Lovelace") == text
    assert plain_text("Plain  text\n\nstays.") == "Plain  text\n\nstays."


def test_passages_have_the_given_words_or_those_of_the_file(path):
    row = Knowledge(path, words=6).passages("Ada Lovelace")
    assert [p.text for p in row] == [
        "Ada Lovelace was a mathematician. She",
        "wrote notes on an engine. Ada",
        "died in London.",
    ]
    assert [p.id for p in row] == ["Ada Lovelace#0", "Ada Lovelace#1", "Ada Lovelace#2"]
    assert row[0].title == "Ada Lovelace"
    filed = Knowledge(path, words=None).passages("Ada Lovelace")
    assert [p.text for p in filed] == [
        "Ada Lovelace was a mathe",
        "matician. She wrote notes on an engine.",
        "Ada died in London.",
    ]
    assert [len(p.text.split()) for p in Knowledge(path).passages("Engine")] == [100, 80]
    assert passages_of("Empty", "", 10) == []


def test_redirect_resolves_to_its_page(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE redirects (title PRIMARY KEY, target)")
        rows = [("Ada King", "Ada Lovelace"), ("Lost", "Nowhere")]
        db.executemany("INSERT INTO redirects VALUES (?, ?)", rows)
    db.close()
    knowledge = Knowledge(path)
    assert knowledge.resolve("Ada King") == "Ada Lovelace"
    assert knowledge.passages("Ada King")[0].id == "Ada Lovelace#0"
    assert "Lost" not in knowledge


def test_search_finds_pages_and_ranks_their_passages(path):
    knowledge = Knowledge(path, words=6)
    assert knowledge.pages("who wrote notes", 2)[0] == "Ada Lovelace"
    (results,) = SqliteKnowledge(str(path), words=6).search(["died London"], 1)
    assert [passage.text for passage in results] == ["died in London."]
    assert knowledge.pages("the", 3) == ["The Who"], "a query of stop words alone is one too"


@pytest.mark.parametrize(
    "query",
    [
        '"gentleman',
        "Müller AND",
        "duck*",
        "title:duck",
        "MÜLLER",
    ],
)
def test_query_operators_are_read_as_words(path, query):
    assert Knowledge(path).pages(query, 1) == ["Müller-Lüdenscheid"]


def test_title_is_normalised_like_the_wiki(path):
    knowledge = Knowledge(path)
    for title in ("Ada_Lovelace", "  Ada   Lovelace "):
        assert knowledge.resolve(title) == "Ada Lovelace"
    assert knowledge.resolve("engine") == "Engine"
    for title in ("Ada lovelace", "ada LOVELACE", "the who", "mu\u0308ller-lu\u0308denscheid"):
        assert name_key(knowledge.resolve(title)) == name_key(title)
    assert knowledge.resolve("Ada") is None


def test_redirect_into_a_section_reads_the_section(path):
    pages = [
        ("Cast", "A list.\n\nCy Orr\n\nCy is a cook.\n\nBo Day\n\nBo is a vet.\n\nLater\n\nEnd.")
    ]
    write(path.with_name("cast.db"), pages)
    with sqlite3.connect(path.with_name("cast.db")) as db:
        db.execute("CREATE TABLE redirects (title PRIMARY KEY, target)")
        rows = [("Bo Day", "Cast#Bo_Day"), ("Di Fox", "Cast#Di Fox")]
        db.executemany("INSERT INTO redirects VALUES (?, ?)", rows)
    db.close()
    knowledge = Knowledge(path.with_name("cast.db"))
    assert [(p.id, p.text) for p in knowledge.passages("bo day")] == [
        ("Cast#Bo_Day#0", "Bo is a vet.")
    ]
    assert knowledge.resolve("Di Fox") is None


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize(
    "text", ["Jo Fry may refer to:\nJo Fry (poet)", "Jo Fry commonly refers to: Jo Fry (poet)"]
)
def test_topic_of_a_disambiguation_page_is_searched(tmp_path, index, text):
    pages = [("Jo Fry", text), ("Jo Fry (poet)", "Jo Fry died in London.")]
    stage = SqliteKnowledge(str(write(tmp_path / "kb.db", pages, index)), k=2)
    _, (passages,) = stage(*documents("Jo Fry"))
    assert [passage.title for passage in passages] == ["Jo Fry (poet)"]


def documents(*topics):
    claims = [[Claim(id="c0", text="She died in London."), Claim(id="c1", text="Zzz.")]]
    return [Document(id=t, topic=t, text="x") for t in topics], claims * len(topics)


def test_topic_page_is_retrieved(path):
    stage = SqliteKnowledge(str(path), k=1, words=6, topic_in_query=False)
    claims, passages = stage(*documents("Ada Lovelace"))
    assert [claim.contexts for claim in claims[0]] == [["Ada Lovelace#2"], []]
    assert [p.text for p in passages[0]] == ["died in London."]


def test_topic_without_page_is_searched(path):
    stage = SqliteKnowledge(str(path), k=2, words=6, topic_in_query=False)
    claims, passages = stage(*documents("The Countess", "Ada Lovelace"))
    assert claims[0][0].contexts[0] == "Ada Lovelace#2"
    assert claims[0][1].contexts == []
    assert {p.title for p in passages[0]} == {"Ada Lovelace"}


def test_without_index_titles_are_searched(tmp_path):
    pages = [
        *PAGES,
        ("Ada (ship)", "A vessel."),
        ("Ada (poet)", "She died in London, a poet."),
    ]
    stage = SqliteKnowledge(
        str(write(tmp_path / "kb.db", pages, index=False)), k=3, topic_in_query=False
    )
    (claims,), (passages,) = stage(*documents("ada"))
    assert {p.title for p in passages} == {"Ada Lovelace", "Ada (poet)"}
    assert claims[1].contexts == []


def test_per_topic_searches_once_per_document(path):
    stage = SqliteKnowledge(str(path), k=1, words=6, per="topic")
    (claims,), (passages,) = stage(*documents("Ada Lovelace"))
    assert claims[0].contexts == claims[1].contexts == [passages[0].id]
