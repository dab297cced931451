"""Reading records: the formats, the faults, the foreign rows."""

import gzip
import json
from collections import Counter

import pandas
import pytest

from records import (
    BadInput,
    Document,
    Generation,
    LssExample,
    Preference,
    RelationPair,
    UnliPair,
    UserError,
    iter_rows,
    read_records,
)
from records.abstention import responds

PAIR = {"premise": "A dog runs.", "hypothesis": "An animal moves.", "label": 0.9}


def lines(path, *rows):
    path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows))
    return path


def test_the_same_rows_from_jsonl_csv_and_parquet(tmp_path):
    rows = [PAIR, PAIR | {"label": 0.25, "source": "mine"}]
    jsonl = lines(tmp_path / "a.jsonl", *rows)
    pandas.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    pandas.DataFrame(rows).to_parquet(tmp_path / "a.parquet")
    expected = read_records(jsonl, UnliPair)
    assert [r.label for r in expected] == [0.9, 0.25]
    assert read_records(tmp_path / "a.csv", UnliPair) == expected
    assert read_records(tmp_path / "a.parquet", UnliPair) == expected


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ('{"premise": "A dog runs.", "hypo\n', "json"),
        (PAIR | {"label": 1.5}, "label"),
        (PAIR | {"label": float("nan")}, "label"),
        ({"premise": "A dog runs.", "label": 0.5}, "hypothesis"),
        (PAIR | {"premise": ""}, "premise"),
    ],
)
def test_an_invalid_row_is_an_error_with_file_line_and_field(tmp_path, row, field):
    path = lines(tmp_path / "bad.jsonl", PAIR, row)
    with pytest.raises(BadInput) as caught:
        read_records(path, UnliPair)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith(f"{path}:2: {field}: ")


def test_ten_faults_are_listed_and_the_rest_counted(tmp_path):
    path = lines(tmp_path / "bad.jsonl", *[PAIR | {"label": 7}] * 13)
    with pytest.raises(BadInput, match="and 3 more") as caught:
        read_records(path, UnliPair)
    assert len(caught.value.faults) == 10
    assert caught.value.faults[9].startswith(f"{path}:10: label: ")


def test_a_hypothesis_spelled_NA_in_a_csv_is_text(tmp_path):
    path = tmp_path / "na.csv"
    path.write_text("premise,hypothesis,label\nNA,null,0.5\n")
    assert read_records(path, UnliPair)[0].premise == "NA"


