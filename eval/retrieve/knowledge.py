"""FActScore's knowledge source, read as it is: a SQLite file of pages, with full-text search.

FActScore (2305.14251, section 4) keeps Wikipedia in one table ``documents(title, text)``. Its texts
are the decoded tokens of RoBERTa: ``<s>`` and ``</s>`` around every sentence, and a separator
between passages of at most 256 tokens. Files of plain texts (``python -m data_builders knowledge``)
have the same table; a full-text index (FTS5) is a second table, in the same file or beside it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from bm25s.stopwords import STOPWORDS_EN

from eval.retrieve.bm25 import PassageIndex
from eval.retrieve.hits import queries_of, with_contexts
from records import Claim, Document, Passage, UserError

# What FActScore writes between the passages of a page (factscore/retrieval.py).
SEPARATOR = "####SPECIAL####SEPARATOR####"

_MARK = re.compile(r"</?s>")
_TERM = re.compile(r"\w+")


def plain_text(text: str) -> str:
    """A page's text without FActScore's marks: its passages joined, its sentences spaced.

    A token may be cut at the end of a passage, so passages are joined without a space; the
    decoded text has one wherever a word begins.
    """
    if SEPARATOR not in text and "<s>" not in text:
        return text
    return " ".join(_MARK.sub(" ", text.replace(SEPARATOR, "")).split())


def passages_of(title: str, text: str, words: int | None = 100) -> list[Passage]:
    """A page's text as passages; their ids are the title and a number from 0.

    Args:
        title: the page's title.
        text: the page's text, as it stands in the file.
        words: length of a passage in whitespace words (100 in 2402.05629); ``None`` for the
            passages that the file has, which are 256 tokens in FActScore's.
    """
    if words is None:
        parts = [" ".join(_MARK.sub(" ", part).split()) for part in text.split(SEPARATOR)]
    else:
        every = plain_text(text).split()
        parts = [" ".join(every[i : i + words]) for i in range(0, len(every), words)]
    return [
        Passage(id=f"{title}#{number}", title=title, text=part)
        for number, part in enumerate(part for part in parts if part)
    ]


class Knowledge:
    """Pages by title, cut into passages, and full-text search; the file is never written to.

    Args:
        path: a SQLite file with the table ``documents(title, text)``.
        words: words a passage; ``None`` for the passages that the file has.
        index: file with the full-text index of ``path``, where ``path`` has none itself.

    Raises:
        UserError: no such file, not such a file, or an index of another file.
    """

    def __init__(self, path: str | Path, words: int | None = 100, index: str | Path | None = None):
        if words is not None and words < 1:
            raise UserError(f"words: {words}; give at least 1, or null for the file's own passages")
        self.path = Path(path)
        self.words = words
        self._connection = _open(self.path)
        self._columns("documents", {"title", "text"})
        # Titles that lead to another page; only files of the builder have them.
        self._redirects = self._has("main", "redirects")
        self._index = "main" if self._has("main", "documents_fts") else None
        if index is not None:
            self._attach(Path(index))

    def __contains__(self, title: str) -> bool:
        return self.resolve(title) is not None

    def __len__(self) -> int:
        return self._connection.execute("SELECT count(*) FROM documents").fetchone()[0]

    def __iter__(self) -> Iterator[str]:
        """The titles, one at a time, in the file's order."""
        for (title,) in self._connection.execute("SELECT title FROM documents ORDER BY rowid"):
            yield title

    @property
    def searchable(self) -> bool:
        """Whether there is a full-text index."""
        return self._index is not None

    def resolve(self, title: str) -> str | None:
        """The title of the page that ``title`` names, itself or by a redirect."""
        found = self._one("SELECT title FROM documents WHERE title = ?", title)
        if found is None and self._redirects:
            found = self._one(
                "SELECT d.title FROM redirects r JOIN documents d ON d.title = r.target "
                "WHERE r.title = ?",
                title,
            )
        return found

    def text(self, title: str) -> str:
        """A page's plain text.

        Raises:
            KeyError: no page of that title.
        """
        return plain_text(self._raw(title)[1])

    def passages(self, title: str) -> list[Passage]:
        """A page's passages in their order.

        Raises:
            KeyError: no page of that title.
        """
        return passages_of(*self._raw(title), self.words)

    def pages(self, query: str, k: int = 5) -> list[str]:
        """Titles of the ``k`` pages that match best, by FTS5's BM25; any word may match.

        Raises:
            UserError: the file has no full-text index.
        """
        if self._index is None:
            raise UserError(
                f"{self.path}: no full-text index; build one with `python -m data_builders "
                f"knowledge --source sqlite --input {self.path} --output FOLDER` and give "
                "FOLDER/knowledge.fts.db as the index"
            )
        match = _match(query)
        if not match:
            return []
        found = self._connection.execute(
            f"SELECT rowid FROM {self._index}.documents_fts WHERE documents_fts MATCH ? "
            "ORDER BY rank, rowid LIMIT ?",
            (match, k),
        ).fetchall()
        by_row = "SELECT title FROM main.documents WHERE rowid = ?"
        return [self._connection.execute(by_row, row).fetchone()[0] for row in found]

    def search(self, query: str, k: int = 5) -> list[Passage]:
        """The ``k`` best passages: full-text search finds ``k`` pages, BM25 ranks their passages.

        Raises:
            UserError: the file has no full-text index.
        """
        found = [passage for title in self.pages(query, k) for passage in self.passages(title)]
        return PassageIndex(found).search([query], k)[0]

    def _raw(self, title: str) -> tuple[str, str]:
        own = self.resolve(title)
        if own is None:
            raise KeyError(title)
        return own, self._one("SELECT text FROM documents WHERE title = ?", own)

    def _one(self, query: str, *values: str) -> str | None:
        row = self._connection.execute(query, values).fetchone()
        return row and row[0]

    def _has(self, schema: str, table: str) -> bool:
        query = f"SELECT name FROM {schema}.sqlite_master WHERE type = 'table' AND name = ?"
        return self._one(query, table) is not None

    def _columns(self, table: str, wanted: set[str]) -> None:
        try:
            rows = self._connection.execute(f"PRAGMA table_info({table})").fetchall()
        except sqlite3.DatabaseError as error:
            raise UserError(f"{self.path}: not a SQLite file ({error})") from None
        if not wanted <= {row[1] for row in rows}:
            raise UserError(f"{self.path}: no table {table}({', '.join(sorted(wanted))})")

    def _attach(self, index: Path) -> None:
        """Use an index that stands beside the pages; it must have been made from them."""
        if not index.is_file():
            raise UserError(f"{index}: no such file; give the index that the builder wrote")
        self._connection.execute("ATTACH ? AS beside", (_uri(index),))
        try:
            mine = self._has("beside", "documents_fts") and self._one(
                "SELECT value FROM beside.meta WHERE name = 'last_row'"
            )
        except sqlite3.DatabaseError as error:
            raise UserError(f"{index}: not a full-text index ({error})") from None
        last = self._connection.execute("SELECT max(rowid) FROM main.documents").fetchone()[0]
        if mine != str(last):
            raise UserError(f"{index}: not an index of {self.path}; build it again")
        self._index = "beside"


