"""The knowledge builder: every source, drops, resumption after kill -9, and what is in the file."""

from __future__ import annotations

import bz2
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import datasets
import pytest

from data_builders.published.knowledge.knowledge import KnowledgeFile
from eval.retrieve.knowledge import SEPARATOR, Knowledge
from records import Document, UserError, read_records

ROOT = Path(__file__).parents[2]


def jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def content(folder):
    with sqlite3.connect(folder / "knowledge.db") as db:
        return db.execute("SELECT title, text FROM documents ORDER BY rowid").fetchall()


ROWS = [
    {"id": "1", "url": "u", "title": "Ada", "text": "Ada was a mathematician."},
    {"title": " Babbage ", "text": ["He built ", " an engine."]},
    {"title": "Ada", "text": "Another."},
    {"title": "Empty", "text": " \n"},
    {"title": "", "text": "Nameless."},
    {"title": "Half", "text": "half a pair \ud83d"},
]
DROPPED = {
    "page whose text is not valid Unicode": 1,
    "page whose title another page has": 1,
    "page without a title": 1,
    "page without text": 1,
}


def test_rows_become_pages_and_drops_are_counted(tmp_path):
    path = jsonl(tmp_path / "rows.jsonl", ROWS)
    folder = KnowledgeFile(tmp_path / "out", [path]).build().parent
    assert content(folder) == [
        ("Ada", "Ada was a mathematician."),
        ("Babbage", "He built an engine."),
    ]
    report = manifest(folder)
    assert report["dropped"] == DROPPED
    assert report["config"]["database"]["documents"] == 2
    assert [entry["file"] for entry in report["inputs"]] == ["rows.jsonl"]
    assert sorted(p.name for p in folder.iterdir()) == [
        "README.md",
        "knowledge.db",
        "manifest.json",
        "titles.jsonl",
    ]
    assert Knowledge(folder / "knowledge.db").pages("engines building", 1) == ["Babbage"]
    loaded = datasets.load_dataset(str(folder), "titles")["train"]
    assert loaded[1] == {"title": "Babbage", "words": 4}


def test_folder_of_texts_and_tables_is_read(tmp_path):
    folder = tmp_path / "in"
    jsonl(folder / "b" / "rows.jsonl", ROWS[:1])
    (folder / "Grace Hopper.txt").write_text("Grace wrote a compiler.")
    (folder / "St. Ives.md").write_text("# A town")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / ".hidden").write_text("no")
    out = KnowledgeFile(tmp_path / "out", [str(folder)]).build().parent
    assert dict(content(out)) == {
        "Ada": "Ada was a mathematician.",
        "Grace Hopper": "Grace wrote a compiler.",
        "St. Ives": "# A town",
    }
    assert manifest(out)["dropped"] == {"file of an unsupported type": 1}


def test_input_without_pages_keeps_the_existing_file(tmp_path):
    path = jsonl(tmp_path / "wild.jsonl", WILD)
    out = KnowledgeFile(tmp_path / "out", [path], source="wildhallucinations").build().parent
    before = {p: p.read_bytes() for p in out.iterdir()}
    options = {"source": "wildhallucinations", "category": "sprots"}
    with pytest.raises(UserError, match="has no page of 'sprots'"):
        KnowledgeFile(out, [path], overwrite=True, **options).build()
    (tmp_path / "x.docx").write_text("x")
    with pytest.raises(UserError, match=r"no page left .* unsupported type"):
        KnowledgeFile(out, [str(tmp_path / "x.docx")], overwrite=True).build()
    assert {p: p.read_bytes() for p in before} == before


