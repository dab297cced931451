"""``hard_pairs``: one change a claim, of the premise's own words, and equal overlap."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from components.overlap import covered_share, stem_weights
from data_builders.evenness import overlap_auroc
from data_builders.written.hard_pairs import (
    HardPairs,
    change_number,
    change_roles,
    change_value,
    negate_claim,
)
from records import RelationPair, read_records, write_jsonl

PREMISE = (
    "Ann Lee moved from Paris to Rome in 1921. She beat Bo Hill 3 to 2 in 1934, and was not sure. "
    "In Rome, she worked for Cy Park. Some 15 people were there, and she never left."
)
CLAIMS = [
    "Ann Lee moved to Rome in 1921.",
    "Ann Lee was in Rome in 1921.",
    "Ann Lee beat Bo Hill.",
    "She worked for Cy Park.",
]


def joined(pieces):
    return pieces and "".join(text for text, _ in pieces)


def test_number_is_replaced_by_one_of_its_kind():
    rng = random.Random(0)
    names = {joined(change_number("She moved in 1921.", PREMISE, rng)) for _ in range(20)}
    assert names == {"She moved in 1934."}
    names = {joined(change_number("There were 15 people.", PREMISE, rng)) for _ in range(40)}
    assert names == {"There were 3 people.", "There were 2 people."}
    assert change_number("In the 15th century.", PREMISE, rng) is None
    assert change_number("In 1921 and 1934.", PREMISE, rng) is None
    assert change_number("It was long ago.", PREMISE, rng) is None


@pytest.mark.parametrize(
    "claim",
    [
        "At least 15 people were there.",  # and at least 2, too
        "She moved before 1921.",
        "She moved in 1921–22.",
        "She moved [15], as others did [3, 15].",  # notes, of which the claim says nothing
    ],
)
def test_number_that_may_be_another_is_unchanged(claim):
    assert change_number(claim, PREMISE, random.Random(0)) is None


def test_day_is_replaced_by_a_day():
    rng = random.Random(0)
    premise = "On 7 May 1921 and 30 June 1921 some 66 came, 00 left, and 12 stayed."
    for claim in ("She moved on 8 May.", "She moved on May 8, 1921."):
        names = {joined(change_number(claim, premise, rng)) for _ in range(40)}
        assert names == {claim.replace("8", day) for day in ("7", "30", "12")}


@pytest.mark.parametrize(
    ("claim", "denied"),
    [
        ("Ann Lee was in Rome.", "Ann Lee was not in Rome."),
        ("She moved to Rome, and was happy.", "She moved to Rome, and was not happy."),
        ("Some people were there.", None),  # others were not
        ("She may have been in Rome.", None),
    ],
)
def test_negated_claims_contradict(claim, denied):
    # Seed 1 says "not".
    assert joined(negate_claim(claim, PREMISE, random.Random(1))) == denied


def test_name_is_replaced_by_one_after_the_same_preposition():
    assert joined(change_value("She came from Oslo.", PREMISE, random.Random(0))) == (
        "She came from Paris."
    )
    assert change_value("She sang with Di Ray.", PREMISE, random.Random(0)) is None
    # A weekday is no name, and what follows "Rome's" is not told of Paris.
    assert change_value("She came from Oslo.", "From Monday on.", random.Random(0)) is None
    assert change_value("She came from Oslo's port.", PREMISE, random.Random(0)) is None
    premise = "They came from the Parkers' house."
    assert joined(change_value("She came from Oslo.", premise, random.Random(0))) == (
        "She came from Parkers."
    )


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ("Ann Lee beat Bo Hill.", "Bo Hill beat Ann Lee."),
        ("In May, Ann Lee beat Bo Hill.", None),  # which of three names, the seed says
        ("She went from Oslo to Rome.", "She went from Rome to Oslo."),
        ("Ann Lee met Bo Hill.", None),
        ("Ann Lee and Bo Hill won.", None),
        ("Ann Lee beat Ann Hill.", None),
        ("Ann W. Lee won.", None),  # one name
        ("Ann Lee is Cuban.", None),  # as true the other way round
        # no name
        ("Rome beat Bo Hill.", "Bo Hill beat Rome."),  # the premise has it inside a sentence
    ],
)
def test_names_are_swapped_if_their_order_matters(claim, changed):
    result = joined(change_roles(claim, PREMISE, random.Random(0)))
    if claim.startswith("In May"):
        assert Counter(result) == Counter(claim)
        assert result != claim
    else:
        assert result == changed


def test_rows_without_documents_and_claims_that_deny(tmp_path):
    rows = [
        {"premise": PREMISE, "hypothesis": claim, "label": "entailment"}
        for claim in (*CLAIMS, "Ann Lee was not in Rome in 1934.")
    ]
    write_jsonl(tmp_path / "in.jsonl", rows)
    HardPairs(tmp_path / "out", [str(tmp_path / "in.jsonl")]).build()
    relation_pairs = read_records(tmp_path / "out" / "relation_train.jsonl", RelationPair)
    assert relation_pairs
    assert not any("was not in Rome in 1934" in pair.hypothesis for pair in relation_pairs)
    assert "documents" not in relation_pairs[0].model_dump()
    dropped = json.loads((tmp_path / "out" / "manifest.json").read_text())["dropped"]
    left = len(rows) - sum(pair.source == "hard/whole" for pair in relation_pairs)
    assert dropped["pair with a negated claim"] == 1
    assert sum(dropped.values()) == left, "each pair once"


def build(tmp_path, name="out", **options):
    entailed = {"premise": PREMISE, "label": "entailment", "group": "g", "documents": ["d"]}
    rows = [entailed | {"hypothesis": claim} for claim in CLAIMS]
    rows.append({"premise": PREMISE, "hypothesis": "Bo won.", "label": "contradiction"})
    write_jsonl(tmp_path / "in.jsonl", rows)
    HardPairs(tmp_path / name, [str(tmp_path / "in.jsonl")], **options).build()
    folder = tmp_path / name
    relation_pairs = read_records(folder / "relation_train.jsonl", RelationPair)
    return relation_pairs, json.loads((folder / "manifest.json").read_text())


def test_the_dataset(tmp_path):
    result, manifest = build(tmp_path, margin=0.25)
    whole, changed = result[::2], result[1::2]
    assert {row.source for row in whole} == {"hard/whole"}
    assert {row.hypothesis for row in whole} <= set(CLAIMS)
    for before, after in zip(whole, changed, strict=True):
        assert before.premise == after.premise == PREMISE
        assert before.group == after.group == "g"
        assert before.documents == after.documents == ["d"]
        assert before.label == "entailment"
        denied = after.source == "hard/negation"
        assert after.label == ("contradiction" if denied else "not_entailment")
        weight = stem_weights([PREMISE])
        shares = [covered_share(row.hypothesis, [PREMISE], weight) for row in (before, after)]
        assert abs(shares[0] - shares[1]) <= 0.25
    assert manifest["dropped"]["pair that is not entailed"] == 1
    assert manifest["config"]["overlap_auroc"] == overlap_auroc(result)
    assert build(tmp_path, "again", margin=0.25)[0] == result
    assert (tmp_path / "out/manifest.json").read_bytes() == (
        tmp_path / "again/manifest.json"
    ).read_bytes()
    rows = [json.loads(line) for line in (tmp_path / "in.jsonl").read_text().splitlines()]
    write_jsonl(tmp_path / "twice.jsonl", rows * 2)
    twice = HardPairs(tmp_path / "twice", [str(tmp_path / "twice.jsonl")], margin=0.25).build()
    assert read_records(twice.parent / "relation_train.jsonl", RelationPair) == result
    left_out = json.loads(twice.read_text())["dropped"]
    assert left_out["duplicate pair"] == len(CLAIMS)
    more, _ = build(tmp_path, "more", margin=1.0, per_pair=3)
    assert Counter(row.source for row in more)["hard/whole"] == 3, (
        "of the fourth nothing can be changed"
    )
    assert len(more) > 6
