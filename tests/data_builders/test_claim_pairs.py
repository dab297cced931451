"""Distant pairs: the rules say what they may say, and nothing more."""

import json
import re

import pytest

from data_builders.published.claim_pairs import ClaimPairs, content
from records import Claim, Document, RelationPair, UnliPair, read_records, write_jsonl


def document(index):
    name = f"Ann Lee{index}"
    text = f"{name} was a painter from Norway. She won the Silver Brush in 1901."
    claims = [f"{name} was a painter.", f"{name} was from Norway.", "She won the Silver Brush."]
    return Document(
        id=str(index),
        topic=name,
        text=text,
        claims=[Claim(id=f"c{i}", text=t) for i, t in enumerate(claims)],
    )


@pytest.fixture
def build(tmp_path):
    write_jsonl(tmp_path / "in.jsonl", [document(i) for i in range(40)])

    def run(name):
        builder = ClaimPairs(output=tmp_path / name, documents=[str(tmp_path / "in.jsonl")])
        manifest = json.loads(builder.build().read_text("utf-8"))
        assert set(manifest["files"]) == set(builder.writes())
        return tmp_path / name

    return run


def test_rules_give_their_labels(build):
    folder = build("out")
    rows = read_records(folder / "relation_train.jsonl", RelationPair)
    by_rule = {}
    for row in rows:
        by_rule.setdefault(row.source, []).append(row)
    assert set(by_rule) == {
        "distant/from_sentence",
        "distant/to_bleached",
        "distant/from_bleached",
        "distant/of_one_text",
    }
    for row in by_rule["distant/from_sentence"]:
        assert row.label == "entailment"
        for word in ("painter", "norway", "brush"):
            assert word not in content(row.hypothesis) or word in content(row.premise)
    assert {row.label for row in by_rule["distant/of_one_text"]} == {"neutral"}
    assert {row.label for row in by_rule["distant/from_bleached"]} == {"neutral"}
    labels = {row.source: row.label for row in read_records(folder / "unli_train.jsonl", UnliPair)}
    assert labels["distant/from_bleached"] == 0.03
    assert "distant/of_one_text" not in labels


def test_topic_is_in_one_split(build):
    folder = build("out")
    names = [
        set(re.findall(r"Lee\d+", (folder / f"relation_{split}.jsonl").read_text()))
        for split in ("train", "dev", "test")
    ]

    assert not names[0] & names[1]
    assert not names[0] & names[2]
