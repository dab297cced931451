"""Statements in the parts of an answer that cleaning removes."""

import pytest

from records.removed import removed_statements


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("| Year | Event |\n|---|---|\n| 1990 | hanged |\n| 1995 | crowned king |\n", 3),
        ("# Life\n\nShe was born in Oslo.", 0),
        ("# 1999\n\n## Third wife 1999\n\nShe was born in Oslo.", 1),
        ("She was born in Oslo. Who could know that she had sold eleven horses?", 1),
        ("She was born in Oslo. Would you like to know more about her life in Oslo?", 0),
        ("She was born in Oslo. <!-- She robbed a bank. -->", 1),
        ("She was born in Oslo and died in Bergen.", 0),
    ],
)
def test_removed_lines_that_state_something_are_counted(text, number):
    assert removed_statements(text) == number