def test_an_empty_cell_in_a_csv_is_an_empty_text(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("topic,output,text\nAnn,,\nBob,,Bob sings.\n")
    assert [d.text for d in read_records(path, Document)] == ["", "Bob sings."]
    assert [t.text for t in read_records(path, Generation)] == ["", "Bob sings."]
    # HALoGEN's tables of a text without atoms are there, and empty.
    path.write_text("topic,output,atoms,hallucinated atoms\nAnn,,,\nBob,I cannot.,,\n")
    assert [(d.text, d.claims) for d in read_records(path, Document)] == [
        ("", []),
        ("I cannot.", []),
    ]


def test_a_text_with_tabs_is_a_table_whose_quotation_marks_are_text(tmp_path):
    rows = 'sentence_A\tsentence_B\tentailment_label\n"Go\tThey "go\tNEUTRAL\n'
    (tmp_path / "pairs.txt").write_text(rows)
    (document,) = read_records(tmp_path / "pairs.txt", Document)
    assert (document.passages[0].text, document.claims[0].text) == ('"Go', 'They "go')
    assert document.claims[0].label == "NS"
    (tmp_path / "lines.txt").write_text('{"id": "1",\t"topic": "T", "text": "A text."}\n')
    assert read_records(tmp_path / "lines.txt", Document)[0].text == "A text."


QUOTES = 'premise\thypothesis\tlabel\n"Go, said Bo.\tBo spoke.\tentailment\nGo"\tBo sat.\tneutral\n'


def test_quotation_marks_in_a_tsv_are_characters(tmp_path):
    (tmp_path / "a.tsv").write_text(QUOTES + '"Bo ran"\tBo sat.\tcontradiction\n')
    pairs = read_records(tmp_path / "a.tsv", RelationPair)
    assert [pair.premise for pair in pairs] == ['"Go, said Bo.', 'Go"', '"Bo ran"']


@pytest.mark.parametrize(
    "rows",
    [
        '"Bo said ""go"" twice"\tBo sat.\tneutral\n',
        '"Bo\tran"\tBo sat.\tneutral\n',
        '"Bo ran"\t"Bo sat."\t"neutral"\n',
    ],
    ids=["doubled marks", "a tab in a cell", "all cells"],
)
def test_quotation_marks_that_enclose_the_cells_of_a_tsv_are_removed(tmp_path, rows):
    (tmp_path / "a.tsv").write_text("premise\thypothesis\tlabel\n" + rows)
    (pair,) = read_records(tmp_path / "a.tsv", RelationPair)
    assert not pair.premise.startswith('"')


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (8, "8"), (False, "false"), (0.5, "0.5")])
@pytest.mark.parametrize("column", ["answer", "text"])
def test_an_answer_that_is_a_number_or_a_truth_value_is_its_text(tmp_path, column, value, text):
    row = {"question": "How many?", column: value}
    (document,) = read_records(lines(tmp_path / "a.jsonl", row), Document)
    assert document.text == text


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.csv", "absent.jsonl"])
def test_empty_and_absent_files_are_errors(tmp_path, name):
    if name.startswith("empty"):
        (tmp_path / name).write_text("premise,hypothesis,label\n" if "csv" in name else "\n")
    with pytest.raises(UserError, match=name):
        read_records(tmp_path / name, UnliPair)


def test_unknown_columns_are_kept(tmp_path):
    path = lines(tmp_path / "a.jsonl", PAIR | {"annotator": 3})
    assert read_records(path, UnliPair)[0].model_extra == {"annotator": 3}


def test_factscore_labelled_biographies(tmp_path):
    fact = {"text": "Ann Lee is a painter.", "label": "S"}
    row = {
        "input": "Question: Tell me a bio of Ann Lee.",
        "output": "Ann Lee is a painter. She is 9 feet tall.",
        "topic": "Ann Lee",
        "annotations": [
            {"text": "Ann Lee is a painter.", "human-atomic-facts": [fact]},
            {"text": "She is 9 feet tall.", "human-atomic-facts": [fact | {"label": "NS"}]},
            {"text": "Hm.", "human-atomic-facts": None},
        ],
    }
    (document,) = read_records(lines(tmp_path / "a.jsonl", row), Document)
    assert [(c.sentence, c.label) for c in document.claims] == [(0, "S"), (1, "NS")]
    assert document.claims[1].source == "She is 9 feet tall."
    assert responds(document)


def test_factscore_without_annotations_safe_and_veriscore(tmp_path):
    rows = [
        {
            "input": "Tell me",
            "output": "Ann may paint.",
            "topic": "Ann Lee",
            "annotations": None,
        },
        {"prompt": "Who is Ann Lee?", "response": "A painter."},
        {"question": "Who is Ann Lee?", "response": "A painter.", "model": "m"},
    ]
    documents = [
        document
        for number, row in enumerate(rows)
        for document in read_records(lines(tmp_path / f"{number}.jsonl", row), Document)
    ]
    assert [d.topic for d in documents] == ["Ann Lee", "Who is Ann Lee?", "Who is Ann Lee?"]
    assert [d.text for d in documents] == ["Ann may paint.", "A painter.", "A painter."]
    assert documents[0].claims is None
    assert [responds(d) for d in documents] == [False, True, True], "FActScore's null abstains"


