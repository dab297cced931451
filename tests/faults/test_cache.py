"""Damage to the file of cached answers: damaged entries are queried again, nothing is misread."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from eval.models.cache import AnswerCache
from records import UserError

KEYS = [bytes([n]) * 32 for n in range(3)]
DAMAGES = {
    "a bit": "CAST(x'01' || substr(value, 2) AS BLOB)",
    "another's answer": "(SELECT value FROM checked_answers WHERE key <> :key)",
    "cut": "substr(value, 1, 5)",
    "nothing": "x''",
    "a text": "value || 'more'",
}


def damage(path: Path, value: str, key: bytes) -> None:
    table = sqlite3.connect(path)
    with table:
        change = f"UPDATE checked_answers SET value = {value} WHERE key = :key"
        assert table.execute(change, {"key": key}).rowcount == 1
    table.close()


@pytest.mark.parametrize("value", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_unknown_and_can_be_stored_again(tmp_path, value):
    path = tmp_path / "answers.sqlite"
    cache = AnswerCache(path)
    answers = {key: np.array([n, 0.5]) for n, key in enumerate(KEYS)}
    cache.put(answers)
    damage(path, value, KEYS[1])
    assert list(cache.get(KEYS)) == [KEYS[0], KEYS[2]]
    cache.put(answers)
    assert [cache.get(KEYS)[key].tolist() for key in KEYS] == [[0, 0.5], [1, 0.5], [2, 0.5]]
    cache.close()


def test_a_file_with_damaged_pages_is_a_one_line_error(tmp_path):
    path = tmp_path / "answers.sqlite"
    cache = AnswerCache(path)
    keys = [n.to_bytes(32, "big") for n in range(2000)]
    cache.put({key: np.zeros(4) for key in keys})
    cache.close()
    raw = bytearray(path.read_bytes())
    raw[4096 * 2 : 4096 * 20] = b"\xa5" * (4096 * 18)
    path.write_bytes(raw)
    with pytest.raises(
        UserError, match=r"answers\.sqlite: cannot be used as a cache .*; delete it"
    ):
        AnswerCache(path).get(keys)