def _uri(path: Path) -> str:
    return f"{path.resolve().as_uri()}?mode=ro"


def _open(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise UserError(f"{path}: no such file; give a SQLite file with documents(title, text)")
    return sqlite3.connect(_uri(path), uri=True)


def _match(query: str) -> str:
    """An FTS5 expression that any of the query's words matches; empty when it has none.

    Quoted, a word is no operator. Words that stand on most pages only cost time, so they are left
    out where others remain.
    """
    words = list(dict.fromkeys(_TERM.findall(query.lower())))
    telling = [word for word in words if word not in STOPWORDS_EN]
    return " OR ".join(f'"{word}"' for word in telling or words)


class SqliteKnowledge:
    """The ``k`` best passages for each claim, from the page of the document's topic.

    As FActScore does (2305.14251, section 4): the topic is the page's title, and BM25 ranks the
    page's passages by the topic and the claim. Where no page has that title, full-text search
    finds the pages instead.

    Args:
        path: SQLite file with the table ``documents(title, text)``.
        k: passages a claim (FActScore: 5).
        words: words a passage; null for the passages that the file has (FActScore: 256 tokens).
        index: file with the full-text index, where ``path`` has none itself.
        topic_in_query: whether the topic goes before the claim.
    """

    def __init__(
        self,
        path: str,
        k: int = 5,
        words: int | None = 100,
        index: str | None = None,
        topic_in_query: bool = True,
    ):
        self.path = Path(path)
        self.k = k
        self.words = words
        self.index = index
        self.topic_in_query = topic_in_query

    @cached_property
    def knowledge(self) -> Knowledge:
        """The pages, opened when first asked."""
        return Knowledge(self.path, self.words, self.index)

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        """Claims with ``contexts`` (best first) and the passages that each document's claims use.

        A claim without any matching passage gets ``contexts=[]``.

        Raises:
            UserError: a topic has no page and there is no full-text index to search.
        """
        absent = sorted({d.topic for d in documents} - {d.topic for d in documents if self._is(d)})
        if absent and not self.knowledge.searchable:
            raise UserError(
                f"{self.path}: {len(absent)} topics have no page, e.g. {absent[0]!r}, and there is "
                "no full-text index to search; build one with `python -m data_builders knowledge "
                f"--source sqlite --input {self.path}` and give it as `index`"
            )
        pages: dict[str, PassageIndex] = {}
        queries = queries_of(documents, claims, self.topic_in_query)
        hits = [self._hits(d, own, pages) for d, own in zip(documents, queries, strict=True)]
        return with_contexts(claims, hits)

    def _is(self, document: Document) -> bool:
        return document.topic in self.knowledge

    def _hits(
        self, document: Document, queries: list[str], pages: dict[str, PassageIndex]
    ) -> list[list[Passage]]:
        topic = document.topic
        if not self._is(document):
            return [self.knowledge.search(query, self.k) for query in queries]
        if topic not in pages:
            pages[topic] = PassageIndex(self.knowledge.passages(topic))
        return pages[topic].search(queries, self.k)
