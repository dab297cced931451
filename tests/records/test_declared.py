"""Formats that a user declares in YAML, and the formats of published pair sets."""

import json

import pytest

from records import BadInput, Document, RelationPair, UserError, read_records

DECLARED = """
museum_claims:
  requires: [statement, page, verdict]
  claim: statement
  evidence: page.text
  label: "verdict | {ok: supported, wrong: not_supported}"
  unit: museum
museum_texts:
  requires: [museum, checks]
  topic: museum
  claims:
    each: {check: checks, part: check.parts}
    text: part.says
    label: part.verdict
    sentence: "#check"
    source: check.sentence
    evidence: part.seen
"""
PAGE = "The Orren Museum opened in 1950."
ROW = {
    "statement": "It opened in 1950.",
    "page": {"text": PAGE},
    "verdict": "ok",
    "museum": "Orren",
}


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def declared(tmp_path):
    path = tmp_path / "museums.yaml"
    path.write_text(DECLARED)
    return str(path)


def test_declared_claims_are_documents_and_pairs(tmp_path, declared):
    path = write(tmp_path / "a.jsonl", ROW, ROW | {"verdict": "wrong"})
    documents = read_records(path, Document, format=declared)
    assert [d.claims[0].label for d in documents] == ["S", "NS"]
    assert [p.text for p in documents[0].passages] == [PAGE]
    pairs = read_records(path, RelationPair, format=declared)
    assert [(p.premise, p.label, p.group) for p in pairs] == [
        (PAGE, "entailment", "Orren"),
        (PAGE, "not_entailment", "Orren"),
    ]


def test_a_declared_text_has_the_claims_of_nested_lists(tmp_path, declared):
    parts = [{"says": "It opened in 1950.", "verdict": "supported", "seen": [PAGE, "It is old."]}]
    checks = [
        {"sentence": "It opened in 1950.", "parts": parts},
        {"sentence": "It is big.", "parts": [{"says": "It is big.", "verdict": "refuted"}]},
    ]
    path = write(tmp_path / "a.jsonl", {"museum": "Orren", "checks": checks})
    (document,) = read_records(path, Document, format=declared)
    assert document.text == "It opened in 1950. It is big."
    assert [(c.label, c.sentence, c.source) for c in document.claims] == [
        ("S", 0, "It opened in 1950."),
        ("NS", 1, "It is big."),
    ]
    assert [len(c.contexts or ()) for c in document.claims] == [2, 0]


def test_a_file_without_the_declared_columns_is_read_as_before(tmp_path, declared):
    path = write(tmp_path / "a.jsonl", {"doc": PAGE, "claim": "It opened.", "label": 1})
    (document,) = read_records(path, Document, format=declared)
    assert document.claims[0].label == "S"


def test_a_format_is_decided_once_by_the_first_rows(tmp_path):
    rows = [
        {"doc": PAGE, "claim": "It opened.", "label": 1},
        {"question": "?", "answer": "It did."},
    ]
    with pytest.raises(BadInput, match=r"a\.jsonl:2: claim: field required"):
        read_records(write(tmp_path / "a.jsonl", *rows), Document)


def test_a_named_format_applies_to_any_columns(tmp_path):
    row = {"claim": "It opened.", "evidence": PAGE, "label": "SUPPORTS", "meta": None, "page": "x"}
    (document,) = read_records(write(tmp_path / "a.jsonl", row), Document, format="vitaminc")
    assert document.unit == "x"
    with pytest.raises(UserError, match=r"wicce: no such format; expected a YAML file or one of"):
        read_records(tmp_path / "a.jsonl", Document, format="wicce")


PUBLISHED = {
    "FEVER": (
        {"id": 1, "claim": "It opened.", "evidence": [PAGE], "label": "REFUTES"},
        "contradiction",
    ),
    "Sufficient Facts": (
        {"claim": "It opened.", "evidence": [["Orren", PAGE]], "label_after": "NOT ENOUGH"},
        "neutral",
    ),
    "CG2C": ({"text_a": PAGE, "text_b": ["It opened."], "orig_label": 0}, "not_entailment"),
    "BEGIN": (
        {"knowledge": PAGE, "message": "?", "response": "It opened.",
         "begin_label": "Fully attributable", "data_source": "wow"},
        "entailment",
    ),
    "FM2": (
        {"id": "a", "text": "It opened.", "label": "SUPPORTS", "wikipedia_page": "Orren",
         "gold_evidence": [{"section_header": "History", "text": PAGE}]},
        "entailment",
    ),
    "WikiBio GPT-3": (
        {"id": "a", "topic": "Orren", "sentence": "It opened.", "reference": PAGE,
         "annotation": "major_inaccurate"},
        "not_entailment",
    ),
    "SummEdits": ({"id": "a", "doc": PAGE, "summary": "It opened.", "label": 1}, "entailment"),
    "LingNLI": (
        {"premise": PAGE, "hypothesis": "It opened.", "label": "neutral", "protocol": "x"},
        "neutral",
    ),
}  # fmt: skip


def test_lists_of_evidence_in_a_csv_are_read_and_tokenised_text_is_written_as_text(tmp_path):
    path = tmp_path / "fever.csv"
    evidence = '"[\'Ann -LRB- a singer -RRB- sang .\', ""It \'s hers .""]"'
    path.write_text(f"id,label,claim,evidence\n1,SUPPORTS,Ann sang .,{evidence}\n2,REFUTES,Bo,[]\n")
    documents = read_records(path, Document)
    assert documents[0].text == "Ann sang."
    assert documents[0].passages[0].text == "Ann (a singer) sang.\nIt's hers."
    assert documents[1].passages == []


@pytest.mark.parametrize(
    ("sentence", "named"),
    [
        ("He was born in Rome.", "Ann Lee was born in Rome."),
        ("In 1901, her play won.", "In 1901, Ann Lee's play won."),
        ("Lee said she was ill.", "Lee said she was ill."),
    ],
)
@pytest.mark.parametrize("fields", [("sentence", "topic", "reference"),
                                    ("claim", "original_entity", "evidence")])  # fmt: skip
def test_sentence_of_a_biography_gets_the_name_of_its_person(tmp_path, fields, sentence, named):
    row = dict(zip(fields, (sentence, "Ann Lee", PAGE), strict=True))
    path = write(tmp_path / "a.jsonl", row | {"annotation": "accurate", "label": "SUPPORTS"})
    (document,) = read_records(path, Document)
    assert (document.text, document.claims[0].label, document.unit) == (named, "S", "Ann Lee")


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_row_of_a_published_pair_set_is_a_pair_and_a_document(tmp_path, name):
    row, label = PUBLISHED[name]
    path = write(tmp_path / "a.jsonl", row)
    (pair,) = read_records(path, RelationPair)
    assert (pair.premise, pair.hypothesis, pair.label) == (PAGE, "It opened.", label)
    (document,) = read_records(path, Document)
    assert [passage.text for passage in document.passages] == [PAGE]
