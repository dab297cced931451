"""``conflicts``: who supports what, and which rows are drawn."""

import json
from collections import Counter

import pyarrow
import pyarrow.parquet
import pytest

from data_builders.published.conflicts.conflicts import Conflicts
from records import Document, RelationPair, read_records, write_jsonl

CATEGORIES = ("default", "misinformation_conflict", "temporal_conflict", "semantic_conflict")


def evidence_rows(number):
    """The Hub's table: four rows a claim."""
    return [
        {
            "id": str(index),
            "subject": f"Ann Lee{index}",
            "claim": f"Ann Lee{index} studied {'law' if category == 'default' else 'art'}.",
            "evidence": f"{category} evidence of {index}",
            "category": category,
        }
        for index in range(number)
        for category in CATEGORIES
    ]


def built(folder, rows, **options):
    path = folder.parent / f"{folder.name}.jsonl"
    write_jsonl(path, rows)
    builder = Conflicts(folder, [str(path)], **options)
    manifest = json.loads(builder.build().read_text())
    assert set(manifest["files"]) == set(builder.writes())
    return manifest


def data_bytes(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}


def test_claim_has_a_supporting_and_a_conflicting_context(tmp_path):
    built(tmp_path / "out", evidence_rows(10), number=10, prior=0.8)
    documents = read_records(tmp_path / "out" / "documents.jsonl", Document)
    assert len(documents) == 10
    for document in documents:
        (claim,) = document.claims
        name = document.topic.removeprefix("Ann Lee")
        assert claim.text == f"Ann Lee{name} studied law."
        assert (claim.label, claim.contexts) == ("S", ["c_0", "c_1"])
        assert [p.id for p in document.passages] == ["c_0", "c_1"]
        assert [p.text for p in document.passages] == [
            f"default evidence of {name}",
            f"misinformation_conflict evidence of {name}",
        ]
        assert {p.prior for p in document.passages} == {0.8}
    pairs = read_records(tmp_path / "out" / "relation.jsonl", RelationPair)
    assert Counter(p.label for p in pairs) == {"entailment": 10, "contradiction": 10}
    assert all((p.label == "entailment") == p.premise.startswith("default") for p in pairs)


@pytest.mark.parametrize("kind", ["temporal", "semantic"])
def test_kind_selects_the_conflicting_evidence(tmp_path, kind):
    built(tmp_path / "out", evidence_rows(4), number=4, kind=kind)
    documents = read_records(tmp_path / "out" / "documents.jsonl", Document)
    assert all(d.passages[1].text.startswith(f"{kind}_conflict") for d in documents)


def test_shuffled_rows_and_shards_give_the_same_sample(tmp_path):
    rows = evidence_rows(60)
    write_jsonl(tmp_path / "a.jsonl", rows[:100])
    table = pyarrow.Table.from_pylist(rows[100:])
    pyarrow.parquet.write_table(table, tmp_path / "b.parquet")
    write_jsonl(tmp_path / "c.jsonl", rows[:100][::-1])
    left = Conflicts(
        tmp_path / "one", [str(tmp_path / "a.jsonl"), str(tmp_path / "b.parquet")], number=7
    )
    two = Conflicts(
        tmp_path / "two", [str(tmp_path / "b.parquet"), str(tmp_path / "c.jsonl")], number=7
    )
    left.build()
    two.build()

    assert data_bytes(tmp_path / "one") == data_bytes(tmp_path / "two")
    built(tmp_path / "three", rows, number=7, seed=1)
    assert data_bytes(tmp_path / "one") != data_bytes(tmp_path / "three")


def test_incomplete_claims_are_replaced_by_complete_ones(tmp_path):
    rows = evidence_rows(400)
    whole = [row for row in rows if int(row["id"]) % 20 == 0]
    lacking = [row for row in rows if row["category"] == "default" or row in whole]
    built(tmp_path / "out", lacking, number=5)
    built(tmp_path / "whole", whole, number=5)

    assert len(read_records(tmp_path / "out" / "documents.jsonl", Document)) == 5
    assert data_bytes(tmp_path / "out") == data_bytes(tmp_path / "whole")
    manifest = built(tmp_path / "all", lacking, number=50)
    assert manifest["dropped"]["requested claim that is not available"] == 30


def test_skipped_rows_are_counted_by_reason(tmp_path):
    rows = evidence_rows(5)
    rows[0]["evidence"] = ""
    rows[4]["claim"] = None
    rows[8]["subject"] = ""
    manifest = built(tmp_path / "out", rows, number=1)

    assert manifest["dropped"] == {
        "evidence of another kind of conflict": 10,
        "row of a claim that was not drawn": 5,
        "row without claim": 1,
        "row without evidence": 1,
        "row without id or subject": 1,
    }
