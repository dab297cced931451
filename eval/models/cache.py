"""Answers of the engines and of language models, kept on disk between runs.

The key is a SHA-256 over everything that changes an answer: the engine, the checkpoint's weights,
tokenizer and configuration, the precision, and the input texts. A checkpoint that is trained again
under the same name, or a new temperature, therefore never meets an old answer.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from records import UserError, sha256_file

if TYPE_CHECKING:  # it brings PyTorch, which a model behind a server does not need
    from components.checkpoint import Component

# What a component.json says about its making, or applies after the cached answer.
_NO_INFLUENCE = {"data", "metrics", "metrics_split", "seed", "versions", "keep_threshold"}
_MODEL_FILES = {".safetensors", ".json", ".txt", ".model", ".jinja"}
# SQLite takes 32 766 variables in one statement since 3.32.
_KEYS_PER_QUERY = 10_000
# Seconds to wait for another process that writes.
_LOCKED = 60.0


def fingerprint(engine: str, folder: Path, component: Component, dtype: str) -> bytes:
    """Digest of whatever decides an engine's answers besides its input.

    Args:
        engine: kind of answer, e.g. ``relation``.
        folder: the checkpoint; the model's and the tokenizer's files in it are hashed.
        component: its ``component.json``.
        dtype: precision of the computation, e.g. ``bfloat16``.
    """
    files = {
        path.name: sha256_file(path)
        for path in sorted(folder.iterdir())
        if path.suffix in _MODEL_FILES and path.name != "component.json"
    }
    content = component.model_dump(mode="json", exclude=_NO_INFLUENCE)
    whole = json.dumps([engine, dtype, files, content], sort_keys=True)
    return hashlib.sha256(whole.encode("utf-8")).digest()


def answer_key(engine: bytes, texts: Sequence[str]) -> bytes:
    """Key of one answer: an engine's fingerprint and the input texts."""
    digest = hashlib.sha256(engine)
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        # With the length in front, ("ab", "c") and ("a", "bc") differ.
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.digest()


# The file of the answers that a run keeps in its folder.
ANSWERS = ".answers.sqlite"


class AnswerCache:
    """A table of numeric answers in one SQLite file, which several processes may share.

    Every ``put`` is one transaction of the write-ahead log: a process that is killed loses at most
    the batch it was working on.

    Args:
        path: the file; made with its folder when absent.

    Raises:
        UserError: the file is there but is no such cache.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # A notebook's language model answers from another thread, one answer at a time.
            self._table = sqlite3.connect(
                self.path, timeout=_LOCKED, isolation_level=None, check_same_thread=False
            )
            self._write_ahead()
            # After a power cut the last batches may be gone, but the file stays whole.
            self._table.execute("PRAGMA synchronous=NORMAL")
            self._table.execute(
                "CREATE TABLE IF NOT EXISTS answers "
                "(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            raise UserError(
                f"{self.path}: cannot be used as a cache ({error}); delete it or give another file"
            ) from None

    def _write_ahead(self) -> None:
        """Turn the file to write-ahead; SQLite does not wait for another process that does so."""
        end = time.monotonic() + _LOCKED
        while True:
            try:
                self._table.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, np.ndarray]:
        """The known answers among ``keys``, each a float64 array of shape (values,)."""
        found = {}
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            part = list(keys[start : start + _KEYS_PER_QUERY])
            marks = ",".join("?" * len(part))
            rows = self._table.execute(
                f"SELECT key, value FROM answers WHERE key IN ({marks})", part
            )
            found.update((bytes(key), self._unpack(value)) for key, value in rows)
        return found

    def put(self, answers: Mapping[bytes, np.ndarray]) -> None:
        """Keep answers, each of shape (values,), as float64.

        One that is already there stays, so that nobody sees it change.
        """
        rows = [(key, self._pack(value)) for key, value in answers.items()]
        self._table.execute("BEGIN IMMEDIATE")
        self._table.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", rows)
        self._table.execute("COMMIT")

    def close(self) -> None:
        """Close the file; the cache cannot be used any more."""
        self._table.close()

    @staticmethod
    def _pack(value: np.ndarray) -> bytes:
        return np.asarray(value, "<f8").tobytes()

    @staticmethod
    def _unpack(raw: bytes) -> np.ndarray:
        return np.frombuffer(raw, "<f8")


class TextCache(AnswerCache):
    """The same for answers in words: each a JSON object."""

    @staticmethod
    def _pack(value: dict[str, Any]) -> bytes:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")

    @staticmethod
    def _unpack(raw: bytes) -> dict[str, Any]:
        return json.loads(raw.decode("utf-8", "surrogatepass"))