# As the released files have them: a file of one indented object, ``cat`` of two, contexts without a
# text, an output without text (its Conflicts).
INPUT = {
    "input": "Question: Tell me a bio of Ann Lee.",
    "output": "",
    "topic": "Ann Lee",
    "cat": ["very rare", "North America"],
    "atoms": [
        {"id": "a0", "text": "Ann paints.", "original": "She paints.", "label": "S"},
        {"id": "a1", "text": "Ann boxes.", "original": "She boxes.", "label": "NS"},
    ],
    "contexts": [
        {"id": "c_a0_0", "title": "Ann", "text": "", "link": "x", "snippet": "Ann paints."},
        {"id": "c_a0_1", "title": "Ann", "text": "Ann boxes.", "link": "", "snippet": "Ann …"},
        {"id": "c_a1_0", "title": "", "text": "", "link": "", "snippet": ""},
        {"id": "c_q_0", "title": "Ann Lee", "text": "", "link": "", "snippet": ""},
    ],
}
INPUT["atoms"][0]["contexts"] = ["c_a0_0", "c_a0_1"]
INPUT["atoms"][1]["contexts"] = ["c_a1_0"]


def test_factreasoner_released_inputs(tmp_path):
    path = tmp_path / "ann.json"
    path.write_text(json.dumps(INPUT, indent=2), encoding="utf-8")
    (document,) = read_records(path, Document)
    assert (document.bin, document.group) == ("very rare", "North America")
    assert document.text == "Ann paints. Ann boxes.", "an empty text would count as no answer"
    assert [p.text for p in document.passages] == ["Ann paints.", "Ann boxes.", "Ann Lee"]
    assert document.passages[1].snippet == "Ann …"
    assert [c.contexts for c in document.claims] == [["c_a0_0", "c_a0_1"], []]
    assert document.input == INPUT["input"]
    assert document.passages[0].url == "x"
    broken = INPUT | {"atoms": [INPUT["atoms"][0] | {"contexts": ["c_a9_0"]}]}
    with pytest.raises(BadInput, match=r"a\.jsonl:1: atoms\.0\.contexts: 'c_a9_0' is not among"):
        read_records(lines(tmp_path / "a.jsonl", broken), Document)


def test_factreasoner_released_outputs(tmp_path):
    predictions = {"a0": "S", "a1": "NS", "a2": "NS"}
    atoms = [*INPUT["atoms"], {"id": "a2", "text": "Ann sings.", "contexts": []}]
    graded = [("a0", 0.9), ("a1", 0.2), ("a2", 0.5)]
    marginals = [{"variable": name, "probabilities": [1 - p, p]} for name, p in graded]
    released = INPUT | {
        "atoms": atoms,
        "results": {"predictions": predictions, "marginals": marginals},
    }
    baseline = released | {"results": {"predictions": {"a0": "U", "a1": "C", "a2": "NS"}}}
    documents = read_records(lines(tmp_path / "a.jsonl", released, baseline), Document)
    verdicts, baseline_verdicts = (
        [claim.recorded for claim in document.claims] for document in documents
    )
    assert verdicts == [
        {"label": "supported", "p": 0.9},
        {"label": "contradicted", "p": 0.2},
        {"label": "undecided", "p": 0.5},
    ], "there an undecided atom is NS"
    assert [verdict["label"] for verdict in baseline_verdicts] == [
        "undecided",
        "contradicted",
        "not_supported",
    ]
    assert documents[0].results == released["results"]


