"""Facts of people: which are false of them, and which imply which."""

from __future__ import annotations

import pytest

from data_builders.kb.language.statements import ordinal


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (21, "21st"), (20, "20th")],
)
def test_ordinal_has_its_ending(number, text):
    assert ordinal(number) == text
