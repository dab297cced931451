"""The files that AmbigBio's authors published, by rows of our own of the same form."""

import json

import pytest

from data_builders.topics import read_topics
from data_builders.written.ambigbio.shared_names import read_names
from records import BadInput, Document, RelationPair, UserError, iter_rows, read_records

NAMES = (
    "Tell me a bio of Ada Lee\t['Ada Lee']\r\n"
    "Tell me a bio of Nuala O'Hara\t['Nuala O\\'Hara']\n"
    'Tell me a bio of Bo "Ace" Ek\t[\'Bo "Ace" Ek\']\n'
    'Tell me a bio of Zoë Årud\t["Zoë Årud"]'  # no end of line
)
PAINTER, JUDGE = "Ada Lee (painter)", "Ada Lee (judge)"
DOCS = [
    {"id": "11", "title": PAINTER, "text": f"{PAINTER} Ada Lee painted.", "score": 0.7},
    {"id": "12", "title": JUDGE, "text": f"{JUDGE} Ada Lee judged in Rome."},
]


def atom(text, title):
    return {"atom": text, "is_supported": title is not None, "supporting_topic": title}


def test_questions_are_topics(tmp_path):
    path = tmp_path / "askh.jsonl"
    path.write_text('{"prompt": "Why did Rome fall?"}\n', encoding="utf-8")
    assert list(read_topics([str(path)])) == ["Why did Rome fall?"]


def test_names_have_no_header_and_none_is_lost(tmp_path):
    path = tmp_path / "AmbigBio.csv"
    path.write_text(NAMES, encoding="utf-8")
    names = ["Ada Lee", "Nuala O'Hara", 'Bo "Ace" Ek', "Zoë Årud"]
    assert [name.name for name in read_names(path, None)] == names
    assert list(read_topics([str(path)])) == names
    assert [number for number, _ in iter_rows(path)] == [1, 2, 3, 4]
    path.write_text(NAMES + "\nTell me a bio of Eva\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"AmbigBio\.csv:5: name: expected a prompt, a tab"):
        read_names(path, None)
    path.write_text(NAMES + "\nTell me a bio of Eva\t['Eva', 'Ida']\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r":5: name"):
        read_topics([str(path)])
    # A table with a header is read as ever.
    (tmp_path / "names.csv").write_text("name,group\nAda Lee,x\n")
    assert [name.group for name in read_names(tmp_path / "names.csv", None)] == ["x"]


def generations(tmp_path):
    data = [
        {"question": "Tell me a bio of Ada Lee", "output": "Ada Lee painted [1].", "docs": DOCS},
        {"question": "Tell me a bio of Bo Ek", "output": "", "docs": DOCS[:1]},
    ]
    path = tmp_path / "texts.json"
    path.write_text(json.dumps({"args": {"seed": 42}, "data": data}, indent=4))
    return path


def test_alce_s_generations_are_documents_with_their_passages(tmp_path):
    first, empty = read_records(generations(tmp_path), Document)
    assert (first.id, first.topic, first.text) == ("0", "Ada Lee", "Ada Lee painted [1].")
    assert [(p.id, p.title) for p in first.passages] == [("p0", PAINTER), ("p1", JUDGE)]
    assert (empty.id, empty.topic, empty.text) == ("1", "Bo Ek", "")
    (tmp_path / "none.json").write_text(json.dumps({"args": {}, "data": []}))
    with pytest.raises(UserError, match="empty"):
        read_records(tmp_path / "none.json", Document)


def test_d_factscore_s_output_has_a_row_a_text_abstentions_too(tmp_path):
    path = tmp_path / "texts_factscore_output.json"
    alone = [atom("Ada Lee painted.", PAINTER), atom("Ada Lee sang.", None)]
    grouped = [atom("Ada Lee sang.", None)]
    whole = {"score": 0.1, "decisions": [alone, None], "global_decisions": [grouped, None]}
    path.write_text(json.dumps(whole | {"num_groups": 1.0, "nan": 0.0}) + "\n")
    first, silent = read_records(path, Document)
    assert [(c.text, c.label) for c in first.claims] == [
        ("Ada Lee painted.", "S"),
        ("Ada Lee sang.", "NS"),
    ]
    assert first.text == "Ada Lee painted. Ada Lee sang."
    assert first.model_extra["atoms_grouped"] == grouped
    assert (silent.id, silent.text, silent.claims) == ("1", "", [])
    # Some files have lists of titles, or of a title's first letter.
    lists = [
        {**atom("a", PAINTER), "supporting_topic": titles} for titles in ([PAINTER], ["A"], [])
    ]
    path.write_text(json.dumps(whole | {"global_decisions": [lists, None]}))
    titles = [a["supporting_topic"] for a in read_records(path, Document)[0].atoms_grouped]
    assert titles == [PAINTER, None, None]
    path.write_text(json.dumps(whole | {"global_decisions": [grouped]}))
    with pytest.raises(BadInput, match="global_decisions: 1 texts, decisions: 2"):
        read_records(path, Document)


def test_alce_s_scores_are_citations_by_text(tmp_path):
    path = tmp_path / "texts.json.score"
    entry = {"qid": 3, "question": "Tell me a bio of Ada Lee", "output": "Ada painted [1][2]. So."}
    entry |= {"claim": "Ada painted [1][2].", "passage": [f"Title: {PAINTER}\nAda Lee painted."]}
    log = [entry | {"model_output": 1}, entry | {"claim": "So [1].", "model_output": 0}]
    log.append(log[0] | {"qid": 5})
    path.write_text(json.dumps({"citation_rec": 50.0, "autoais_log": log}, indent=4))
    first, second = read_records(path, Document)
    assert (first.id, first.topic, second.id) == ("3", "Ada Lee", "5")
    cited = first.model_extra["citations"]
    assert [(c["claim"], c["entailed"]) for c in cited] == [("Ada painted.", 1), ("So.", 0)]
    pairs = read_records(path, RelationPair)
    assert [pair.label for pair in pairs] == ["entailment", "not_entailment", "entailment"]
    del log[1]["output"]
    path.write_text(json.dumps({"autoais_log": log}))
    with pytest.raises(BadInput, match=r"score:1: output: field required"):
        read_records(path, Document)
