"""Whatever stands in a file: all of its rows become records, or the user is told which do not.

``pytest tests/fuzz --hypothesis-profile million`` tries a million files of each kind.
"""

import gzip
import json
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from data_builders.published.pairs.formats import FORMATS, LABELS, WrongRow, detect, pairs_of
from records import (
    BadInput,
    Document,
    Generation,
    LssExample,
    RelationPair,
    ResultFile,
    UserError,
    iter_rows,
    read_json,
    read_records,
    read_results,
)
from tests.fuzz.odd import changed, texts, values
from tests.fuzz.rows import FOREIGN, OWN, WHOLE

KINDS = st.sampled_from(list(OWN))
ADAPTED = st.sampled_from([Document, Generation, RelationPair, LssExample])
KNOWN = sorted({key for row in FOREIGN for key in row})
NAMES = ("a.jsonl", "a.json", "a.score", "a.csv", "a.tsv", "a.parquet", "a.jsonl.gz", "a.csv.gz")
RESULT = {
    **{"schema_version": 2, "experiment": "x", "provenance": {}},
    "results": [
        {
            **{"metric": "m", "domain": "d", "n": 1, "failed": 0, "value": 0.5},
            **{"ci95": [0, 1], "config_hash": "h"},
        }
    ],
}


def told(read, path, *more):
    """What a reader gives; ``None`` where it told the user, in lines that name the file."""
    try:
        found = read(path, *more)
        return list(found) if isinstance(found, Iterator) else found
    except BadInput as error:
        told_of = error.faults
    except UserError as error:
        told_of = [str(error)]
    assert told_of
    for line in told_of:
        assert line.startswith(f"{path}:"), line
        assert len(line.splitlines()) == 1, line


def lines_of(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def all_read(path, rows, kind):
    """Read a file of ``rows``; no row may be without a record, nor a record unwritable."""
    found = told(read_records, path, kind)
    if found is None:
        return
    for record in found:
        record.model_dump_json().encode()
    # What stands behind no words makes no pair (records/foreign.py).
    cited = kind is RelationPair and any("citations" in row for row in rows)
    assert cited or len(found) >= len(rows)


@given(st.data(), KINDS)
def test_own_rows_with_something_changed(folder, data, kind):
    rows = data.draw(
        st.lists(changed(OWN[kind]) | st.sampled_from(OWN[kind]), min_size=1, max_size=3)
    )
    path = folder / data.draw(st.sampled_from(["own.jsonl", "own.json"]))
    path.write_text(lines_of(rows))
    all_read(path, rows, kind)
    assert len(told(iter_rows, path) or rows) == len(rows)


@example([{"question": "Who?", "answers": {}}, FOREIGN[1]], Document)
@given(st.lists(changed(FOREIGN) | st.sampled_from(FOREIGN), min_size=1, max_size=2), ADAPTED)
def test_foreign_rows_with_something_changed(folder, rows, kind):
    path = folder / "foreign.jsonl"
    path.write_text(lines_of(rows))
    all_read(path, rows, kind)


@pytest.mark.parametrize("row", FOREIGN)
def test_the_foreign_rows_are_whole(folder, row):
    path = folder / "whole.jsonl"
    path.write_text(lines_of([row]))
    assert any(told(read_records, path, kind) for kind in (Document, LssExample, RelationPair))


@given(changed(WHOLE), KINDS)
def test_files_of_one_object_with_something_changed(folder, whole, kind):
    path = folder / "whole.json"
    path.write_text(json.dumps(whole))
    told(read_records, path, kind)
    told(iter_rows, path)


@given(st.dictionaries(st.sampled_from(KNOWN) | texts, values(st.sampled_from(KNOWN))), KINDS)
def test_any_object(folder, row, kind):
    path = folder / "any.jsonl"
    path.write_text(lines_of([row]))
    all_read(path, [row], kind)


@example({**RESULT, "a\r\nb": None})
@given(changed([RESULT]))
def test_results_with_something_changed(folder, whole):
    path = folder / "results.json"
    path.write_text(json.dumps(whole))
    told(read_results, path)
    told(read_json, path, ResultFile)


CELLS = st.lists(st.lists(texts | st.sampled_from(["0.5", "neutral", "[", '{"a": 1}'])), max_size=4)
CONTENTS = st.one_of(
    st.binary(max_size=60),
    texts.map(lambda text: text.encode("utf-8", "surrogatepass")),
    values().map(lambda value: json.dumps(value).encode()),
    CELLS.map(
        lambda rows: "\n".join(
            [",".join(["premise", "hypothesis", "label"]), *map(",".join, rows)]
        ).encode("utf-8", "surrogatepass")
    ),
)


@example("a.jsonl", b'{"label": ' + b"1" * 5000 + b"}")
@example("a.json", b"[" * 100_000)
@example("a.jsonl", b"[" * 100_000)
@example("a.csv", b'premise,hypothesis,label\na,"b,0.5\nc,d,0.5\n')
@example("a.csv", b"premise,hypothesis,label\n0.1,a,b,0.5\n0.2,c,d,0.5\n")
@example("a.csv", b"premise,hypothesis,label\n[" + b"1" * 5000 + b"],b,0.5\n")
@example("a.csv", b"premise,hypothesis,label\na,b,0.5\n" + b"[" * 100_000 + b",b,0.5\n")
@example("a.csv.gz", b"Tell me a bio of Ann\t['Ann']\n\xff")
@example("a.csv", b"Tell me a bio of Ann\t['Ann']\n\xff\n")
@given(st.sampled_from(NAMES), CONTENTS)
def test_any_file(folder, name, content):
    path = folder / name
    for whole in (content, gzip.compress(content), gzip.compress(content)[:-9]):
        path.write_bytes(whole)
        for kind in (RelationPair, Document):
            told(read_records, path, kind)
        told(iter_rows, path)
        told(read_json, path, RelationPair)
        told(read_results, path)


def test_a_table_keeps_every_row_and_its_line(folder):
    path = folder / "table.csv"
    path.write_text('premise,hypothesis,label\n\n"a\nb",c,neutral\nd,e,0.5\n')
    with pytest.raises(BadInput, match=r"table\.csv:5: label"):
        read_records(path, RelationPair)


@given(changed(FOREIGN), st.sampled_from(sorted(FORMATS)), st.sampled_from(["relation", "unli"]))
def test_pairs_of_any_format(row, name, target):
    try:
        found, wrong = pairs_of(row, detect(row, target) or name, target), "row: "
    except WrongRow as error:
        found, wrong = [], str(error)
    assert ": " in wrong
    assert len(wrong.splitlines()) == 1
    for pair in found:
        assert isinstance(pair.premise, str)
        assert isinstance(pair.hypothesis, str)
        assert isinstance(pair.group, str)
        assert all(isinstance(document, str) for document in pair.documents)
        known = {label for labels in LABELS.values() for label in labels.values()}
        assert pair.label in known or 0 <= pair.label <= 1
