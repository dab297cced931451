"""SQLite cache for the answers of engines and language models.

The cache key is a SHA-256 over everything that changes an answer: the identity of the engine
(``components/identity.py``) and the input texts.

Each value ends with a CRC-32 of its key and value. An entry with a wrong checksum is deleted and
computed again. Files without checksums (an older table) are not read.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from records import UserError
from records.writing import report_write_errors

# SQLite allows 32 766 variables per statement since 3.32.
_KEYS_PER_QUERY = 10_000
_LOCK_TIMEOUT_S = 60.0
_REMEDIES = {
    sqlite3.SQLITE_FULL: "free some space",
    sqlite3.SQLITE_IOERR_WRITE: "free some space",
    sqlite3.SQLITE_BUSY: "wait for the process that writes it",
}
_CRC_BYTES = 4
# Values are read as bytes even if an entry was stored as text.
_VALUE = "CAST(value AS BLOB)"


def answer_key(engine: bytes, texts: Sequence[str]) -> bytes:
    """Cache key of one answer: the engine's fingerprint and the input texts, hashed."""
    digest = hashlib.sha256(engine)
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        # The length prefix distinguishes ("ab", "c") from ("a", "bc").
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.digest()


def _with_checksum(key: bytes, raw: bytes) -> bytes:
    return raw + zlib.crc32(key + raw).to_bytes(_CRC_BYTES, "little")


def _checked(key: bytes, value: bytes) -> bytes | None:
    raw = value[:-_CRC_BYTES]
    return raw if _with_checksum(key, raw) == value else None


# Name of the answer cache in a run folder.
ANSWERS = ".answers.sqlite"


class AnswerCache:
    """Cache of numeric answers in one SQLite file that several processes can share.

    Every ``put`` is one transaction: a killed process loses at most its current batch.

    Args:
        path: the file; created with its folder if missing.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        with report_write_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._sqlite_errors_reported():
            # In a notebook, a language model answers from another thread, one answer at a time.
            self._table = sqlite3.connect(
                self.path, timeout=_LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            self._write_ahead()
            # A power cut may lose the last batches but does not corrupt the file.
            self._table.execute("PRAGMA synchronous=NORMAL")
            self._table.execute(
                "CREATE TABLE IF NOT EXISTS checked_answers "
                "(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
            )

    @contextmanager
    def _sqlite_errors_reported(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            remedy = _REMEDIES.get(code, "delete it or use another file")
            raise UserError(f"{self.path}: cannot be used as a cache ({error}); {remedy}") from None

    def _write_ahead(self) -> None:
        end = time.monotonic() + _LOCK_TIMEOUT_S
        while True:
            try:
                self._table.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, np.ndarray]:
        """Return the cached answers among ``keys``, each a float64 array of shape (values,)."""
        answers, damaged = {}, []
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            part = list(keys[start : start + _KEYS_PER_QUERY])
            marks = ",".join("?" * len(part))
            with self._sqlite_errors_reported():
                rows = self._table.execute(
                    f"SELECT key, {_VALUE} FROM checked_answers WHERE key IN ({marks})", part
                ).fetchall()
            for key, value in rows:
                raw = _checked(key, value)
                if raw is None:
                    damaged.append((key, value))
                else:
                    answers[key] = self._unpack(raw)
        self._delete(damaged)
        return answers

    def _delete(self, damaged: Iterable[tuple[bytes, bytes]]) -> None:
        with self._sqlite_errors_reported():
            for entry in damaged:
                self._table.execute(
                    f"DELETE FROM checked_answers WHERE key = ? AND {_VALUE} = ?", entry
                )

    def put(self, answers: Mapping[bytes, np.ndarray]) -> None:
        """Store answers of shape (values,) as float64; existing entries are not overwritten."""
        rows = [(key, _with_checksum(key, self._pack(value))) for key, value in answers.items()]
        with self._sqlite_errors_reported(), self._table:  # rolls back on errors
            self._table.execute("BEGIN IMMEDIATE")
            self._table.executemany("INSERT OR IGNORE INTO checked_answers VALUES (?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        self._table.close()

    @staticmethod
    def _pack(value: np.ndarray) -> bytes:
        return np.asarray(value, "<f8").tobytes()

    @staticmethod
    def _unpack(raw: bytes) -> np.ndarray:
        return np.frombuffer(raw, "<f8")


class TextCache(AnswerCache):
    """Cache of text answers; each value is a JSON object."""

    @staticmethod
    def _pack(value: dict[str, Any]) -> bytes:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")

    @staticmethod
    def _unpack(raw: bytes) -> dict[str, Any]:
        return json.loads(raw.decode("utf-8", "surrogatepass"))
