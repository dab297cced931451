"""Which rows must stand on one side of a split, because they share what they are read from.

A row belongs to a group (an article, a name, a question, a claim), holds a text that it is judged
by (premise, reference), and may name documents besides. Rows that share one of these, or a long
line of the text, as two extracts of one page do, tell the same things: trained on one and judged on
the other, a model is asked what it was told.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from records import group_of
from records.types import Record

# Two texts with a line of so many words in common hold parts of one document; shorter lines are
# headings, menus and set phrases.
LINE_WORDS = 12
# However small the files, so many rows may hang together.
_LEAST = 10
# What a component may hold, counted in parts of rows.
_WHOLE = 2**40
_OWN, _DOCUMENT, _LINE, _TOLD = range(4)


@dataclass(frozen=True)
class Tied:
    """Rows by what holds them together.

    Attributes:
        names: of each row's component: the smallest of the groups that are wholly in it.
        loose: rows and keys, of shape (2, entries), of what is shared between components.
        common: how many lines and documents so many rows share that they were given up.
    """

    names: list[str]
    loose: np.ndarray
    common: int

    def crossing(self, held: Sequence[bool]) -> np.ndarray:
        """Which rows that are not held out share something with one that is.

        Args:
            held: of each row. Whole components, so that few rows cross.

        Returns:
            Of each row, shape (rows,).
        """
        held = np.asarray(held, dtype=bool)
        rows, keys = self.loose.astype(np.int64) if self.loose.size else np.zeros((2, 0), np.int64)
        shared = np.isin(keys, keys[held[rows]])
        found = np.zeros(len(held), dtype=bool)
        found[rows[shared]] = True
        return found & ~held


class Ties:
    """Collects rows and ties those that share something. Memory: some 20 bytes a row and key."""

    def __init__(self) -> None:
        self._groups: list[str] = []
        self._sources: list[str] = []
        self._rows, self._keys, self._kinds = array("Q"), array("q"), array("b")

    def add(
        self,
        group: str,
        text: str,
        documents: Iterable[str] = (),
        told: str = "",
        source: str = "",
    ) -> None:
        """The next row.

        Args:
            group: the article, name, question or claim that it is of.
            text: premise or reference.
            documents: names of what it belongs to besides.
            told: hypothesis or claim: rows of which it is the ``text`` belong to this one, as where
                pairs are made of each other's sentences (SICK). That others tell the same says
                nothing.
            source: the set that it is from; each has its share of every split.
        """
        for kind, keys in enumerate(_keys(group, text, documents, told)):
            for key in keys:
                self._rows.append(len(self._groups))
                self._keys.append(key)
                self._kinds.append(kind)
        self._groups.append(group)
        self._sources.append(source)

    def tie(self, share: float) -> Tied:
        """Tie the rows, by what most share first, into components that a split can be made of.

        Where everything hangs together in the end, as all claims about one subject do, no split is
        left. So nothing is tied that makes a component of more than a third of ``share`` of a
        source's rows: its rows may come to stand on two sides, and who draws leaves out those that
        :meth:`Tied.crossing` tells. But a document that more rows than that have by itself, and a
        line that would tie so many, is given up (a site's menu, an encyclopaedia's main article),
        and a group or text of so many rows is kept whole all the same.

        The result depends on the rows, not on their order.

        Args:
            share: of the smaller side of the split, in (0, 1].
        """
        most = {
            source: max(share * count / 3, _LEAST)
            for source, count in Counter(self._sources).items()
        }
        # A row's part of what a component may hold, in whole numbers: their sum knows no order.
        parts = [math.ceil(_WHOLE / most[source]) for source in self._sources]
        forest, loose, common = _Forest(parts), [], 0
        for key, rows, kind in self._shared():
            roots = {forest.find(row) for row in rows}
            size = sum(forest.size[root] for root in roots)
            by_itself = sum(parts[row] for row in rows) > _WHOLE
            if len(roots) == 1:
                continue
            if size <= _WHOLE or (kind == _OWN and by_itself):
                forest.join(roots)
            elif kind == _LINE or by_itself:
                common += 1
            else:
                loose += [(row, key) for row in rows]
        crossing = np.asarray(loose, dtype=np.int64).reshape(-1, 2).T
        return Tied(self._names(forest, set(crossing[1].tolist())), crossing, common)

    def _shared(self) -> list[tuple[int, list[int], int]]:
        """Each key of two rows or more with its rows and kind; what most rows have comes first.

        Of keys with as many rows, those of the rows' own come first: lines give way. A key is what
        it is at best to one of them.
        """
        rows = np.frombuffer(self._rows, dtype=np.uint64).astype(np.int64)
        keys = np.frombuffer(self._keys, dtype=np.int64)
        kinds = np.frombuffer(self._kinds, dtype=np.int8)
        order = np.lexsort((rows, kinds, keys))
        rows, keys, kinds = rows[order], keys[order], kinds[order]
        starts = np.flatnonzero(np.r_[len(keys) > 0, keys[1:] != keys[:-1]])
        ends = np.r_[starts[1:], len(keys)][: len(starts)]
        found = [
            (int(keys[start]), list(dict.fromkeys(rows[start:end].tolist())), int(kinds[start]))
            for start, end in zip(starts, ends, strict=True)
            if end - start > 1 and kinds[start] != _TOLD
        ]
        return sorted(found, key=lambda entry: (-len(entry[1]), entry[2], entry[0]))

    def _names(self, forest: _Forest, loose: set[int]) -> list[str]:
        whole: dict[int, str] = {}
        any_: dict[int, str] = {}
        for row, group in enumerate(self._groups):
            root = forest.find(row)
            any_[root] = min(any_.get(root, group), group)
            if _key("group", group) not in loose:
                whole[root] = min(whole.get(root, group), group)
        # A component of nothing but parts of groups is named by all of them together.
        parts = {root: f"part of {name}" for root, name in any_.items()}
        return [whole.get(root, parts[root]) for root in map(forest.find, range(len(self._groups)))]


class _Forest:
    """Union-find over numbered rows of given sizes."""

    def __init__(self, sizes: Sequence[int]):
        self._parent = list(range(len(sizes)))
        self.size = list(sizes)

    def find(self, row: int) -> int:
        parent = self._parent
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    def join(self, roots: set[int]) -> None:
        first = max(roots, key=lambda root: (self.size[root], -root))
        self.size[first] = sum(self.size[root] for root in roots)
        for root in roots:
            self._parent[root] = first


def tied_records(files: Iterable[Iterable[Record]], share: float) -> Tied:
    """Records tied by ``group``, premise or reference, ``documents`` and long lines.

    Args:
        files: records; those of a file that name no ``source`` are one.
        share: of the smaller side of the split.
    """
    ties = Ties()
    for place, records in enumerate(files):
        for record in records:
            source = getattr(record, "source", None) or str(place)
            told = documents_of(record), judged_text_of(record), source
            ties.add(group_of(record), text_of(record), *told)
    return ties.tie(share)


def text_of(record: Record) -> str:
    """The text that a record is judged by; topics and prompts are their own."""
    fields = ("premise", "reference")
    return next((getattr(record, n) for n in fields if hasattr(record, n)), group_of(record))


def judged_text_of(record: Record) -> str:
    """What is judged by that text, where a record has such a thing."""
    fields = ("hypothesis", "claim")
    return next((getattr(record, name) for name in fields if hasattr(record, name)), "")


def documents_of(record: Record) -> list[str]:
    """The names in the record's own column ``documents``: a list of them, or one; numbers too."""
    named = (record.model_extra or {}).get("documents")
    if isinstance(named, list):
        return [str(name) for name in named]
    # A table's empty cell is NaN, which is not equal to itself.
    return [] if named in (None, "") or named != named else [str(named)]


def keys_of(record: Record) -> set[int]:
    """All that a record may share with others, as numbers."""
    own, named, lines, _ = _keys(group_of(record), text_of(record), documents_of(record))
    return own | named | lines


def _keys(group: str, text: str, documents: Iterable[str], told: str = "") -> list[set[int]]:
    lines = [line.casefold().split() for line in text.split("\n")]
    own = {_key("group", group), _key("text", " ".join(chain.from_iterable(lines)))}
    long = {_key("line", " ".join(words)) for words in lines if len(words) >= LINE_WORDS}
    other = {_key("text", " ".join(told.casefold().split()))} - own if told else set()
    return [own, {_key("document", name) for name in documents}, long, other]


def _key(kind: str, name: str) -> int:
    digest = hashlib.blake2b(f"{kind}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
