"""D-FActScore's evidence as published: whole pages of titles, one question a claim and title."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from components.identity import identity
from eval.decompose.given import Given
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.retrieve.knowledge import SEPARATOR
from eval.retrieve.titles import PagesOfTitles
from eval.verify.dfactscore.stage import DFActScore
from eval.verify.factscore import FActScore
from eval.verify.nonparametric import NP
from records import Claim, Document, Passage, UserError
from tests.model_server import ModelServer

PAINTER, JUDGE = "Ida Holm (painter)", "Ida Holm (judge)"
PAGES = {
    PAINTER: ["Ida Holm painted.", "She lived in Ribe.", "Her cat was Otto."],
    JUDGE: ["Ida Holm judged.", "She lived in Oslo."],
}
TEXT = "Ida Holm painted. She lived in Ribe. She lived in Oslo. She had wings."
GIVEN = [
    Passage(id="p0", title=PAINTER, text="Ida Holm painted."),
    Passage(id="p1", title=JUDGE, text="Ida Holm judged."),
    Passage(id="p2", title="Holm's Law", text="It is a law."),
    Passage(id="p3", title=PAINTER, text="She lived somewhere."),
]


@pytest.fixture
def knowledge(tmp_path: Path) -> str:
    path = tmp_path / "pages.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
        rows = [(title, SEPARATOR.join(entry)) for title, entry in PAGES.items()]
        db.executemany("INSERT INTO documents VALUES (?, ?)", rows)
    db.close()
    return str(path)


def document() -> Document:
    sentences = TEXT.split(". ")
    claims = [
        Claim(id=f"c{k}", text=s.rstrip(".") + ".", source=s, sentence=k)
        for k, s in enumerate(sentences)
    ]
    return Document(id="d", topic="Ida Holm", text=TEXT, claims=claims, passages=GIVEN)


def together(documents, claims):
    """All claims are about one person."""
    return [["g0"] * len(claim) for claim in claims]


def reply(body: dict) -> str:
    """True where a passage of the prompt says the claim; nothing where there is a law."""
    prompt = body["messages"][-1]["content"]
    claim = re.search(r"Input: (.*) True or False\?", prompt)[1]
    if "a law" in prompt and "wings" in claim:
        return "Nobody knows."
    return "True" if f"Text: {claim}" in prompt else "False"


def test_each_title_gives_the_best_passages_of_its_whole_page(knowledge: str) -> None:
    retrieve = PagesOfTitles(knowledge, k=2)
    first = document()
    (claims,), (passages,) = retrieve([first], [first.claims])
    by_name = {passage.id: passage for passage in passages}
    texts = [[by_name[name].text for name in claim.contexts] for claim in claims]
    assert texts[0][0] == "Ida Holm painted."
    assert texts[1][:2] == ["She lived in Ribe.", "Ida Holm painted."]
    assert texts[1][2:] == ["She lived in Oslo.", "Ida Holm judged.", "It is a law."]
    # A passage that shares no word fills up; a title without a page keeps its passage.
    assert all(len(text) == 5 for text in texts)
    assert {p.source for p in passages if p.title != "Holm's Law"} == {"pages.db"}
    assert [p.id for p in passages if p.title == "Holm's Law"] == ["p2"]
    nobody = first.model_copy(update={"passages": None})
    assert retrieve([nobody], [first.claims[:1]])[0][0][0].contexts == []
    assert identity(retrieve) != identity(PagesOfTitles(knowledge, k=3))


def test_the_words_of_a_topic_with_underscores_are_in_the_query(tmp_path: Path) -> None:
    path = tmp_path / "pages.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
        texts = SEPARATOR.join(["Born in Ribe.", "Ida Holm painted."])
        db.execute("INSERT INTO documents VALUES (?, ?)", (PAINTER, texts))
    db.close()
    first = document()
    for topic in ("Ida Holm", "Ida_Holm"):
        named = first.model_copy(update={"topic": topic, "passages": GIVEN[:1]})
        (_, (result,)) = PagesOfTitles(str(path), k=1)([named], [first.claims[3:]])
        assert [p.text for p in result] == ["Ida Holm painted."], topic


def test_one_question_a_claim_and_title_decides(knowledge: str) -> None:
    with ModelServer(reply) as server:
        stage = DFActScore(
            FActScore(OpenAIServer("m", server.url)), together, per_title=2, retrieved=True
        )
        retrieve = PagesOfTitles(knowledge, k=2)
        pipeline = Pipeline(Given(), [stage], retrieve)
        (scored,) = pipeline.score([document()])
        rows = [body["messages"][-1]["content"] for body in server.asked]
    assert len(rows) == 4 * 3
    assert (
        "Answer the question about Ida Holm based on the given context.\n\n"
        f"Title: {PAINTER}\nText: Ida Holm painted.\n\n"
        f"Title: {PAINTER}\nText: She lived in Ribe.\n\n"
        "Input: She lived in Ribe. True or False?\nOutput:"
    ) in rows
    by_name = {
        name: [v for v in scored.verdicts if v.name == name] for name in ("independent", "grouped")
    }
    alone, grouped = by_name["independent"], by_name["grouped"]
    assert [v.label for v in alone] == ["supported"] * 3 + ["failed"]
    assert [v.entity for v in alone[:3]] == [PAINTER, PAINTER, JUDGE]
    assert alone[0].support == {PAINTER: 1, JUDGE: 0, "Holm's Law": 0}
    # Oslo is the judge's: as one person the text is wrong there.
    labels = ["supported", "supported", "not_supported", "not_supported"]
    assert [v.label for v in grouped] == labels
    assert {v.entity for v in grouped} == {PAINTER}
    assert {v.p for v in [*alone, *grouped]} == {None}
    ids = {passage.text: passage.id for passage in scored.passages}
    assert grouped[1].evidence == [ids["She lived in Ribe."], ids["Ida Holm painted."]]


def test_claims_without_a_passage_fail_and_a_verifier_has_no_threshold(knowledge: str) -> None:
    with ModelServer(reply) as server:
        verifier = FActScore(OpenAIServer("m", server.url))
        stage = DFActScore(verifier, together, retrieved=True)
        claim = Claim(id="c0", text="Ida Holm painted.", contexts=[])
        (result,) = stage([document()], [[claim]], [GIVEN])
        assert [v.reason for v in result] == ["no passage was found"] * 2
        assert not server.asked
        with pytest.raises(UserError, match="threshold: a verifier"):
            DFActScore(verifier, together, threshold=0.5)
        with pytest.raises(UserError, match="entailment: with nonparametric"):
            DFActScore(FActScore(verifier.asker.writer, nonparametric=NP()), together)