def test_wice_rows_for_the_relation_model(tmp_path):
    row = {"label": "partially_supported", "claim": "A.", "evidence": ["B.", "C."]}
    path = lines(tmp_path / "a.jsonl", row | {"meta": {"id": "dev1"}}, row | {"label": "supported"})
    first, second = read_records(path, RelationPair)
    assert (first.label, first.premise) == ("not_entailment", "B.\nC.")
    assert first.model_extra["group"] == "dev1"
    titled = row | {"meta": {"id": "dev1", "claim_title": "Ann"}}
    (pair,) = read_records(lines(tmp_path / "c.jsonl", titled), RelationPair)
    assert pair.model_extra["group"] == "Ann", "an article's claims cite the same pages"
    assert second.label == "entailment"
    with pytest.raises(BadInput, match="label: expected one of supported"):
        read_records(lines(tmp_path / "b.jsonl", row | {"label": "maybe"}), RelationPair)


def test_wice_articles_give_their_cited_sentences_among_others(tmp_path):
    page = [f"Sentence {number} has many words{' indeed' * 12}." for number in range(40)]
    meta = {"id": "train1", "claim_title": "Ada"}
    rows = [
        {"claim": "Ada wrote.", "label": label, "evidence": page, "meta": meta}
        | {"supporting_sentences": sets}
        for label, sets in (("supported", [[30, 2], [7]]), ("not_supported", [[]]))
    ]
    path = lines(tmp_path / "train.jsonl", *rows)
    supported, unsupported = read_records(path, RelationPair)
    assert (supported.label, unsupported.label) == ("entailment", "not_entailment")
    kept = [page.index(line) for line in supported.premise.split("\n")]
    assert {2, 30} <= set(kept)
    assert kept == sorted(kept)
    # Both lengths are the same: it does not tell the label.
    assert len(kept) == len(unsupported.premise.split("\n")) == 11
    assert (supported.group, supported.source) == ("Ada", "wice_articles")


def test_wice_token_rows_for_lss(tmp_path):
    row = {
        "claim_tokens": ["Ann", "ex", "-", "pats", "."],
        "non_supported_spans": [False, True, True, True, False],
        "supporting_sentences": [[1]],
        "evidence": ["Nothing.", "Ann."],
    }
    (example,) = read_records(lines(tmp_path / "a.jsonl", row), LssExample)
    assert example.annotations[0].lss == "Ann ."
    assert example.keep == [True, False, False, False, True]
    assert example.reference.startswith("Ann.")
    whole = row | {"supporting_sentences": [[0]], "evidence": "Ann is here."}
    (example,) = read_records(lines(tmp_path / "whole.jsonl", whole), LssExample)
    assert example.reference == "Ann is here."
    with pytest.raises(BadInput, match="non_supported_spans"):
        read_records(lines(tmp_path / "b.jsonl", row | {"non_supported_spans": [True]}), LssExample)


def test_released_adversarial_samples(tmp_path):
    row = {"topic": "Ann Lee", "output": {"raw": "…", "parsed": "Ann Lee exists."}}
    assert read_records(lines(tmp_path / "a.jsonl", row), Generation)[0].text == "Ann Lee exists."
    # mistral-expertqa-*.jsonl
    row = {"id_": 4, "generation": " Yes.", "meta": {"topic": "Is it?", "source": "expertqa"}}
    path = lines(tmp_path / "b.jsonl", row)
    (document,) = read_records(path, Document)
    assert (document.id, document.topic, document.text) == ("4", "Is it?", " Yes.")
    assert read_records(path, Generation)[0].topic == "Is it?"


def test_citations_of_a_generation_become_relation_pairs(tmp_path):
    path = tmp_path / "generations.jsonl"
    citations = [
        {"claim": "Ada was born in 1815.", "passage": ["Ada (1815).", "More."], "entailed": 1},
        {"claim": "She died in 1900.", "passage": "Ada (1815).", "entailed": 0},
        {"claim": "", "passage": ["Ada (1815)."], "entailed": 0},
    ]
    path.write_text(json.dumps({"name": "Ada", "output": "…", "citations": citations}) + "\n")
    rows = read_records(path, RelationPair)
    assert [row.label for row in rows] == ["entailment", "not_entailment"]
    assert rows[0].premise == "Ada (1815).\nMore."
    assert {(row.source, row.model_extra["group"]) for row in rows} == {("citations", "Ada")}
    citations[0]["entailed"] = "yes"
    path.write_text(json.dumps({"name": "Ada", "output": "…", "citations": citations}) + "\n")
    with pytest.raises(BadInput, match=":1: citations: entailed"):
        read_records(path, RelationPair)


