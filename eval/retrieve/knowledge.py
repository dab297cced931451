"""FActScore's knowledge source, read as it is: a SQLite file of pages, with full-text search.

FActScore (2305.14251, section 4) keeps Wikipedia in one table ``documents(title, text)``. Its texts
are the decoded tokens of RoBERTa: ``<s>`` and ``</s>`` around every sentence, and a separator
between passages of at most 256 tokens. Files of plain texts (``python -m data_builders knowledge``)
have the same table; a full-text index (FTS5) is a second table, in the same file or beside it.
"""

import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from unicodedata import normalize

from jsonargparse.typing import PositiveInt

from components.words import WORD, to_nfc
from eval.retrieve.pages import PageRetriever, PassageEncoder
from eval.retrieve.search import Per
from records import Passage, UserError, sha256_file

# What FActScore writes between the passages of a page (factscore/retrieval.py).
SEPARATOR = "####SPECIAL####SEPARATOR####"

# Tokens of a passage of FActScore's, and the words of English text that are about as many.
TOKENS = 256
WORDS = 190

# What SQLite calls a file that is torn, or none of its.
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")

_MARK = re.compile(r"</?s>")
_TERM = re.compile(WORD)


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
            passages that the file has, which are 256 tokens in FActScore's. A text without any
            is then cut into passages of about as many.
    """
    if words is None and SEPARATOR not in text and len(text.split()) > TOKENS:
        words = WORDS
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
    """

    def __init__(self, path: str | Path, words: int | None = 100, index: str | Path | None = None):
        self.path = Path(path)
        self.words = words
        self._connection = _open(self.path)
        self._index: str | None = None
        self._columns("documents", {"title", "text"})
        # Titles that lead to another page; only files of the builder have them.
        self._redirects = self._has("main", "redirects")
        self._index = "main" if self._has("main", "documents_fts") else None
        if index is not None:
            self._attach(Path(index))

    def __contains__(self, title: str) -> bool:
        return self.resolve(title) is not None

    def __len__(self) -> int:
        return self._one("SELECT count(*) FROM documents")

    def __iter__(self) -> Iterator[str]:
        for (title,) in self._rows("SELECT title FROM documents ORDER BY rowid"):
            yield title

    @property
    def searchable(self) -> bool:
        """Whether there is a full-text index."""
        return self._index is not None

    def resolve(self, title: str) -> str | None:
        """The title of the page that ``title`` names, itself or by a redirect.

        Where it names none to the letter, it is read as MediaWiki reads a title: underscores and
        runs of spaces are one space, the form of Unicode is NFC, the first letter a capital.
        """
        plain = normalize("NFC", " ".join(title.replace("_", " ").split()))
        for form in dict.fromkeys([title, plain, plain[:1].upper() + plain[1:]]):
            found = self._one("SELECT title FROM documents WHERE title = ?", form)
            if found is None and self._redirects:
                found = self._one(
                    "SELECT d.title FROM redirects r JOIN documents d ON d.title = r.target "
                    "WHERE r.title = ?",
                    form,
                )
            if found is not None:
                return found
        return None

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
        """Titles of the ``k`` pages that match best, by FTS5's BM25; any word may match."""
        if self._index is None:
            raise UserError(
                f"{self.path}: no full-text index; build one with `python -m data_builders "
                f"knowledge --source sqlite --input {self.path} --output FOLDER` and give "
                "FOLDER/knowledge.fts.db as the index"
            )
        match = _match(query)
        if not match:
            return []
        found = self._rows(
            f"SELECT rowid FROM {self._index}.documents_fts WHERE documents_fts MATCH ? "
            "ORDER BY rank, rowid LIMIT ?",
            match,
            k,
        )
        by_row = "SELECT title FROM main.documents WHERE rowid = ?"
        titles = [self._one(by_row, row) for (row,) in list(found)]
        if None in titles:
            raise self.damaged("it finds a row that is not there")
        return titles

    def titles_with(self, words: str, k: int = 5) -> list[str]:
        """Titles of ``k`` pages that have all the words, those with the fewest others first.

        Case and punctuation do not count. All titles are looked at: about a second for Wikipedia's.
        """
        wanted = set(_words(words.casefold()))
        # SQLite's LIKE folds the case of ASCII only; what it lets through is looked at again.
        likes = [f"%{word}%" for word in sorted(wanted) if word.isascii()]
        where = " AND ".join(["title LIKE ?"] * len(likes)) or "1"
        found = []
        for (title,) in self._rows(f"SELECT title FROM documents WHERE {where}", *likes):
            own = _words(title.casefold())
            if wanted and wanted <= set(own):
                found.append((len(own), title))
        return [title for _, title in sorted(found)[:k]]

    def _raw(self, title: str) -> tuple[str, str]:
        own = self.resolve(title)
        if own is None:
            raise KeyError(title)
        text = self._one("SELECT text FROM documents WHERE title = ?", own)
        if not isinstance(text, str):
            raise UserError(
                f"{self.path}: documents: the page {own!r} has no text in the column `text`; give "
                "it one, '' where the page is empty, or take the row out"
            )
        return own, text

    def _one(self, query: str, *values: object) -> Any:
        row = next(self._rows(query, *values), None)
        return row and row[0]

    def _rows(self, query: str, *values: object) -> Iterator[tuple]:
        try:
            yield from self._connection.execute(query, values)
        except (sqlite3.DatabaseError, MemoryError) as error:
            # One without a name is of a text that is not UTF-8, or of a torn length in the index,
            # for which no memory is enough; others are the disk's.
            name = getattr(error, "sqlite_errorname", DAMAGED[0])
            if not name.startswith(DAMAGED):
                raise
            raise self.damaged(str(error) or "a torn length") from None

    def damaged(self, why: str) -> UserError:
        """What to raise where the file answers what cannot be."""
        or_index = " or its index" if self._index == "beside" else ""
        return UserError(
            f"{self.path}{or_index}: not a whole SQLite file ({why}); copy or build it again"
        )

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
        if not index.is_file():
            raise UserError(f"{index}: no such file; give the index that the builder wrote")
        self._connection.execute("ATTACH ? AS beside", (_uri(index),))
        try:
            mine = self._has("beside", "documents_fts") and self._one(
                "SELECT value FROM beside.meta WHERE name = 'last_row'"
            )
        except UserError:
            raise UserError(f"{index}: not a full-text index; build it again") from None
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


