"""What a record refuses, and what keeps records together in a split."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from records import (
    Annotation,
    Claim,
    Document,
    Generation,
    LssExample,
    Preference,
    RelationPair,
    UnjudgedRelationPair,
    UnliPair,
    Verdict,
    read_records,
    write_jsonl,
)
from records.types import group_of

PAIR = {"premise": "A dog runs.", "hypothesis": "An animal moves."}
CLAIMS = [Claim(id="c0", text="one"), Claim(id="c0", text="two")]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (UnliPair, PAIR | {"label": 1.01}),
        (RelationPair, PAIR | {"label": "entails"}),
        (Annotation, {"lss": "dog", "rating": 0}),
        (LssExample, {"reference": "r", "claim": "c", "annotations": []}),
        (Document, {"id": "d", "topic": "t", "text": "", "claims": CLAIMS}),
        (Verdict, {"claim": "c", "assessor": "a", "label": "true"}),
    ],
)
def test_a_field_out_of_its_range_is_refused(kind, fields):
    with pytest.raises(ValidationError):
        kind(**fields)


@pytest.mark.parametrize(
    ("record", "group"),
    [
        (UnliPair(**PAIR, label=1), "A dog runs."),
        (UnliPair(**PAIR, label=1, group="page 3"), "page 3"),
        (RelationPair(**PAIR, label="neutral", group=3), "3"),
        (LssExample(reference="r", claim="c", annotations=[Annotation(lss="")]), "r"),
        (Generation(topic="Ann", text="x"), "Ann"),
        (
            Preference(
                prompt="p", chosen="a", rejected="b", score_chosen=1, score_rejected=0, topic="Ann"
            ),
            "Ann",
        ),
    ],
)
def test_group_of_a_record_is_its_group_premise_reference_or_topic(record, group):
    assert group_of(record) == group


@pytest.mark.parametrize(
    ("label", "soft"),
    [
        ({"entailment": 0.7, "neutral": 0.3}, (0.7, 0.3, 0.0)),
        ([0.2, 0.2, 0.6], (0.2, 0.2, 0.6)),
        ({"entailment": 0.7, "neutral": 0.3, "contradiction": None}, (0.7, 0.3, 0.0)),
    ],
)
def test_a_label_of_probabilities(tmp_path, label, soft):
    row = {"premise": "a", "hypothesis": "b", "label": label}
    write_jsonl(tmp_path / "a.jsonl", [row])
    (record,) = read_records(tmp_path / "a.jsonl", RelationPair)
    assert record.soft == pytest.approx(soft)
    assert record.label == ("entailment" if soft[0] > soft[2] else "contradiction")
    write_jsonl(tmp_path / "b.jsonl", [record])
    assert read_records(tmp_path / "b.jsonl", RelationPair) == [record]
    plain = RelationPair(premise="a", hypothesis="b", label="neutral")
    assert plain.soft is None
    assert "soft" not in plain.model_dump(exclude_none=True)


def test_soft_labels_must_agree_with_the_label():
    row = {"premise": "a", "hypothesis": "b", "label": "neutral"}
    assert RelationPair.model_validate(row | {"soft": [0.1, 0.9, 0.001]}).soft[1] < 0.9
    for soft, message in (
        ([0.7, 0.9, 0.1], "soft: expected probabilities"),
        ([0.6, 0.3, 0.1], "soft: 'neutral'"),
    ):
        with pytest.raises(ValidationError, match=message):
            RelationPair.model_validate(row | {"soft": soft})
        assert UnjudgedRelationPair.model_validate(row | {"soft": soft}).soft is None