def test_an_ambigbio_generation_becomes_a_document_with_labels_and_passages(tmp_path):
    path = tmp_path / "ambigbio.jsonl"
    king = "Title: Ada King\nAda King Ada King was a countess."
    coat = "Title: Ada (coat)\nIt is a coat.\n"
    row = {
        **{"qid": 7, "name": "Ada", "generator": "gen", "output": "Ada …", "atoms_grouped": None},
        "atoms_independent": [
            {"atom": "Ada was a countess.", "is_supported": True, "supporting_topic": "Ada King"},
            {"atom": "Ada was a duchess.", "is_supported": False, "supporting_topic": None},
        ],
        "citations": [
            {"claim": "Ada …", "passage": [f"{coat}{king}"], "entailed": 1},
            {"claim": "Ada …", "passage": [king], "entailed": 0},
        ],
    }
    path.write_text("\n".join(map(json.dumps, (row, row | {"atoms_independent": None}))) + "\n")
    first, silent = read_records(path, Document)
    assert (first.id, first.topic, first.text, first.generator) == ("gen-7", "Ada", "Ada …", "gen")
    assert [(c.text, c.label) for c in first.claims] == [
        ("Ada was a countess.", "S"),
        ("Ada was a duchess.", "NS"),
    ]
    assert [(p.title, p.text) for p in first.passages] == [
        ("Ada (coat)", "It is a coat."),
        ("Ada King", "Ada King was a countess."),
    ]
    assert {tuple(c.contexts) for c in first.claims} == {("p0", "p1")}
    assert silent.claims == []


def _table(path, rows):
    """The same rows in each format that a row reader knows."""
    names = list(rows[0])
    if path.suffix == ".parquet":
        pandas.DataFrame(rows).to_parquet(path)
        return path
    if "jsonl" in path.name:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        separator = "\t" if ".tsv" in path.name else ","
        lines = [names, *([f'"{row[n]}"' for n in names] for row in rows)]
        text = "".join(separator.join(line) + "\n" for line in lines)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.csv.gz", "a.tsv", "a.parquet"]
)
def test_rows_of_each_table_format_are_read(tmp_path, name):
    rows = [{"x": "one, two", "y": "é\nline"}, {"x": "NA", "y": ""}]
    numbered = list(iter_rows(_table(tmp_path / name, rows)))
    assert [row for _, row in numbered] == rows
    assert numbered[0][0] == (1 if name[2:] in ("jsonl", "jsonl.gz", "parquet") else 3)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"x": 1}\n{"x":\n', r"a\.jsonl:2: json"),
        ("a.jsonl", b'{"x": "\xff"}\n', "not UTF-8"),
        ("a.jsonl.gz", gzip.compress(b'{"x": 1}\n' * 5000)[:-20], "cannot be read"),
        ("a.csv", b"x,y\n1,2\n1\n", r"a\.csv:3: row: number of cells"),
        ("a.csv", b"x,y,x,,\n1,2,3,,\n", r"a\.csv:1: row: duplicate column 'x'"),
    ],
    ids=["cut json", "not utf-8", "cut gzip", "cut csv row", "duplicate csv column"],
)
def test_a_broken_row_is_an_error_with_its_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=message):
        list(iter_rows(tmp_path / name))


