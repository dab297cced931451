"""What the columns, labels and cells of a file are read as, and what is reported of them."""

import json
import logging

import pyarrow
import pyarrow.parquet
import pytest

from records import BadInput, Document, RelationPair, UserError, read_records
from records.formats import file_reader

PAGE = "Ida Moor was a weaver. She was born in Tarn."
OTHER = "Tarn lies on a lake."
ANSWER = {"question": "Who was Ida Moor?", "answer": "Ida Moor was a weaver."}
SEPARATE = [PAGE, OTHER]
ORDER = {0: "contradiction", 1: "entailment", 2: "neutral"}


@pytest.fixture
def lines(caplog):
    """The lines that reading logs."""
    file_reader._log_once.cache_clear()
    caplog.set_level(logging.INFO, "records")
    return caplog


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("column", "value", "texts"),
    [
        pytest.param("contexts", SEPARATE, SEPARATE, id="list of texts"),
        pytest.param("passage", PAGE, [PAGE], id="text"),
        pytest.param("gold_docs", json.dumps(SEPARATE), SEPARATE, id="JSON list as a text"),
        pytest.param("knowledge", PAGE, [PAGE], id="HaluEval's knowledge"),
        pytest.param("retrieved_docs", [[PAGE], [OTHER]], SEPARATE, id="list of lists"),
        pytest.param(
            "documents", [{"page_content": PAGE}, {"snippet": OTHER}], SEPARATE, id="objects"
        ),
        pytest.param(
            "context",
            {"title": ["Ida", "Tarn"], "sentences": [PAGE.split(". "), [OTHER]]},
            [" ".join(PAGE.split(". ")), OTHER],
            id="the Hub's object of parallel lists",
        ),
        pytest.param(
            "context", [["Ida", ["She ", "wove."]], ["Tarn", [OTHER]]], ["She wove.", OTHER],
            id="titles with sentences",
        ),
        pytest.param(
            "passages",
            {"is_selected": [1, 0], "passage_text": SEPARATE, "url": ["a", "b"]},
            SEPARATE,
            id="MS MARCO's object",
        ),
    ],
)  # fmt: skip
def test_evidence_in_any_shape_becomes_passages(tmp_path, column, value, texts):
    (document,) = read_records(write(tmp_path / "a.jsonl", ANSWER | {column: value}), Document)
    assert [passage.text for passage in document.passages] == texts


def test_titles_of_parallel_lists_are_titles_of_passages(tmp_path):
    value = {"title": ["Ida", "Tarn"], "sentences": [[PAGE], [OTHER]]}
    (document,) = read_records(write(tmp_path / "a.jsonl", ANSWER | {"context": value}), Document)
    assert [passage.title for passage in document.passages] == ["Ida", "Tarn"]


@pytest.mark.parametrize(
    ("column", "value", "fault"),
    [
        pytest.param("context", {"Ida": PAGE}, "an object with Ida", id="keys are no texts"),
        pytest.param("evidence", [1, 2], "got 1", id="numbers"),
        pytest.param("sources", ["https://a.example/x"], "addresses without texts", id="addresses"),
    ],
)
def test_evidence_in_an_unknown_shape_is_refused_with_its_column(tmp_path, column, value, fault):
    path = write(tmp_path / "a.jsonl", ANSWER | {column: value})
    with pytest.raises(BadInput, match=rf"a.jsonl:1: {column}: .*{fault}.*--fields"):
        read_records(path, Document)


@pytest.mark.parametrize("columns", [("gold_contexts", "contexts"), ("contexts", "gold_contexts")])
def test_the_column_of_the_format_is_the_evidence_in_any_order(tmp_path, columns):
    values = {"gold_contexts": [PAGE], "contexts": [OTHER]}
    row = ANSWER | {column: values[column] for column in columns} | {"references": [PAGE]}
    (document,) = read_records(write(tmp_path / "a.jsonl", row), Document)
    assert [passage.text for passage in document.passages] == [OTHER]


def test_several_evidence_columns_are_refused_with_their_names(tmp_path):
    path = write(tmp_path / "a.jsonl", ANSWER | {"gold_docs": [PAGE], "snippets": [OTHER]})
    with pytest.raises(UserError, match=r"a.jsonl: gold_docs, snippets: several .*--fields"):
        read_records(path, Document)
    (document,) = read_records(path, Document, fields={"passages": "snippets"})
    assert [passage.text for passage in document.passages] == [OTHER]


def test_references_are_the_right_answers_and_no_evidence(tmp_path, lines):
    (document,) = read_records(
        write(tmp_path / "a.jsonl", ANSWER | {"references": [PAGE]}), Document
    )
    assert document.passages is None
    assert lines.messages[0].endswith("not used: references")