def _words(text: str) -> list[str]:
    return _TERM.findall(to_nfc(text).replace("_", " "))


def query_terms(query: str) -> list[str]:
    """The distinct words of a query in small letters, in their order.

    Words that stand on most pages only cost time, so they are left out where others remain.
    """
    words = list(dict.fromkeys(_words(query.lower())))
    from bm25s.stopwords import STOPWORDS_EN  # imports scipy.sparse

    return [word for word in words if word not in STOPWORDS_EN] or words


def _match(query: str) -> str:
    """An FTS5 expression that any of the query's words matches; empty when it has none.

    Quoted, a word is no operator.
    """
    return " OR ".join(f'"{word}"' for word in query_terms(query))


class SqliteKnowledge(PageRetriever):
    """The ``k`` best passages for each claim, from the page of the document's topic.

    As FActScore does (2305.14251, section 4): the topic is the page's title, and the page's
    passages are ranked by the topic and the claim. Where no page has that title, full-text search
    finds the pages; without a full-text index they are those whose titles have all words of the
    topic ("John Bruce": "John Bruce (surgeon)" and his namesakes).

    Args:
        path: SQLite file with the table ``documents(title, text)``.
        k: passages a claim (FActScore: 5).
        words: words a passage; null for the passages that the file has (FActScore: 256 tokens).
        index: file with the full-text index, where ``path`` has none itself.
        topic_in_query: whether the topic goes before the claim.
        encoder: a sentence encoder that ranks the passages (FActScore: GTR); null for BM25.
        per: ``claim`` searches for each claim, ``topic`` once a document, for its topic alone.
    """

    def __init__(
        self,
        path: str,
        k: PositiveInt = 5,
        words: PositiveInt | None = 100,
        index: str | None = None,
        topic_in_query: bool = True,
        encoder: PassageEncoder | None = None,
        per: Per = "claim",
    ):
        super().__init__(k, words, encoder, topic_in_query, per)
        self.path = Path(path)
        self.index = index

    @cached_property
    def identity(self) -> dict[str, Any]:
        found = {**self._settings(), "pages_sha256": sha256_file(self.path)}
        return found | ({"index_sha256": sha256_file(self.index)} if self.index else {})

    @cached_property
    def knowledge(self) -> Knowledge:
        """The pages, opened when first asked."""
        return Knowledge(self.path, self.words, self.index)

    def _named(self, topics: Sequence[str]) -> dict[str, list[Passage] | None]:
        """The passages of each topic's page.

        Without an index, those of the pages of its words, and none where there are no such pages.
        """
        found = {topic: self._titles(topic) for topic in topics}
        searchable = self.knowledge.searchable
        if found and not any(found.values()) and not searchable:
            # No error: these may be the last few documents of a long run.
            print(
                f"warning: {self.path}: none of {len(found)} topics has a page, e.g. "
                f"{topics[0]!r}, and there is no full-text index to search; build one with `python "
                f"-m data_builders knowledge --source sqlite --input {self.path} --output FOLDER` "
                "and give FOLDER/knowledge.fts.db as `index`",
                file=sys.stderr,
            )
        there = {t: titles for t, titles in found.items() if titles or not searchable}
        return {topic: self._passages(titles) for topic, titles in there.items()}

    def _titles(self, topic: str) -> list[str]:
        page = self.knowledge.resolve(topic)
        if page is None and not self.knowledge.searchable:
            return self.knowledge.titles_with(topic, self.k)
        return [] if page is None else [page]

    def _matching(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        return [self._passages(self.knowledge.pages(query, k)) for query in queries]

    def _passages(self, titles: Sequence[str]) -> list[Passage]:
        try:
            return [passage for title in titles for passage in self.knowledge.passages(title)]
        except KeyError as error:
            # The titles are the file's own.
            raise self.knowledge.damaged(f"no page {error} for a title that it has") from None