def test_a_json_file_is_read_row_by_row_as_a_list_or_as_objects(tmp_path):
    (tmp_path / "list.json").write_text(json.dumps([PAIR, PAIR], indent=1))
    (tmp_path / "one.json").write_text(json.dumps(PAIR, indent=1))
    with gzip.open(tmp_path / "lines.json.gz", "wt") as file:
        file.write(json.dumps(PAIR) + "\n")
    assert list(iter_rows(tmp_path / "list.json")) == [(1, PAIR), (2, PAIR)]
    assert list(iter_rows(tmp_path / "one.json")) == [(1, PAIR)]
    assert list(iter_rows(tmp_path / "lines.json.gz")) == [(1, PAIR)]
    (tmp_path / "torn.json").write_text("[{")
    with pytest.raises(BadInput, match=r"torn\.json:1: json"):
        list(iter_rows(tmp_path / "torn.json"))


def test_a_document_without_an_id_keeps_its_fields(tmp_path):
    row = {
        "topic": "Ann",
        "text": "Ann was born. She wrote.",
        "claims": [{"id": "c1", "text": "Ann was born."}],
        "passages": [{"id": "p1", "title": "Ann", "text": "Ann wrote."}],
    }
    (tmp_path / "texts.jsonl").write_text(json.dumps(row) + "\n")
    (document,) = read_records(tmp_path / "texts.jsonl", Document)
    assert document.id == "d1"
    assert [claim.text for claim in document.claims] == ["Ann was born."]
    assert [passage.title for passage in document.passages] == ["Ann"]
    extra = {"domain": "films", "mine": 5}
    (ours,) = read_records(lines(tmp_path / "ours.jsonl", row | extra), Document)
    assert ours.model_extra == extra
    other = {"id": None, "topic": "Bo", "output": "Bo."} | extra
    (theirs,) = read_records(lines(tmp_path / "texts.jsonl", other), Document)
    assert (theirs.id, theirs.model_extra) == ("d1", {})


RAG = {"topic": "Who sang?", "text": "Ada sang.", "passages": ["Ada sang well.", "Bo left."]}


@pytest.mark.parametrize(
    "names",
    [
        ("user_input", "response", "retrieved_contexts"),
        ("question", "answer", "contexts"),
        ("input", "actual_output", "retrieval_context"),
        ("q.text", "reply", "hits.doc"),
    ],
)
def test_answers_of_retrieval_tools_and_fields_that_the_user_names(tmp_path, names):
    question, answer, contexts = names
    row = {"id": 7, question: RAG["topic"], answer: RAG["text"], contexts: [*RAG["passages"], " "]}
    fields = None
    if "." in question:
        fields = dict(zip(("topic", "text", "passages"), names, strict=True))
        hits = [{"doc": text} for text in row.pop(contexts)]
        row |= {"q": {"text": row.pop(question)}, "hits": hits, "output": "no", "claim": "no"}
    (document,) = read_records(lines(tmp_path / "a.jsonl", row), Document, fields)
    assert (document.id, document.topic, document.text) == ("7", RAG["topic"], RAG["text"])
    assert [p.text for p in document.passages] == RAG["passages"]


def test_a_table_with_fields_of_other_names(tmp_path):
    (tmp_path / "a.csv").write_text(
        "nr,reply,about,docs\n1,Ada sang.,Ada,\"['Ada, too.', 'Bo.']\"\n"
    )
    fields = {"text": "reply", "topic": "about", "passages": "docs", "id": "nr"}
    (document,) = read_records(tmp_path / "a.csv", Document, fields)
    assert (document.id, document.text) == ("1", "Ada sang.")
    assert [p.text for p in document.passages] == ["Ada, too.", "Bo."]
    with pytest.raises(UserError, match=r"a.csv: replies: no such field .* nr, reply, about, docs"):
        read_records(tmp_path / "a.csv", Document, {"text": "replies"})
    with pytest.raises(
        BadInput, match=r"text: field required .* nr, reply, about, docs; .*--fields"
    ):
        read_records(tmp_path / "a.csv", Document)


