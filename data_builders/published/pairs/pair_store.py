"""SQLite store of all pairs of a build, without duplicates and in a seeded order."""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from components.ties import Tied, Ties
from data_builders.splits import SPLITS, least_share, split_at
from records.formats.pairs import Pair

_TABLE = """
CREATE TABLE pairs (
    mark BLOB PRIMARY KEY, source INTEGER, split INTEGER, label, clash INTEGER DEFAULT 0,
    kept INTEGER DEFAULT 1, premise TEXT, hypothesis TEXT, grouping TEXT, documents TEXT
) WITHOUT ROWID
"""


def digest(*parts: object) -> bytes:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:16]


class PairStore:
    """A temporary SQLite file of pairs, keyed by a seeded hash of premise and hypothesis.

    Args:
        base: an empty scratch file.
        shares: ratio of train, dev and test.
        seed: seed of the order and of the split.
    """

    def __init__(self, base: sqlite3.Connection, shares: tuple[int, int, int], seed: int):
        self.shares = shares
        self.seed = seed
        self.merged: Counter[int] = Counter()
        self._db = base
        self._db.execute(_TABLE)
        self._db.execute("BEGIN")

    def add(self, source: int, pair: Pair) -> None:
        """Insert a pair or merge it with its duplicate; different labels mark a clash."""
        mark = digest(self.seed, pair.premise, pair.hypothesis)
        existing = self._db.execute(
            "SELECT label, source, grouping FROM pairs WHERE mark = ?", (mark,)
        ).fetchone()
        if existing is None:
            self._db.execute(
                "INSERT INTO pairs "
                "(mark, source, split, label, premise, hypothesis, grouping, documents) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    mark,
                    source,
                    self._split(pair.group),
                    pair.label,
                    pair.premise,
                    pair.hypothesis,
                    pair.group,
                    json.dumps(pair.documents) if pair.documents else None,
                ),
            )
            return
        self.merged[source] += 1
        label, owner, group = existing
        if label != pair.label:
            self._db.execute("UPDATE pairs SET clash = 1 WHERE mark = ?", (mark,))
        if owner == source and pair.group < group:  # independent of the row order
            self._db.execute(
                "UPDATE pairs SET grouping = ?, split = ? WHERE mark = ?",
                (pair.group, self._split(pair.group), mark),
            )

    def _split(self, group: str) -> int:
        position = (
            int.from_bytes(digest(self.seed, "split", group), "big") * sum(self.shares) >> 128
        )
        return SPLITS.index(split_at(position, self.shares))

    def drop_clashes(self) -> int:
        """Drop pairs with several labels; return their number."""
        return self._db.execute("UPDATE pairs SET kept = 0 WHERE clash = 1").rowcount

    def tie(self) -> Tied | None:
        """Put pairs that share a text or a document into one split; ``None`` for a single split."""
        if sum(map(bool, self.shares)) < 2:
            return None
        ties, marks, groups = Ties(), [], []
        for mark, premise, hypothesis, group, documents, source in self._db.execute(
            "SELECT mark, premise, hypothesis, grouping, documents, source FROM pairs "
            "WHERE kept = 1 ORDER BY mark"
        ):
            ties.add(group, premise, json.loads(documents or "[]"), hypothesis, str(source))
            marks.append(mark)
            groups.append(group)
        tied = ties.tie(least_share(self.shares))
        moved = zip(marks, groups, tied.names, strict=True)
        self._db.executemany(
            "UPDATE pairs SET split = ? WHERE mark = ?",
            [(self._split(name), mark) for mark, group, name in moved if name != group],
        )
        return tied

    def drop_crossing(self, tied: Tied | None) -> int:
        """Drop train and dev pairs that share a text or document with a held-out pair.

        Args:
            tied: result of :meth:`tie` for the kept pairs.

        Returns:
            The number of dropped pairs.
        """
        if tied is None:
            return 0
        rows = self._db.execute("SELECT mark, split FROM pairs WHERE kept = 1 ORDER BY mark")
        marks, splits = zip(*rows, strict=True) if tied.names else ((), ())
        splits, away = np.asarray(splits), np.zeros(len(marks), dtype=bool)
        for held_out in (2, 1):
            away |= tied.crossing((splits == held_out) & ~away) & (splits < held_out)
        self._db.executemany(
            "UPDATE pairs SET kept = 0 WHERE mark = ?",
            [(mark,) for mark, out in zip(marks, away, strict=True) if out],
        )
        return int(away.sum())

    def texts(self, split: int, field: str) -> Iterator[str]:
        rows = self._db.execute(
            f"SELECT {field} FROM pairs WHERE kept = 1 AND split = ? ORDER BY mark", (split,)
        )
        return (text for (text,) in rows)

    def has_documents(self) -> bool:
        cursor = self._db.execute("SELECT 1 FROM pairs WHERE documents IS NOT NULL LIMIT 1")
        return cursor.fetchone() is not None

    def take(self, source: int, number: int) -> int:
        """Keep the first ``number`` pairs of a source by hash; return the number dropped."""
        return self._db.execute(
            "UPDATE pairs SET kept = 0 WHERE mark IN (SELECT mark FROM pairs WHERE kept = 1 "
            "AND source = ? ORDER BY mark LIMIT -1 OFFSET ?)",
            (source, number),
        ).rowcount

    def take_of_train(self, source: int, number: int) -> int:
        """Keep ``number`` training pairs of a source per label; return the number dropped."""
        return self._db.execute(
            "UPDATE pairs SET kept = 0 WHERE mark IN (SELECT mark FROM (SELECT mark, ROW_NUMBER() "
            "OVER (PARTITION BY label ORDER BY mark) AS place FROM pairs "
            "WHERE kept = 1 AND source = ? AND split = 0) WHERE place > ?)",
            (source, number),
        ).rowcount

    def counts(self) -> list[tuple[int, int, str | float, int]]:
        """Return source, split, label and number of kept pairs; a probability is ``""``."""
        return self._db.execute(
            "SELECT source, split, CASE typeof(label) WHEN 'text' THEN label ELSE '' END AS name, "
            "COUNT(*) FROM pairs WHERE kept = 1 GROUP BY source, split, name ORDER BY 1, 2, 3"
        ).fetchall()

    def pairs(self, split: int) -> Iterator[tuple[int, Pair]]:
        """Yield source and pair of one split, ordered by hash."""
        rows: Iterable[tuple] = self._db.execute(
            "SELECT source, premise, hypothesis, label, grouping, documents FROM pairs "
            "WHERE kept = 1 AND split = ? ORDER BY mark",
            (split,),
        )
        for source, *pair, documents in rows:
            yield source, Pair(*pair, tuple(json.loads(documents or "[]")))
