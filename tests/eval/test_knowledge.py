"""FActScore's SQLite file: titles, passages, full-text search, and the retriever stage over it."""

from __future__ import annotations

import sqlite3
import string

import numpy as np
import pytest

from components.identity import identity
from components.words import name_key
from eval.retrieve.knowledge import SEPARATOR, Knowledge, SqliteKnowledge, passages_of, plain_text
from eval.retrieve.search import with_contexts
from records import Claim, Document, Passage, UserError

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


def test_titles_are_distinct_and_iterated(path):
    knowledge = Knowledge(path)
    assert "Ada Lovelace" in knowledge
    assert "ada_lovelace" in knowledge
    assert "Nobody" not in knowledge
    titles = iter(knowledge)
    assert next(titles) == "Ada Lovelace"
    assert [*titles] == [title for title, _ in PAGES[1:]]
    assert len(knowledge) == 4
    with pytest.raises(KeyError):
        knowledge.passages("Nobody")


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


@pytest.mark.parametrize("query", ["", "  ", '"*:^()-', "zzz"])
def test_query_without_matches_has_no_hits(path, query):
    assert Knowledge(path).pages(query) == []
    assert SqliteKnowledge(str(path)).search([query, "duck"], 5)[0] == []


def test_missing_index_error_names_the_build_command(tmp_path):
    path = write(tmp_path / "kb.db", PAGES, index=False)
    assert not Knowledge(path).searchable
    with pytest.raises(UserError, match="python -m data_builders knowledge --source sqlite"):
        Knowledge(path).pages("duck")


def test_title_is_normalised_like_the_wiki(path):
    knowledge = Knowledge(path)
    for title in ("Ada_Lovelace", "  Ada   Lovelace "):
        assert knowledge.resolve(title) == "Ada Lovelace"
    assert knowledge.resolve("engine") == "Engine"
    for title in ("Ada lovelace", "ada LOVELACE", "the who", "mu\u0308ller-lu\u0308denscheid"):
        assert name_key(knowledge.resolve(title)) == name_key(title)
    assert knowledge.resolve("Ada") is None


def test_title_in_another_case_of_two_pages_is_ambiguous(tmp_path):
    pages = [("Turn ON", "A switch."), ("tuRn On", "A song."), ("Off", "A state.")]
    knowledge = Knowledge(write(tmp_path / "kb.db", pages))
    assert knowledge.resolve("turn on") is None
    assert knowledge.resolve("OFF") == "Off"


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


def test_titles_with_all_words_are_returned(tmp_path):
    names = [
        "A. Lee of York (Ann)",
        "Ann Lee",
        "Ann Lee (poet)",
        "Lee, Ann-Marie",
        "Annie Lee",
        "MÜLLER (Ann)",
        "100%",
    ]
    knowledge = Knowledge(write(tmp_path / "kb.db", [(n, "x") for n in names], index=False))
    expected = ["Ann Lee", "Ann Lee (poet)", "Lee, Ann-Marie", "A. Lee of York (Ann)"]
    assert knowledge.titles_with("lee ann") == expected
    assert knowledge.titles_with("Ann Lee", 1) == ["Ann Lee"]
    assert knowledge.titles_with("müller") == ["MÜLLER (Ann)"]
    assert knowledge.titles_with("%") == knowledge.titles_with("") == []


def test_long_text_is_cut_into_passages(path):
    assert [len(p.text.split()) for p in passages_of("T", "word " * 400, None)] == [190, 190, 20]
    assert len(passages_of("T", "word " * 256, None)) == 1


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


def test_search_without_index_raises(tmp_path, capsys):
    path = write(tmp_path / "kb.db", PAGES, index=False)
    stage = SqliteKnowledge(str(path), k=1)
    claims, passages = stage(*documents("Ada Lovelace", "The Countess"))
    assert [claim.contexts for claim in claims[1]] == [[], []]
    assert [bool(row) for row in passages] == [True, False]
    assert capsys.readouterr().err == ""
    # Alone, as in the last documents of a run, it is found no less.
    assert stage(*documents("The Countess")) == ([claims[1]], [[]])
    assert "none of 1 topics has a page, e.g. 'The Countess'" in capsys.readouterr().err


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


class Letters:
    """An encoder of our own: how often each letter stands in a text."""

    identity = "letters"

    def __init__(self):
        self.calls = []

    def encode(self, texts):
        self.calls.append(list(texts))
        counts = np.array(
            [[text.lower().count(c) for c in string.ascii_lowercase] for text in texts]
        )
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_encoder_ranks_passages(path):
    encoder = Letters()
    stage = SqliteKnowledge(str(path), k=2, words=6, topic_in_query=False, encoder=encoder)
    claims, passages = stage(*documents("Ada Lovelace", "Engine", "Ada Lovelace"))
    texts = [p.text for p in Knowledge(path, 6).passages("Ada Lovelace")]
    vectors = Letters().encode([*(f"Ada Lovelace {text}" for text in texts), "She died in London."])
    order = np.argsort(-(vectors[:3] @ vectors[3]))[:2]
    assert claims[0][0].contexts == [f"Ada Lovelace#{place}" for place in order]
    assert len(claims[0][1].contexts) == 2, "the nearest, however far"
    assert claims[2] == claims[0]
    assert passages[1][0].title == "Engine"
    (prompts,) = encoder.calls
    assert len(prompts) == len(set(prompts)), "one call, each text once"
    assert len(stage.search(["duck", "zzz"], 2)[0]) == 2
    assert stage.search(["zzz"], 2) == [[]]
    assert identity(stage)["encoder"]["identity"] == "letters"


def test_per_topic_searches_once_per_document(path):
    stage = SqliteKnowledge(str(path), k=1, words=6, per="topic")
    (claims,), (passages,) = stage(*documents("Ada Lovelace"))
    assert claims[0].contexts == claims[1].contexts == [passages[0].id]


def test_two_texts_with_an_id_raise_and_failed_search_is_none():
    ours = [[Claim(id="a", text="x"), Claim(id="b", text="y"), Claim(id="c", text="z")]]
    first, other = Passage(id="p", text="one"), Passage(id="p", text="other")
    (results,), (used,) = with_contexts(ours, [[[first], None, [first]]])
    assert [claim.contexts for claim in results] == [["p"], None, ["p"]]
    assert used == [first]
    with pytest.raises(UserError, match="'p' has two texts"):
        with_contexts(ours, [[[first], [], [other]]])
