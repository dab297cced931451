"""XSum's rated summaries as LSS and documents, CNN/DailyMail's as claims; split by article."""

from __future__ import annotations

import csv
import json

import pytest

from data_builders.published.summaries import Summaries
from data_builders.splits import SPLITS
from eval.experiments.lss.lss_pairs import read_pairs
from records import Document, LssExample, read_records

ALL = (1, 0, 0)  # every article in train
MARKED = ["bbcid", "system", "summary", "hallucination_type", "hallucinated_span", "worker_id"]
JUDGED = ["bbcid", "system", "summary", "is_factual", "worker_id"]


def table(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def marks(bbcid, summary, *spans, system="S2S"):
    """One row a rater and span; a rater who marks nothing has a row with NULL."""
    return [
        [bbcid, system, summary, "extrinsic" if span else "NULL", span or "NULL", f"wid_{rater}"]
        for rater, rater_spans in enumerate(spans)
        for span in rater_spans or [None]
    ]


RATINGS = [
    # Two of three mark the number, one the town.
    *marks("1", r"the club\'s coach left paris in 2009.", ["2009"], ["in 2009", "paris"], []),
    *marks("2", "a man sold a car.", [], [], ["car"]),
    *marks("3", "a cat saw a cat.", ["cat"], [], []),
    *marks("4", "the dog ran.", ["the wolf"], ["dog"], ["dog"]),
    *marks("5", "no article.", [], [], []),
    *marks("6", "", [], [], []),
]
JUDGEMENTS = [
    ["1", "S2S", "the club's coach left paris in 2009.", "no", "wid_0"],
    ["1", "S2S", "the club's coach left paris in 2009.", "no", "wid_1"],
    ["1", "S2S", "the club's coach left paris in 2009.", "yes", "wid_2"],
    ["2", "S2S", "a man sold a car.", "yes", "wid_0"],
    ["2", "S2S", "a man sold a car.", "no", "wid_1"],
    ["9", "S2S", "unknown", "no", "wid_0"],
]
ARTICLES = [
    {"id": str(n), "document": f"Article {n}.", "summary": "Gold."} for n in (1, 2, 3, 4, 6, 8)
]


@pytest.fixture
def xsum(tmp_path):
    return {
        "hallucinations": table(tmp_path / "hallucination.csv", MARKED, RATINGS),
        "factuality": table(tmp_path / "factuality.csv", JUDGED, JUDGEMENTS),
        "xsum_articles": [jsonl(tmp_path / "xsum.jsonl", ARTICLES)],
    }


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def test_words_unmarked_by_a_majority_are_the_lss(tmp_path, xsum):
    folder = Summaries(tmp_path / "out", **xsum, shares=ALL).build().parent
    first, second = read_records(folder / "xsum/lss_train.jsonl", LssExample)
    assert first.claim == "the club's coach left paris in 2009."
    assert first.reference == "Article 1."
    assert first.annotations[0].lss == "the club's coach left paris in ."
    assert first.annotations[0].rating is None
    assert first.keep == [True, True, True, True, True, True, False, True]
    assert (first.group, first.system, first.raters) == ("1", "S2S", 3)
    assert (first.factual, second.factual) == (pytest.approx(1 / 3), 1 / 2)
    assert second.annotations[0].lss == second.claim == "a man sold a car."


def test_summaries_become_documents_with_their_article(tmp_path, xsum):
    folder = Summaries(tmp_path / "out", **xsum, shares=ALL).build().parent
    summary_documents = read_records(folder / "xsum/documents_train.jsonl", Document)
    labels = [[claim.label for claim in document.claims] for document in summary_documents]
    assert labels == [["NS"], ["S"], ["S"], ["NS"], []]
    assert [(document.model_extra or {}).get("factual") for document in summary_documents] == [
        False, None, None, None, None
    ]  # fmt: skip
    assert summary_documents[0].passages[0].text == "Article 1."
    assert summary_documents[0].claims[0].contexts == ["article"]


def test_drops_are_counted_by_reason(tmp_path, xsum):
    folder = Summaries(tmp_path / "out", **xsum, shares=ALL).build().parent
    assert manifest(folder)["dropped"] == {
        "LSS: span that is not in its summary": 1,
        "LSS: span that occurs several times in its summary": 1,
        "LSS: summary without words": 1,
        "factuality judgement of a summary that is not rated": 1,
        "summary whose article is not in xsum_articles": 1,
    }
    assert [entry["file"] for entry in manifest(folder)["inputs"]] == [
        "hallucination.csv",
        "factuality.csv",
        "xsum.jsonl",
    ]


def test_claim_pairs_are_judged_or_faithful_and_short(tmp_path, xsum, word_tokenizer):
    word_tokenizer(pairs=False).save_pretrained(tmp_path / "model")
    texts = {str(n): "Short." for n in range(1, 7)} | {"4": "long " * 512}
    articles = [{"id": name, "document": text} for name, text in texts.items()]
    xsum |= {"xsum_articles": [jsonl(tmp_path / "a.jsonl", articles)]}
    folder = Summaries(tmp_path / "out", **xsum, tokenizer=str(tmp_path / "model"), shares=ALL)
    rows = read_pairs(str(folder.build().parent / "xsum/claims_train.jsonl"), None)
    assert [row.factual for row in rows] == [pytest.approx(1 / 3), 1 / 2, None, 1.0]
    assert {row.generator for row in rows} == {"S2S"}
    assert manifest(tmp_path / "out")["dropped"]["XSum pair of more than 512 tokens"] == 1


NEWS = [
    {"id": f"n{n}", "article": f"Story {n}.", "highlights": f"One {n} .\nTwo {n} ."}
    for n in range(40)
]


def test_highlights_become_claims_and_articles_are_in_one_split(tmp_path):
    rows = [*NEWS, {"id": "e", "article": "", "highlights": "x"}]
    folder = Summaries(tmp_path / "out", cnndm=[jsonl(tmp_path / "c.jsonl", rows)]).build().parent
    topics = {
        split: [d.topic for d in read_records(folder / f"cnndm/documents_{split}.jsonl", Document)]
        for split in SPLITS
    }
    assert sorted(t for rater_spans in topics.values() for t in rater_spans) == sorted(
        r["id"] for r in NEWS
    )
    assert len(topics["train"]) > len(topics["dev"]) > 0
    (first, *_) = read_records(folder / "cnndm/documents_train.jsonl", Document)
    number = first.topic[1:]
    assert [c.text for c in first.claims] == [f"One {number} .", f"Two {number} ."]
    assert {c.label for c in first.claims} == {None}
    assert first.passages[0].text == f"Story {number}."
    lines = (folder / "cnndm/claims_train.jsonl").read_text().splitlines()
    assert len(lines) == 2 * len(topics["train"])
    assert json.loads(lines[0]) == {
        "id": f"cnndm-{first.topic}-c0",
        "reference": f"Story {number}.",
        "claim": f"One {number} .",
        "group": first.topic,
    }
    assert manifest(folder)["dropped"] == {"CNN/DailyMail row without an article or highlights": 1}
