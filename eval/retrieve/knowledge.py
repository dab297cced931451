"""FActScore's knowledge source: a SQLite file of pages, with full-text search.

FActScore (2305.14251, section 4) stores Wikipedia in one table ``documents(title, text)``. Its
texts are decoded RoBERTa tokens: ``<s>`` and ``</s>`` around each sentence, and a separator between
passages of at most 256 tokens. Files of ``python -m data_builders knowledge`` have the same table
with plain texts; the full-text index (FTS5) is another table in the same or in a separate file.
"""

import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from string import capwords
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

from jsonargparse.typing import PositiveInt

from components.words import WORD, name_key, to_nfc
from eval.retrieve.pages import PageRetriever, PassageEncoder
from eval.retrieve.search import Per
from records import Passage, UserError

# FActScore's separator of the passages of a page (factscore/retrieval.py)
SEPARATOR = "####SPECIAL####SEPARATOR####"

# Tokens of a FActScore passage, and the approximate number of English words
TOKENS = 256
WORDS = 190

# SQLite's error names for truncated and for other files
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")

_MARK = re.compile(r"</?s>")
_TERM = re.compile(WORD)
# The beginning of a disambiguation page
_MEANINGS = re.compile(
    r"[^:\n]{1,150}\b(?:can|commonly|could|may|might|often|usually)(?: also)? refers? to\b[^.:\n]*:"
)
_SENTENCE_END = re.compile(r"[.!?:;,][\"”’')\]]*$")


def is_disambiguation(title: str, text: str) -> bool:
    """Return whether a page lists the meanings of its title."""
    return title.endswith("(disambiguation)") or _MEANINGS.match(text) is not None


def plain_text(text: str) -> str:
    """Remove FActScore's marks from a page's text.

    Passages are joined without a space, since they may end inside a word; the decoded text has a
    space before each word.
    """
    if SEPARATOR not in text and "<s>" not in text:
        return text
    return " ".join(_MARK.sub(" ", text.replace(SEPARATOR, "")).split())


def section_of(text: str, section: str) -> str:
    """Return a section of a page's plain text up to the next heading; empty if it has none."""
    blocks = text.split("\n\n")
    keys = [name_key(block) for block in blocks]
    key = name_key(unquote(section))
    if key not in keys:
        return ""
    rest = blocks[keys.index(key) + 1 :]
    # A heading is a line between blank lines that does not end like a sentence.
    return "\n\n".join(takewhile(lambda block: "\n" in block or _SENTENCE_END.search(block), rest))


def passages_of(title: str, text: str, words: int | None = 100) -> list[Passage]:
    """Split a page's text into passages with ids ``TITLE#0``, ``TITLE#1``, …

    Args:
        words: length of a passage in whitespace-separated words (100 in 2402.05629); ``None``: the
            file's passages (FActScore: 256 tokens), or passages of a similar length if it has none.
    """
    if words is None and SEPARATOR not in text and len(text.split()) > TOKENS:
        words = WORDS
    if words is None:
        parts = [" ".join(_MARK.sub(" ", part).split()) for part in text.split(SEPARATOR)]
    else:
        tokens = plain_text(text).split()
        parts = [" ".join(tokens[i : i + words]) for i in range(0, len(tokens), words)]
    return [
        Passage(id=f"{title}#{number}", title=title, text=part)
        for number, part in enumerate(part for part in parts if part)
    ]


