"""The database while it grows: batches that are written whole, with the place in the source.

Documents, their full-text index and the position are committed together, so a build that is killed
goes on behind its last batch, and the batches, and with them the finished bytes, are the same.
"""

import hashlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from data_builders.published.knowledge.sources import Item
from eval.retrieve.knowledge import DAMAGED, plain_text
from records import UserError, sha256_text

PAGE_CACHE = -65536  # KiB, negative by SQLite's convention
# ``content=''``: the index holds no text of its own; its rows are those of ``documents``.
INDEX = (
    "CREATE VIRTUAL TABLE documents_fts USING fts5(title, text, content='', "
    "tokenize='porter unicode61 remove_diacritics 2')"
)
NO_TITLE = "page without a title"
NO_TEXT = "page without text"
DUPLICATE = "page whose title another page has"
NOT_UNICODE = "page whose text is not valid Unicode"


class Store:
    """A database that is being built.

    Args:
        path: where it grows.
        key: what the build depends on; a database of another key is thrown away.
        with_pages: whether the pages themselves are kept, or only their index.
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
        with self._told():
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = {PAGE_CACHE}")
        connection.execute("PRAGMA temp_store = FILE")
        return connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if not getattr(error, "sqlite_errorname", "").startswith(DAMAGED):
                raise
            raise UserError(f"{self.path}: damaged ({error}); delete it, start again") from None

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
        with self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            with self._connection:
                yield

    def _meta(self, name: str) -> str | None:
        try:
            query = "SELECT value FROM meta WHERE name = ?"
            with self._told():
                row = self._connection.execute(query, (name,)).fetchone()
        except sqlite3.OperationalError:
            return None
        return row and row[0]

    def _set(self, name: str, value: object) -> None:
        self._connection.execute("REPLACE INTO meta VALUES (?, ?)", (name, str(value)))

    def write(self, items: Sequence[Item]) -> None:
        """Add a batch, whole or not at all."""
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
            title = item.title  # the file's own, to the letter
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
        """Merge the index, and put a compact copy in its place."""
        if not self.done:
            with self._transaction():
                self._connection.execute(
                    "INSERT INTO documents_fts (documents_fts) VALUES ('optimize')"
                )
                self._set("done", "yes")
            self.done = True
        beside = path.with_name(f".{path.name}.tmp")
        beside.unlink(missing_ok=True)
        with self._told():
            self._connection.execute("VACUUM INTO ?", (str(beside),))
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)

    def close(self) -> None:
        """Close the database; it stays where it is."""
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
    """SHA-256 over the pages' titles, sorted by their bytes, and the SHA-256 of their texts."""
    digest = hashlib.sha256()
    for title, text in _rows(path, "SELECT title, text FROM documents ORDER BY title"):
        digest.update(f"{title}\0{sha256_text(text)}\n".encode())
    return digest.hexdigest()


def titles(path: Path) -> Iterator[dict]:
    """Each page's title and how many whitespace words its text has, in the file's order."""
    for title, text in _rows(path, "SELECT title, text FROM documents ORDER BY rowid"):
        yield {"title": title, "words": len(plain_text(text or "").split())}


def count(path: Path, table: str) -> int:
    """How many rows a table has."""
    return next(_rows(path, f"SELECT count(*) FROM {table}"))[0]


def _rows(path: Path, query: str) -> Iterator[tuple]:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        yield from connection.execute(query)
    finally:
        connection.close()