def test_sqlite_source_builds_only_the_index(tmp_path):
    path = tmp_path / "enwiki.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
        marked = f"<s>Ada was a mathe{SEPARATOR}matician.</s>"
        rows = [("Ada", marked), ("Empty", ""), ("Duck", "<s>A duck.</s>")]
        db.executemany("INSERT INTO documents VALUES (?, ?)", rows)
        db.execute("DELETE FROM documents WHERE title = 'Empty'")
        db.execute("INSERT INTO documents VALUES ('Blank', ' '), ('Null', NULL)")
    db.close()
    before = path.read_bytes()
    out = KnowledgeFile(tmp_path / "out", [str(path)], source="sqlite").build().parent
    assert path.read_bytes() == before
    assert sorted(p.name for p in out.iterdir()) == [
        "README.md",
        "knowledge.fts.db",
        "manifest.json",
        "titles.jsonl",
    ]
    assert manifest(out)["dropped"] == {"page without text": 2}
    knowledge = Knowledge(path, index=out / "knowledge.fts.db")
    assert knowledge.pages("mathematicians") == ["Ada"]
    assert knowledge.pages("duck separator special s") == ["Duck"], "marks are not indexed"
    assert knowledge.text(*knowledge.pages("duck", 1)) == "A duck."
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO documents VALUES ('New', 'A page.')")
    db.close()
    with pytest.raises(UserError, match="not an index of"):
        Knowledge(path, index=out / "knowledge.fts.db")
    with pytest.raises(UserError, match="expects one file"):
        KnowledgeFile(tmp_path / "x", [str(path), str(path)], source="sqlite").build()


WILD = [
    {
        "entity": "Zorb",
        "perplexity": 3.5,
        "category": "sports",
        "wiki": 1,
        "info": [
            {"status_code": 200, "text": "Zorbs roll.", "url": "a"},
            {"status_code": 404, "text": "Gone.", "url": "b"},
            {"status_code": 200, "text": "Zorbs bounce.", "url": "c"},
        ],
    },
    {"entity": "Nix", "info": [{"status_code": 200, "text": " ", "url": "d"}], "category": "x"},
    {"entity": "Zorb", "info": [{"status_code": 200, "text": "Again.", "url": "e"}]},
]


def test_wildhallucinations_gives_pages_and_topics(tmp_path):
    path = jsonl(tmp_path / "wild.jsonl", WILD)
    out = KnowledgeFile(tmp_path / "out", [path], source="wildhallucinations").build().parent
    assert content(out) == [("Zorb", "Zorbs roll.\n\nZorbs bounce.")]
    topics = [json.loads(line) for line in (out / "topics.jsonl").read_text().splitlines()]
    assert topics == [
        {"topic": "Zorb", "group": "sports", "wiki": 1, "perplexity": 3.5, "pages": 2}
    ]
    assert manifest(out)["dropped"] == {
        "entity without a fetched web page": 1,
        "page whose title another page has": 1,
        "web page that was not fetched or is empty": 2,
    }
    assert datasets.load_dataset(str(out), "topics")["test"].num_rows == 1


def test_topics_of_wikipedia_have_wiki_1(tmp_path):
    rows = [*WILD, {**WILD[0], "entity": "Ode", "wiki": 0}]
    options = {"source": "wildhallucinations", "in_wikipedia": True}
    out = KnowledgeFile(tmp_path / "out", [jsonl(tmp_path / "w.jsonl", rows)], **options).build()
    topics = (out.parent / "topics.jsonl").read_text().splitlines()
    assert [json.loads(line)["topic"] for line in topics] == ["Zorb"]
    assert manifest(out.parent)["dropped"]["entity that is not in Wikipedia"] == 1


def answer(text, *claims):
    return {"answer_string": text, "claims": [*claims]}


def judged(text, correctness, evidence):
    more = {"support": "Complete", "evidence": evidence}
    return {"claim_string": text, "correctness": correctness, **more}


EXPERT = [
    {
        "question": "Why is the sky blue?",
        "metadata": {"field": "Physics"},
        "answers": {
            "gpt4": answer(
                "It scatters. It is water.",
                judged("It scatters.", "Probably correct", ["Light scatters.", "http://x.org"]),
                judged("It is water.", "Definitely incorrect", ["Light scatters.", "No water."]),
                judged("Perhaps.", "Unsure", None),
                judged(" ", None, []),
            ),
            "bing": answer("", judged("x", None, [])),
        },
    },
    {"question": "Empty?", "answers": {"gpt4": answer("Yes.")}},
]