class Knowledge:
    """Read-only access to pages by title, as passages, and full-text search.

    Args:
        path: a SQLite file with the table ``documents(title, text)``.
        words: words per passage; ``None``: the file's passages.
        index: file with the full-text index, if ``path`` does not contain it.
    """

    def __init__(self, path: str | Path, words: int | None = 100, index: str | Path | None = None):
        self.path = Path(path)
        self.words = words
        self._connection = _open(self.path)
        self._index: str | None = None
        self._check_columns("documents", {"title", "text"})
        # only files of the builder have redirects
        self._redirects = self._has_table("main", "redirects")
        self._index = "main" if self._has_table("main", "documents_fts") else None
        if index is not None:
            self._attach(Path(index))

    def __contains__(self, title: str) -> bool:
        return self.resolve(title) is not None

    def __len__(self) -> int:
        return self._value("SELECT count(*) FROM documents")

    def __iter__(self) -> Iterator[str]:
        for (title,) in self._rows("SELECT title FROM documents ORDER BY rowid"):
            yield title

    @property
    def searchable(self) -> bool:
        """Whether there is a full-text index."""
        return self._index is not None

    def resolve(self, title: str) -> str | None:
        """Find a page's title, following redirects; ``None`` if there is no such page.

        If there is no exact match, the title is normalised as in MediaWiki: underscores and runs of
        spaces become one space, Unicode is NFC, the first letter is a capital. Then a title that
        differs only in case or Unicode form is used, if it is the only one. A redirect into a
        section resolves to ``PAGE#SECTION``, or ``None`` if the page has no such section.
        """
        plain = normalize("NFC", " ".join(title.replace("_", " ").split()))
        first_capital = plain[:1].upper() + plain[1:]
        for form in dict.fromkeys([title, plain, first_capital, capwords(plain)]):
            redirect = "SELECT target FROM redirects WHERE title = ?"
            target = self._redirects and self._value(redirect, form)
            for page in filter(None, (form, target)):
                if self._stored_text(page) is not None:
                    return page
        words = [f'"{word}"' for word in _words(plain)] if self.searchable else []
        titles = self._matching(f"title : {' + '.join(words)}", -1) if words else []
        same = [title for title in titles if name_key(title) == name_key(plain)]
        return same[0] if len(same) == 1 else None

    def _stored_text(self, title: str) -> tuple | None:
        query = "SELECT text FROM documents WHERE title = ?"
        row = next(self._rows(query, title), None)
        page, _, section = title.partition("#")
        if row is None and section:
            text = section_of(plain_text(self._value(query, page) or ""), section)
            row = (text,) if text else None
        return row

    def text(self, title: str) -> str:
        """A page's plain text; raises ``KeyError`` if there is no such page."""
        return plain_text(self._title_and_text(title)[1])

    def passages(self, title: str) -> list[Passage]:
        """A page's passages in order; raises ``KeyError`` if there is no such page."""
        return passages_of(*self._title_and_text(title), self.words)

    def pages(self, query: str, k: int = 5) -> list[str]:
        """Titles of the ``k`` best pages by FTS5's BM25 for any of the query's words."""
        if self._index is None:
            raise UserError(
                f"{self.path}: no full-text index; build one with `python -m data_builders "
                f"knowledge --source sqlite --input {self.path} --output FOLDER` and "
                "set index to FOLDER/knowledge.fts.db"
            )
        match = _match(query)
        return self._matching(match, k) if match else []

    def _matching(self, match: str, k: int) -> list[str]:
        rows = self._rows(
            f"SELECT rowid FROM {self._index}.documents_fts WHERE documents_fts MATCH ? "
            "ORDER BY rank, rowid LIMIT ?",
            match,
            k,
        )
        by_row = "SELECT title FROM main.documents WHERE rowid = ?"
        titles = [self._value(by_row, row) for (row,) in list(rows)]
        if None in titles:
            raise self.damage_error("the index refers to a missing row")
        return titles

    def titles_with(self, words: str, k: int = 5) -> list[str]:
        """Titles of ``k`` pages that contain all the words, shortest titles first.

        Case and punctuation are ignored. Scans all titles: about a second for Wikipedia.
        """
        required = set(_words(words.casefold()))
        # SQLite's LIKE folds the case of ASCII only, so its results are checked again.
        likes = [f"%{word}%" for word in sorted(required) if word.isascii()]
        where = " AND ".join(["title LIKE ?"] * len(likes)) or "1"
        matches = []
        for (title,) in self._rows(f"SELECT title FROM documents WHERE {where}", *likes):
            title_words = _words(title.casefold())
            if required and required <= set(title_words):
                matches.append((len(title_words), title))
        return [title for _, title in sorted(matches)[:k]]

    def _title_and_text(self, title: str) -> tuple[str, str]:
        page = self.resolve(title)
        if page is None:
            raise KeyError(title)
        (text,) = self._stored_text(page)
        if not isinstance(text, str):
            raise UserError(
                f"{self.path}: documents: the page {page!r} has no text in the column `text`; set "
                "it ('' for an empty page) or delete the row"
            )
        return page, text

    def _value(self, query: str, *values: object) -> Any:
        row = next(self._rows(query, *values), None)
        return row and row[0]

    def _rows(self, query: str, *values: object) -> Iterator[tuple]:
        try:
            yield from self._connection.execute(query, values)
        except (sqlite3.DatabaseError, MemoryError) as error:
            # Without a name: text that is not UTF-8, or a damaged length in the index that exceeds
            # the memory. Other names are I/O errors of the disk.
            name = getattr(error, "sqlite_errorname", DAMAGED[0])
            if not name.startswith(DAMAGED):
                raise
            raise self.damage_error(str(error) or "damaged length") from None

    def damage_error(self, why: str) -> UserError:
        or_index = " or its index" if self._index == "separate" else ""
        return UserError(
            f"{self.path}{or_index}: damaged SQLite file ({why}); copy or build it again"
        )

    def _has_table(self, schema: str, table: str) -> bool:
        query = f"SELECT name FROM {schema}.sqlite_master WHERE type = 'table' AND name = ?"
        return self._value(query, table) is not None

    def _check_columns(self, table: str, required: set[str]) -> None:
        try:
            rows = self._connection.execute(f"PRAGMA table_info({table})").fetchall()
        except sqlite3.DatabaseError as error:
            raise UserError(f"{self.path}: not a SQLite file ({error})") from None
        if not required <= {row[1] for row in rows}:
            raise UserError(f"{self.path}: no table {table}({', '.join(sorted(required))})")

    def _attach(self, index: Path) -> None:
        if not index.is_file():
            raise UserError(f"{index}: no such file; expected the builder's index")
        self._connection.execute("ATTACH ? AS separate", (_uri(index),))
        try:
            indexed_row = self._has_table("separate", "documents_fts") and self._value(
                "SELECT value FROM separate.meta WHERE name = 'last_row'"
            )
        except UserError:
            raise UserError(f"{index}: not a full-text index; build it again") from None
        last = self._connection.execute("SELECT max(rowid) FROM main.documents").fetchone()[0]
        if indexed_row != str(last):
            raise UserError(f"{index}: not an index of {self.path}; build it again")
        self._index = "separate"