def test_evidence_of_a_row_of_ours_under_another_name_is_read(tmp_path, lines):
    row = {"id": "1", "topic": "Ida Moor", "text": "She wove.", "retrieved_contexts": SEPARATE}
    (document,) = read_records(write(tmp_path / "a.jsonl", row), Document)
    assert [passage.text for passage in document.passages] == SEPARATE
    assert "retrieved_contexts → passages" in lines.messages[0]


def test_an_answer_of_halubench_is_a_judged_claim(tmp_path):
    rows = [{**ANSWER, "passage": PAGE, "label": label} for label in ("PASS", "FAIL")]
    documents = read_records(write(tmp_path / "a.jsonl", *rows), Document)
    assert [document.claims[0].label for document in documents] == ["S", "NS"]
    assert documents[0].claims[0].contexts == [documents[0].passages[0].id]


def pairs(path, labels):
    rows = "".join(f"{PAGE},Ida wove.,{label}\n" for label in labels)
    path.write_text(f"premise,hypothesis,label\n{rows}")
    return path


@pytest.mark.parametrize("kind", [RelationPair, Document])
@pytest.mark.parametrize("numbers", [(0, 1), (0, 1, 2)])
def test_numbers_as_labels_without_their_order_are_refused(tmp_path, kind, numbers):
    with pytest.raises(BadInput, match=r"label: the number 0, .*--labels"):
        read_records(pairs(tmp_path / "a.csv", numbers), kind)


def test_numbers_as_labels_are_read_in_the_stated_order_and_counted(tmp_path, lines):
    path = pairs(tmp_path / "a.csv", (0, 1, 2, 1))
    rows = read_records(path, RelationPair, labels=ORDER)
    assert [row.label for row in rows] == ["contradiction", "entailment", "neutral", "entailment"]
    assert "label numbers: 0 = contradiction, 1 = entailment, 2 = neutral" in lines.messages[0]
    assert "labels: contradiction 1, entailment 2, neutral 1" in lines.messages[0]
    documents = read_records(path, Document, labels=ORDER)
    assert [document.claims[0].label for document in documents] == ["NS", "S", "NS", "S"]


def test_numbers_of_the_hub_are_read_by_the_names_of_their_classes(tmp_path, lines):
    names = ["contradiction", "neutral", "entailment"]
    feature = {"names": names, "_type": "ClassLabel"}
    metadata = {"huggingface": json.dumps({"info": {"features": {"label": feature}}})}
    table = pyarrow.table({"premise": SEPARATE, "hypothesis": ["She wove."] * 2, "label": [2, 0]})
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), path)
    assert [r.label for r in read_records(path, RelationPair)] == ["entailment", "contradiction"]
    assert "classes of label: 0 = contradiction, 1 = neutral, 2 = entailment" in lines.messages[0]


HEADER = "id,topic,text,claims,passages\n"
START = '1,Ida,She wove.,"[]",'


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        pytest.param("\"['She wove.'\n 'She left.']\"", ["She wove.", "She left."], id="NumPy"),
        pytest.param(
            "\"array(['She wove.', 'She left.'], dtype=object)\"",
            ["She wove.", "She left."],
            id="NumPy's name",
        ),
        pytest.param("\"('She wove.', 'She left.')\"", ["She wove.", "She left."], id="tuple"),
        pytest.param("\"['She wove.', 'She left.']\"", ["She wove.", "She left."], id="Python"),
        pytest.param('"[""She wove.""]"', ["She wove."], id="JSON"),
    ],
)
def test_lists_in_cells_are_read_item_by_item(tmp_path, cell, texts):
    path = tmp_path / "a.csv"
    path.write_text(HEADER + START + cell + "\n")
    (document,) = read_records(path, Document)
    assert [passage.text for passage in document.passages] == texts


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_a_csv_with_another_separator_is_read(tmp_path, lines, separator):
    rows = [["id", "topic", "text"], ["1", "Ida", "She wove, and she left."]]
    path = tmp_path / "a.csv"
    path.write_text("".join(separator.join(row) + "\n" for row in rows))
    (document,) = read_records(path, Document)
    assert document.text == "She wove, and she left."
    assert "separator: " in lines.messages[0]


@pytest.mark.parametrize(("mark", "name"), [(",", "comma"), (";", "semicolon")])
def test_a_csv_whose_rows_do_not_fit_its_header_names_the_separator(tmp_path, mark, name):
    path = tmp_path / "a.csv"
    path.write_text("id,topic,text\n1,Ida,She wove, and she left.\n".replace(",", mark))
    with pytest.raises(BadInput, match=rf"number of cells differs .*separator: {name}"):
        read_records(path, Document)