def test_spans_of_lettucedetect_numbers_as_ids_and_claims_as_strings(tmp_path):
    spans = [{"start": 0, "end": 3, "label": "Evident Conflict"}]
    judged = {"prompt": "Bo sang.", "answer": "Ada sang.", "labels": spans}
    ours = {"id": 3, "topic": "Ada", "text": "x", "claims": ["Ada sang.", "Bo left."]}
    passages = [{"id": 1, "text": "\u00a0"}, {"id": 2, "page_content": "Bo left."}]
    claims = [{"id": 5, "text": "Bo left.", "contexts": [1, 2]}]
    rows = (ours, ours | {"id": 4, "claims": claims, "passages": passages})
    (first,) = read_records(lines(tmp_path / "judged.jsonl", judged), Document)
    second, third = read_records(lines(tmp_path / "a.jsonl", *rows), Document)
    assert (first.claims[0].label, first.passages[0].text) == ("NS", "Bo sang.")
    assert [(c.id, c.text) for c in second.claims] == [("c0", "Ada sang."), ("c1", "Bo left.")]
    assert [(p.id, p.text) for p in third.passages] == [("2", "Bo left.")]
    assert third.claims[0].contexts == ["2"]
    tool = lines(tmp_path / "b.jsonl", ours | {"passages": [{"id": "p", "text": {"total": 3}}]})
    with pytest.raises(BadInput, match=r"passages: expected a text, .*json.dumps"):
        read_records(tool, Document)


def test_spellings_of_relations_and_rows_without_gold(tmp_path):
    labels = ["entails", "Contradictory", "NEUTRAL", "not_entailed", "-", -1, None]
    pairs = [PAIR | {"label": label, "weight": 2} for label in labels]
    skipped = Counter()
    rows = read_records(lines(tmp_path / "a.jsonl", *pairs), RelationPair, skipped=skipped)
    names = ["entailment", "contradiction", "neutral", "not_entailment"]
    assert [r.label for r in rows] == names
    assert {r.weight for r in rows} == {2}
    assert sum(skipped.values()) == 3
    with pytest.raises(BadInput, match=r"a.jsonl:5: label"):
        read_records(tmp_path / "a.jsonl", RelationPair)


def test_preferences_as_messages_or_without_scores(tmp_path):
    question, answer = (
        {"role": "user", "content": "Ada?"},
        {"role": "assistant", "content": "She sang."},
    )
    other = answer | {"content": "She left."}
    rows = [
        {"prompt": [question], "chosen": [answer], "rejected": [other]},
        {"chosen": [question, answer], "rejected": [question, other]},
        {"prompt": "Ada?", "chosen": "She sang.", "rejected": "She left."},
    ]
    first, second, third = read_records(lines(tmp_path / "a.jsonl", *rows), Preference)
    assert first == second == third
    assert (first.prompt, first.rejected, first.score_chosen) == ("Ada?", "She left.", None)


USER, ANSWER = {"role": "user", "content": "Bo?"}, {"role": "assistant", "content": "He ran."}
BRIEF = {"role": "system", "content": "Be brief."}
OTHER = ANSWER | {"content": "He sat."}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": [BRIEF, USER], "chosen": [ANSWER], "rejected": [OTHER]}, "roles system, user"),
        ({"prompt": [USER, ANSWER, USER], "chosen": "a", "rejected": "b"}, "prompt: .*earlier"),
        ({"prompt": "Al?", "chosen": [USER, ANSWER], "rejected": [USER, OTHER]}, "prompt: differs"),
        ({"prompt": "Bo?", "system": "Be brief.", "chosen": "a", "rejected": "b"}, "system: has"),
    ],
)
def test_preferences_with_a_system_message_or_earlier_turns_are_refused(tmp_path, row, message):
    with pytest.raises(BadInput, match=f"a.jsonl:1: {message}|a.jsonl:1: chosen: .*{message}"):
        read_records(lines(tmp_path / "a.jsonl", row), Preference)