def _uri(path: Path) -> str:
    return f"{path.resolve().as_uri()}?mode=ro"


def _open(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise UserError(f"{path}: no such file; expected SQLite with documents(title, text)")
    return sqlite3.connect(_uri(path), uri=True)


def _words(text: str) -> list[str]:
    return _TERM.findall(to_nfc(text).replace("_", " "))


def query_terms(query: str) -> list[str]:
    """The distinct lower-case words of a query, without stop words if others remain."""
    words = list(dict.fromkeys(_words(query.lower())))
    from bm25s.stopwords import STOPWORDS_EN  # imports scipy.sparse

    return [word for word in words if word not in STOPWORDS_EN] or words


def _match(query: str) -> str:
    """An FTS5 expression for any of the query's words, quoted so that none is an operator."""
    return " OR ".join(f'"{word}"' for word in query_terms(query))


class SqliteKnowledge(PageRetriever):
    """Retrieve the ``k`` best passages for each claim from the page of the document's topic.

    As in FActScore (2305.14251, section 4), the topic is the page's title, and topic and claim are
    the query for its passages. If no page has that title, or if it is a disambiguation page or a
    redirect to a missing page or section, full-text search finds the pages; without a full-text
    index, all pages whose titles contain the topic's words are used ("John Bruce": "John Bruce
    (surgeon)" and others).

    Args:
        path: SQLite file with the table ``documents(title, text)``.
        k: passages per claim (FActScore: 5).
        words: words per passage; null: the file's passages (FActScore: 256 tokens).
        index: file with the full-text index, if ``path`` does not contain it.
        topic_in_query: prepend the topic to the claim.
        encoder: sentence encoder that ranks the passages (FActScore: GTR); null: BM25.
        per: ``claim``: search for each claim; ``topic``: search once per document for its topic.
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
    def knowledge(self) -> Knowledge:
        return Knowledge(self.path, self.words, self.index)

    def _topic_passages(self, topics: Sequence[str]) -> dict[str, list[Passage] | None]:
        titles_of = {topic: self._titles(topic) for topic in topics}
        searchable = self.knowledge.searchable
        if titles_of and not any(titles_of.values()) and not searchable:
            # a warning, since these may be the last few documents of a long run
            print(
                f"warning: {self.path}: none of {len(titles_of)} topics has a page, e.g. "
                f"{topics[0]!r}, and there is no full-text index to search; build one with `python "
                f"-m data_builders knowledge --source sqlite --input {self.path} --output FOLDER` "
                "and set `index` to FOLDER/knowledge.fts.db",
                file=sys.stderr,
            )
        named = {t: titles for t, titles in titles_of.items() if titles or not searchable}
        return {topic: self._passages(titles) for topic, titles in named.items()}

    def _titles(self, topic: str) -> list[str]:
        page = self.knowledge.resolve(topic)
        if page is not None and not self._is_disambiguation(page):
            return [page]
        if self.knowledge.searchable:
            return []
        titles = self.knowledge.titles_with(topic, self.k)
        same = [title for title in titles if name_key(title) == name_key(topic)]
        return titles if page or not same else same

    def _is_disambiguation(self, title: str) -> bool:
        return is_disambiguation(title, self.knowledge.text(title))

    def _search_passages(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        return [self._passages(self.knowledge.pages(query, k)) for query in queries]

    def _passages(self, titles: Sequence[str]) -> list[Passage]:
        try:
            pages = [title for title in titles if not self._is_disambiguation(title)]
            return [passage for title in pages for passage in self.knowledge.passages(title)]
        except KeyError as error:
            # resolve() and pages() return titles of the file
            raise self.knowledge.damage_error(f"no page {error} for a title that it has") from None
