"""All pairs of a build on the disk: each once, in a seeded order that no row decides."""

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

    def add(self, source: int, pair: Pair) -> None:
        """Keep a pair, or merge it with the one that is there; other labels clash."""
        mark = digest(self.seed, pair.premise, pair.hypothesis)
        there = self._db.execute(
            "SELECT label, source, grouping FROM pairs WHERE mark = ?", (mark,)
        ).fetchone()
        if there is None:
            self._db.execute(
                "INSERT INTO pairs "
                "(mark, source, split, label, premise, hypothesis, grouping, documents) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(mark, source, self._split(pair.group), pair.label, *pair[:2], pair.group),
                    json.dumps(pair.documents) if pair.documents else None,
                ),
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
        place = int.from_bytes(digest(self.seed, "split", group), "big") * sum(self.shares) >> 128
        return SPLITS.index(split_at(place, self.shares))

    def drop_clashes(self) -> int:
        """Leave out the pairs that stand with different labels; how many those are."""
        return self._db.execute("UPDATE pairs SET kept = 0 WHERE clash = 1").rowcount

    def tie(self) -> Tied | None:
        """Put what shares a text or a document into one split; ``None`` where there is only one."""
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
        """Leave out of train and dev what shares something with a pair that is held out of them.

        Args:
            tied: what :meth:`tie` gave, of the pairs that are kept.

        Returns:
            How many are left out.
        """
        if tied is None:
            return 0
        rows = self._db.execute("SELECT mark, split FROM pairs WHERE kept = 1 ORDER BY mark")
        marks, splits = zip(*rows, strict=True) if tied.names else ((), ())
        splits, away = np.asarray(splits), np.zeros(len(marks), dtype=bool)
        for held in (2, 1):
            away |= tied.crossing((splits == held) & ~away) & (splits < held)
        self._db.executemany(
            "UPDATE pairs SET kept = 0 WHERE mark = ?",
            [(mark,) for mark, out in zip(marks, away, strict=True) if out],
        )
        return int(away.sum())

    def texts(self, split: int, field: str) -> Iterator[str]:
        """The premises or the hypotheses of what is kept of a split."""
        rows = self._db.execute(
            f"SELECT {field} FROM pairs WHERE kept = 1 AND split = ? ORDER BY mark", (split,)
        )
        return (text for (text,) in rows)

    def has_documents(self) -> bool:
        """Whether any pair belongs to a document by name."""
        found = self._db.execute("SELECT 1 FROM pairs WHERE documents IS NOT NULL LIMIT 1")
        return found.fetchone() is not None

    def take(self, source: int, number: int) -> int:
        """Keep so many pairs of a source, in the order of their hashes; how many are left out."""
        return self._db.execute(
            "UPDATE pairs SET kept = 0 WHERE mark IN (SELECT mark FROM pairs WHERE kept = 1 "
            "AND source = ? ORDER BY mark LIMIT -1 OFFSET ?)",
            (source, number),
        ).rowcount

    def take_of_train(self, source: int, number: int) -> int:
        """Keep so many pairs of a source with each label in train; how many are left out."""
        return self._db.execute(
            "UPDATE pairs SET kept = 0 WHERE mark IN (SELECT mark FROM (SELECT mark, ROW_NUMBER() "
            "OVER (PARTITION BY label ORDER BY mark) AS place FROM pairs "
            "WHERE kept = 1 AND source = ? AND split = 0) WHERE place > ?)",
            (source, number),
        ).rowcount

    def counts(self) -> list[tuple[int, int, str | float, int]]:
        """Source, split, label and number of what is kept; a probability counts as ``""``."""
        return self._db.execute(
            "SELECT source, split, CASE typeof(label) WHEN 'text' THEN label ELSE '' END AS told, "
            "COUNT(*) FROM pairs WHERE kept = 1 GROUP BY source, split, told ORDER BY 1, 2, 3"
        ).fetchall()

    def pairs(self, split: int) -> Iterator[tuple[int, Pair]]:
        """Source and pair of one split, in the order of their hashes."""
        rows: Iterable[tuple] = self._db.execute(
            "SELECT source, premise, hypothesis, label, grouping, documents FROM pairs "
            "WHERE kept = 1 AND split = ? ORDER BY mark",
            (split,),
        )
        for source, *pair, documents in rows:
            yield source, Pair(*pair, tuple(json.loads(documents or "[]")))
