"""The table of candidates on disk, with their frequencies and drawn order.

A candidate is a DBpedia resource of a corpus map, a PopQA entity, or an item of the endpoint. Of
millions of candidates only a few thousand are queried: each frequency bin is a queue in an order
drawn from the seed, and topics are sampled from its start.
"""

import hashlib
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from data_builders.kb.bios.npz import array_lengths, count_arrays
from data_builders.kb.facts import bin_of
from data_builders.rows import source_rows
from records import BadInput

SOURCES = ("corpus", "popqa", "endpoint")
CORPUS, POPQA, ENDPOINT = range(3)

# DBpedia escapes all ASCII characters except these.
_PLAIN = "".join(chr(n) for n in range(33, 127) if chr(n) not in '"#%<>?[\\]^`{|}')
_RESOURCE = re.compile(r"https?://(?:www\.)?dbpedia\.org/resource/(.+)")


@dataclass(frozen=True)
class Candidate:
    """A row of the table: IRI, index in ``SOURCES``, frequency, and rank in the drawn order."""

    id: str
    kind: int
    n: int
    rank: int


class Candidates:
    """Candidates in an empty SQLite scratch file; ``edges`` are the bins' least frequencies."""

    def __init__(self, base: sqlite3.Connection, seed: int, edges: Sequence[int]):
        self.edges = list(edges)
        self._base = base
        self._base.create_function("rank_of", 1, lambda id: rank_of(seed, id))
        self._base.create_function("bin_of", 1, self.bin)
        self._base.executescript(
            "CREATE TABLE seen (id TEXT, kind INTEGER, n INTEGER);"
            "CREATE TABLE same (uri TEXT, item TEXT, PRIMARY KEY (uri, item)) WITHOUT ROWID;"
            "CREATE TABLE topic (item TEXT PRIMARY KEY, bin INTEGER, letter TEXT, rank INTEGER,"
            " row TEXT) WITHOUT ROWID;"
        )

    def bin(self, n: int) -> int:
        """Return the index of a frequency's bin."""
        return bin_of(n, self.edges)

    def add(self, kind: int, frequencies: Iterable[tuple[str, int]]) -> None:
        """Add frequencies: counts of corpus maps are summed, others take the maximum."""
        self._base.execute("BEGIN")
        rows = ((id, kind, n) for id, n in frequencies)
        self._base.executemany("INSERT INTO seen VALUES (?, ?, ?)", rows)
        self._base.execute("COMMIT")

    def order(self) -> None:
        """Draw the order of each bin; no frequency can be added afterwards."""
        self._base.executescript(
            "CREATE TABLE candidate (id TEXT PRIMARY KEY, kind INTEGER, n INTEGER, bin INTEGER,"
            " rank INTEGER) WITHOUT ROWID;"
            "INSERT INTO candidate SELECT id, kind, n, bin_of(n), rank_of(id) FROM"
            f" (SELECT id, kind, CASE kind WHEN {CORPUS} THEN sum(n) ELSE max(n) END AS n"
            "   FROM seen GROUP BY id, kind);"
            "DROP TABLE seen;"
            "CREATE INDEX queue ON candidate (bin, rank, id);"
        )

    def __len__(self) -> int:
        return self._base.execute("SELECT count(*) FROM candidate").fetchone()[0]

    def queue(self, index: int, size: int, limit: int | None = None) -> Iterator[list[Candidate]]:
        """Yield a bin's candidates in order, ``size`` at a time, at most ``limit``."""
        left = limit if limit is not None else 1 << 62
        after = (-(1 << 63), "")
        while rows := self._base.execute(
            "SELECT id, kind, n, rank FROM candidate WHERE bin = ? AND (rank, id) > (?, ?)"
            " ORDER BY rank, id LIMIT ?",
            (index, *after, min(size, left)),
        ).fetchall():
            yield [Candidate(*row) for row in rows]
            left -= len(rows)
            after = (rows[-1][3], rows[-1][0])

    def get(self, id: str) -> Candidate | None:
        """Return the candidate with an IRI."""
        query = "SELECT id, kind, n, rank FROM candidate WHERE id = ?"
        row = self._base.execute(query, (id,)).fetchone()
        return row and Candidate(*row)

    def add_same(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Store the items of resources that are candidates."""
        self._base.execute("BEGIN")
        self._base.executemany(
            "INSERT OR IGNORE INTO same SELECT ?1, ?2"
            " WHERE EXISTS (SELECT 1 FROM candidate WHERE id = ?1)",
            pairs,
        )
        self._base.execute("COMMIT")
        self._base.execute("CREATE INDEX IF NOT EXISTS back ON same (item, uri)")

    def same(self, column: str, values: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield (resource, item) pairs whose ``column`` is one of the values."""
        for value in values:
            query = f"SELECT uri, item FROM same WHERE {column} = ? ORDER BY uri, item"
            yield from self._base.execute(query, (value,))

    def add_topic(self, item: str, index: int, letter: str, rank: int, row: str) -> bool:
        """Store a topic with its cell; return False if the item is already a topic."""
        query = "INSERT OR IGNORE INTO topic VALUES (?, ?, ?, ?, ?)"
        return self._base.execute(query, (item, index, letter, rank, row)).rowcount == 1

    def first_topics(self, index: int, letter: str, number: int) -> list[tuple[int, str]]:
        """Return rank and row of the first topics of a cell."""
        query = (
            "SELECT rank, row FROM topic WHERE bin = ? AND letter = ? ORDER BY rank, item LIMIT ?"
        )
        return self._base.execute(query, (index, letter, number)).fetchall()


def rank_of(seed: int, id: str) -> int:
    """Return a candidate's position in the drawn order: 64 bits, the same on every machine."""
    digest = hashlib.sha256(f"{seed}:{id}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def resource(uri: str) -> str | None:
    """Normalize a DBpedia resource to DBpedia's spelling; ``None`` for other URIs.

    Kandpal et al.'s maps also contain error marks of their entity linker. ``Beyonc%C3%A9`` and
    ``Beyoncé`` are one resource.
    """
    match = _RESOURCE.fullmatch(uri)
    if match is None:
        return None
    name = unquote(match[1], errors="replace")
    return "http://dbpedia.org/resource/" + "".join(
        c if c in _PLAIN or (ord(c) > 127 and c.isprintable()) else quote(c) for c in name
    )


def corpus_frequencies(paths: Sequence[str], dropped: Counter[str]) -> Iterator[tuple[str, int]]:
    """Yield resource and number of documents that name it, from all corpus maps."""
    for path in paths:
        for name, documents in array_lengths(path):
            uri = resource(name)
            if uri is None:
                dropped["name in a corpus map that is not a DBpedia resource"] += 1
            else:
                yield uri, documents


def count_resources(paths: Sequence[str]) -> int:
    """Count the names of all maps."""
    return sum(count_arrays(path) for path in paths)


def popqa_frequencies(source: str) -> Iterator[tuple[str, int]]:
    """Yield item and popularity of the subjects and objects of PopQA (2212.10511)."""
    for where, row in source_rows(source):
        for side in "so":
            iri, popularity = row.get(f"{side}_uri"), row.get(f"{side}_pop")
            if not iri:
                raise BadInput([f"{where}: {side}_uri: field required"])
            try:
                yield iri, int(popularity)
            except (TypeError, ValueError):
                raise BadInput(
                    [f"{where}: {side}_pop: expected an integer, got {popularity!r}"]
                ) from None
