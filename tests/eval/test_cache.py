"""The cache of answers, where several processes work with one file."""

from __future__ import annotations

import sqlite3
import threading

import numpy as np

from eval.models.cache import AnswerCache


def test_cache_waits_for_a_process_that_is_creating_the_file(tmp_path):
    path = tmp_path / "answers.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE something (x)")
    other.execute("BEGIN EXCLUSIVE")
    threading.Timer(0.3, lambda: other.execute("COMMIT")).start()
    cache = AnswerCache(path)
    cache.put({b"k": np.array([0.5])})
    assert cache.get([b"k"])[b"k"].tolist() == [0.5]
