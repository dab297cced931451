"""All pairs of a build on the disk: each once, in a seeded order that no row decides."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator

from data_builders.published.pairs.formats import Found
from data_builders.splits import SPLITS, split_at

_TABLE = """
CREATE TABLE pairs (
    mark BLOB PRIMARY KEY, source INTEGER, split INTEGER, label, clash INTEGER DEFAULT 0,
    kept INTEGER DEFAULT 1, premise TEXT, hypothesis TEXT, grouping TEXT
) WITHOUT ROWID
"""


def digest(*parts: object) -> bytes:
    """Sixteen bytes that stand for some texts."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:16]


class PairStore:
    """A temporary SQLite file of pairs, keyed by a seeded hash of premise and hypothesis.

    Args:
        base: an empty scratch file.
        shares: of train, dev and test.
        seed: of the order and of the split.
    """

    def __init__(self, base: sqlite3.Connection, shares: tuple[int, int, int], seed: int):
        self.shares = shares
        self.seed = seed
        self.merged: Counter[int] = Counter()
        self._db = base
        self._db.execute(_TABLE)
        self._db.execute("BEGIN")

    def add(self, source: int, pair: Found) -> None:
        """Keep a pair, or merge it with the one that is there; other labels clash."""
        mark = digest(self.seed, pair.premise, pair.hypothesis)
        there = self._db.execute(
            "SELECT label, source, grouping FROM pairs WHERE mark = ?", (mark,)
        ).fetchone()
        if there is None:
            self._db.execute(
                "INSERT INTO pairs (mark, source, split, label, premise, hypothesis, grouping) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (mark, source, self._split(pair.group), pair.label, *pair[:2], pair.group),
            )
            return
        self.merged[source] += 1
        label, owner, group = there
        if label != pair.label:
            self._db.execute("UPDATE pairs SET clash = 1 WHERE mark = ?", (mark,))
        if owner == source and pair.group < group:  # whichever row comes first
            self._db.execute(
                "UPDATE pairs SET grouping = ?, split = ? WHERE mark = ?",
                (pair.group, self._split(pair.group), mark),
            )

    def _split(self, group: str) -> int:
        """By the group's hash: up to chance the shares, and no table of groups in memory."""
        place = int.from_bytes(digest(self.seed, "split", group), "big") * sum(self.shares) >> 128
        return SPLITS.index(split_at(place, self.shares))

    def drop_clashes(self) -> int:
        """Leave out the pairs that stand with different labels; how many those are."""
        return self._db.execute("UPDATE pairs SET kept = 0 WHERE clash = 1").rowcount

    def drop_crossing(self) -> int:
        """Leave out of train, then of dev, the pairs whose premise is held out; how many."""
        return sum(
            self._db.execute(
                "UPDATE pairs SET kept = 0 WHERE kept = 1 AND split = ? AND premise IN "
                "(SELECT premise FROM pairs WHERE kept = 1 AND split > ?)",
                (split, split),
            ).rowcount
            for split in (0, 1)
        )

    def take(self, source: int, number: int) -> int:
        """Keep so many pairs of a source, in the order of their hashes; how many are left out."""
        return self._db.execute(
            "UPDATE pairs SET kept = 0 WHERE mark IN (SELECT mark FROM pairs WHERE kept = 1 "
            "AND source = ? ORDER BY mark LIMIT -1 OFFSET ?)",
            (source, number),
        ).rowcount

    def counts(self) -> list[tuple[int, int, str | float, int]]:
        """Source, split, label and number of what is kept; a probability counts as ``""``."""
        return self._db.execute(
            "SELECT source, split, CASE typeof(label) WHEN 'text' THEN label ELSE '' END AS told, "
            "COUNT(*) FROM pairs WHERE kept = 1 GROUP BY source, split, told ORDER BY 1, 2, 3"
        ).fetchall()

    def pairs(self, split: int) -> Iterator[tuple[int, Found]]:
        """Source and pair of one split, in the order of their hashes."""
        rows: Iterable[tuple] = self._db.execute(
            "SELECT source, premise, hypothesis, label, grouping FROM pairs "
            "WHERE kept = 1 AND split = ? ORDER BY mark",
            (split,),
        )
        for source, *pair in rows:
            yield source, Found(*pair)