def test_expertqa_gives_evidence_as_pages_and_judged_answers(tmp_path):
    path = jsonl(tmp_path / "expert.jsonl", EXPERT)
    out = KnowledgeFile(tmp_path / "out", [path], source="expertqa").build().parent
    assert content(out) == [("Why is the sky blue?", "Light scatters.\n\nNo water.")]
    first, second = read_records(out / "documents.jsonl", Document)
    assert (first.topic, first.generator, first.field) == (
        "Why is the sky blue?",
        "gpt4",
        "Physics",
    )
    assert [(c.text, c.label, c.contexts, c.sentence) for c in first.claims] == [
        ("It scatters.", "S", ["e0"], 0),
        ("It is water.", "NS", ["e0", "e1"], 1),
        ("Perhaps.", None, [], 2),
    ]
    assert [p.text for p in first.passages] == ["Light scatters.", "No water."]
    assert second.claims == []
    assert manifest(out)["dropped"] == {
        "answer without text": 1,
        "claim without text": 1,
        "question without evidence": 1,
    }
    assert datasets.load_dataset(str(out), "documents")["test"].num_rows == 2


def test_supported_claims_of_labelled_texts_are_the_page_of_their_topic(tmp_path):
    def text(topic, *claims):
        claim_rows = [
            {"id": f"c{n}", "text": t, "label": label} for n, (t, label) in enumerate(claims)
        ]
        return {"id": topic, "topic": topic, "text": "…", "claims": claim_rows}

    first = [text("Ada", ("Ada sang.", "S"), ("Ada flew.", "NS")), text("Bob", ("Bob swam.", "NS"))]
    other = [text("Ada", ("Ada sang.", "S"), ("Ada wrote.", "S"), ("Ada is.", None))]
    paths = [jsonl(tmp_path / f"{n}.jsonl", rows) for n, rows in enumerate((first, other))]
    out = KnowledgeFile(tmp_path / "out", paths, source="labelled").build().parent
    passages = Knowledge(out / "knowledge.db", words=None).passages("Ada")
    assert [p.text for p in passages] == ["Ada sang.", "Ada wrote."]
    assert manifest(out)["dropped"] == {"topic without a supported claim": 1}


PAGE = (
    "<page><title>{}</title><ns>{}</ns>{}<revision><model>{}</model><text>{}</text></revision>"
    "</page>"
)
DUMP = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/"><siteinfo/>'
    + PAGE.format("Ada", 0, "", "wikitext", "'''Ada''' met [[Charles Babbage|Babbage]].{{x}}")
    + PAGE.format(
        "Lake", 0, "", "wikitext", "It holds 10&lt;sup&gt;6&lt;/sup&gt; m&lt;sup&gt;3&lt;/sup&gt;."
    )
    + PAGE.format("Ada King", 0, '<redirect title="Ada"/>', "wikitext", "#REDIRECT [[Ada]]")
    + PAGE.format("Talk:Ada", 1, "", "wikitext", "Talk")
    + PAGE.format("Style", 0, "", "css", "a {}")
    + PAGE.format("Bare", 0, "", "wikitext", "{{infobox}}")
    + "</mediawiki>"
)


@pytest.mark.parametrize("name", ["wiki.xml", "wiki.xml-p1p9.bz2"])
def test_a_dump_is_read_as_plain_text_with_redirects(tmp_path, name):
    pytest.importorskip("mwparserfromhell", reason="only dumps need mwparserfromhell")
    path = tmp_path / name
    path.write_bytes(bz2.compress(DUMP.encode()) if name.endswith("bz2") else DUMP.encode())
    out = KnowledgeFile(tmp_path / "out", [str(path)]).build().parent
    assert content(out) == [("Ada", "Ada met Babbage."), ("Lake", "It holds 10^6 m³.")]
    assert manifest(out)["dropped"] == {
        "page of another namespace": 1,
        "page that is not wikitext": 1,
        "page without text": 1,
    }
    assert manifest(out)["config"]["database"]["redirects"] == 1
    assert Knowledge(out / "knowledge.db").resolve("Ada King") == "Ada"


