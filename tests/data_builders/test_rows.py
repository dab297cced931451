"""Rows of other people's files: tables whose quotation marks are part of the text."""

import pytest

from data_builders.rows import source_rows
from records import BadInput


def table(path, content):
    path.write_bytes(content)
    return [row for _, row in source_rows(str(path))]


def test_a_tabbed_text_is_read_as_it_stands(tmp_path):
    path = tmp_path / "pairs.txt"
    assert table(path, b'a\tb\n"x\ty"\n') == [{"a": '"x', "b": 'y"'}]
    assert table(path, b"\xef\xbb\xbfa\tb\n1\t2\n") == [{"a": "1", "b": "2"}], "no mark of order"
    page = "word " * 50_000  # longer than a cell of Python's csv may be by default
    assert table(path, f"a\tb\n1\t{page}\n".encode()) == [{"a": "1", "b": page}]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"a\tb\n1\n", r"pairs\.txt:2: row: not as many cells"), (b"a\tb\n\xff\t1\n", "not UTF-8")],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path, content, said):
    with pytest.raises(BadInput, match=said):
        table(tmp_path / "pairs.txt", content)
