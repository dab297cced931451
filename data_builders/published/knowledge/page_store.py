"""The resumable database of a build.

Each transaction commits a batch of documents, their full-text index entries and the position in the
source. An interrupted build resumes after its last batch, and its output is byte-identical.
"""

import hashlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from data_builders.published.knowledge.page_sources import Item
from eval.retrieve.knowledge import DAMAGED, plain_text
from records import UserError, sha256_text

PAGE_CACHE = -65536  # KiB, negative by SQLite's convention
# ``content=''``: the index does not store the texts; its rowids are those of ``documents``.
INDEX = (
    "CREATE VIRTUAL TABLE documents_fts USING fts5(title, text, content='', "
    "tokenize='porter unicode61 remove_diacritics 2')"
)
NO_TITLE = "page without a title"
NO_TEXT = "page without text"
DUPLICATE = "page whose title another page has"
HOLES = "sentence with a template whose text is unknown"
NOT_UNICODE = "page whose text is not valid Unicode"


class Store:
    """A database under construction.

    Args:
        path: path of the partial file.
        key: hash of the build's inputs; a database with another key is deleted.
        with_pages: store the pages and their index, not only the index.
    """

    def __init__(self, path: Path, key: str, with_pages: bool):
        self.path = path
        self.with_pages = with_pages
        self._connection = self._open()
        if self._meta("key") != key:
            self._connection.close()
            for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
                name.unlink(missing_ok=True)
            self._connection = self._open()
            self._create(key)
        self.position = int(self._meta("position"))
        self.last_row = int(self._meta("last_row"))
        self.dropped: Counter[str] = Counter(json.loads(self._meta("dropped")))
        self.done = self._meta("done") == "yes"

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, isolation_level=None)
        with self._report_damage():
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = {PAGE_CACHE}")
        connection.execute("PRAGMA temp_store = FILE")
        return connection

    @contextmanager
    def _report_damage(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if not getattr(error, "sqlite_errorname", "").startswith(DAMAGED):
                raise
            raise UserError(f"{self.path}: damaged ({error}); delete it and build again") from None

    def _create(self, key: str) -> None:
        with self._transaction():
            run = self._connection.execute
            run("CREATE TABLE meta (name PRIMARY KEY, value)")
            if self.with_pages:
                run("CREATE TABLE documents (title PRIMARY KEY, text)")
                run("CREATE TABLE redirects (title PRIMARY KEY, target)")
            run(INDEX)
            start = {"key": key, "position": 0, "last_row": 0, "dropped": "{}", "done": "no"}
            for name, value in start.items():
                self._set(name, value)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._report_damage():
            self._connection.execute("BEGIN IMMEDIATE")
            with self._connection:
                yield

    def _meta(self, name: str) -> str | None:
        try:
            query = "SELECT value FROM meta WHERE name = ?"
            with self._report_damage():
                row = self._connection.execute(query, (name,)).fetchone()
        except sqlite3.OperationalError:
            return None
        return row and row[0]

    def _set(self, name: str, value: object) -> None:
        self._connection.execute("REPLACE INTO meta VALUES (?, ?)", (name, str(value)))

    def write(self, items: Sequence[Item]) -> None:
        with self._transaction():
            for item in items:
                self._add(item)
            self.position += len(items)
            self._set("position", self.position)
            self._set("last_row", self.last_row)
            self._set("dropped", json.dumps(self.dropped, sort_keys=True))

    def _add(self, item: Item) -> None:
        title, text = item.title.strip(), item.text
        if item.row is not None:
            title = item.title  # unchanged from the file
        if item.left_out:
            self.dropped[HOLES] += item.left_out
        reason = item.drop or _fault(title, text, item.target)
        run = self._connection.execute
        if not reason and item.target is not None:
            run("INSERT OR IGNORE INTO redirects VALUES (?, ?)", (title, item.target))
            return
        if not reason and item.row is None:
            added = run("INSERT OR IGNORE INTO documents VALUES (?, ?)", (title, text))
            reason = None if added.rowcount else DUPLICATE
        if reason:
            self.dropped[reason] += 1
            self.last_row = item.row or self.last_row
            return
        self.last_row = item.row or self.last_row + 1
        index = "INSERT INTO documents_fts (rowid, title, text) VALUES (?, ?, ?)"
        run(index, (self.last_row, title, plain_text(text)))

    def finish(self, path: Path) -> None:
        """Optimize the index and write a compact copy to ``path``."""
        if not self.done:
            with self._transaction():
                self._connection.execute(
                    "INSERT INTO documents_fts (documents_fts) VALUES ('optimize')"
                )
                self._set("done", "yes")
            self.done = True
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.unlink(missing_ok=True)
        with self._report_damage():
            self._connection.execute("VACUUM INTO ?", (str(temporary),))
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)

    def close(self) -> None:
        self._connection.close()


def _fault(title: str, text: str, target: str | None) -> str | None:
    if not title:
        return NO_TITLE
    if target is None and not text.strip():
        return NO_TEXT
    try:
        (title + text + (target or "")).encode("utf-8")
    except UnicodeEncodeError:
        return NOT_UNICODE
    return None


def content_sha256(path: Path) -> str:
    """Return the SHA-256 of the sorted titles and their texts' SHA-256."""
    digest = hashlib.sha256()
    for title, text in _rows(path, "SELECT title, text FROM documents ORDER BY title"):
        digest.update(f"{title}\0{sha256_text(text)}\n".encode())
    return digest.hexdigest()


def titles(path: Path) -> Iterator[dict]:
    for title, text in _rows(path, "SELECT title, text FROM documents ORDER BY rowid"):
        yield {"title": title, "words": len(plain_text(text or "").split())}


def count(path: Path, table: str) -> int:
    return next(_rows(path, f"SELECT count(*) FROM {table}"))[0]


def _rows(path: Path, query: str) -> Iterator[tuple]:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        yield from connection.execute(query)
    finally:
        connection.close()