@pytest.mark.parametrize(
    "text", ["{{hndis|Fry, Jo}}", "{{Place name disambiguation}}", "A\n__DISAMBIG__", "{{dab}}"]
)
def test_disambiguation_pages_of_a_dump_are_excluded_and_counted(tmp_path, text):
    pytest.importorskip("mwparserfromhell", reason="only dumps need mwparserfromhell")
    pages = [
        PAGE.format("Jo Fry", 0, "", "wikitext", f"Jo Fry (poet) {text}"),
        PAGE.format("Jo", 0, '<redirect title="Jo Fry"/>', "wikitext", "#REDIRECT [[Jo Fry]]"),
        PAGE.format(
            "Bo", 0, '<redirect title="Cast"/>', "wikitext", "#REDIRECT [[Cast#Bo Day|x]] {{R}}"
        ),
        PAGE.format(
            "Cast", 0, "", "wikitext", "All.{{disambiguation needed}}\n== Bo Day ==\nA vet."
        ),
    ]
    (tmp_path / "wiki.xml").write_text(f"<mediawiki>{''.join(pages)}</mediawiki>")
    out = KnowledgeFile(tmp_path / "out", [str(tmp_path / "wiki.xml")]).build().parent
    assert manifest(out)["dropped"] == {"disambiguation page": 1}
    knowledge = Knowledge(out / "knowledge.db")
    assert list(knowledge) == ["Cast"]
    assert [knowledge.resolve(title) for title in ("Jo Fry", "Jo", "Bo")] == [
        None,
        None,
        "Cast#Bo Day",
    ]
    assert knowledge.text("Bo") == "A vet."


def test_workers_give_the_same_bytes(tmp_path):
    pytest.importorskip("mwparserfromhell", reason="only dumps need mwparserfromhell")
    (tmp_path / "wiki.xml").write_text(DUMP)
    paths = [str(tmp_path / "wiki.xml")]
    first = KnowledgeFile(tmp_path / "a", paths).build().parent
    two = KnowledgeFile(tmp_path / "b", paths, workers=2).build().parent
    assert (first / "knowledge.db").read_bytes() == (two / "knowledge.db").read_bytes()
    assert (first / "manifest.json").read_bytes() == (two / "manifest.json").read_bytes()


def test_wikitext_is_reduced_to_prose():
    pytest.importorskip("mwparserfromhell", reason="only dumps need mwparserfromhell")
    from data_builders.published.knowledge.wikitext import plain_text

    text = (
        "{{Infobox|a=1}}'''Ada''' ({{IPA|x}}; 1815) was ''here''.<ref>No</ref>\n"
        "[[File:A.jpg|thumb|No]]\n{|\n| No\n|}\nIt is {{convert|5|km|mi}} "
        "&amp; [http://x.org far].\n"
        "== See also ==\n* [[No]]\n=== No ===\nNo\n== Life ==\n[[CSI: Miami]] [[Category:No]]"
    )
    assert plain_text(text)[0] == "Ada (1815) was here.\n\nIt is 5 km & far.\n\nLife\n\nCSI: Miami"


def test_killed_build_resumes_to_the_same_bytes(tmp_path):
    rows = [{"title": f"Page {n}", "text": f"word{n % 97} " * 60} for n in range(9000)]
    path = jsonl(tmp_path / "rows.jsonl", [*rows, *ROWS])
    whole = KnowledgeFile(tmp_path / "whole", [path]).build().parent
    out = tmp_path / "out"
    command = [sys.executable, "-m", "data_builders", "knowledge"]
    command += ["--input", f"[{path}]", "--output", str(out)]
    partial, went_on = out / ".knowledge.partial.db", 0
    for delay in (0.0, 0.1, 0.25, 0.4):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        while process.poll() is None and not partial.exists():
            time.sleep(0.005)
        time.sleep(delay)
        went_on += process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert went_on, "no build was killed in the middle"
    KnowledgeFile(out, [path]).build()
    for file in whole.iterdir():
        assert file.read_bytes() == (out / file.name).read_bytes(), file.name
    assert sorted(p.name for p in out.iterdir()) == sorted(p.name for p in whole.iterdir())
