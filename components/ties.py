"""Grouping of rows that must be on the same side of a split because they share text.

A row has a group (article, name, question, claim), a text (premise, reference), and optionally
further document names. Rows that share one of these, or a long line of text (excerpts of one page),
carry the same information; splitting them would leak training data into evaluation.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from components.words import name_key
from records import group_of
from records.types import Record

# Words of a line that ties texts; shorter lines are headings, menus and set phrases.
LINE_WORDS = 12
# Minimum size limit of a component, in rows.
_MIN_COMPONENT_ROWS = 10
# Capacity of a component in integer units.
_CAPACITY = 2**40
_GROUP_OR_TEXT, _DOCUMENT, _LINE, _HYPOTHESIS = range(4)


@dataclass(frozen=True)
class Tied:
    """Components of rows.

    Attributes:
        names: name of each row's component: the smallest of the groups that are entirely in it.
        loose: rows and keys, of shape (2, entries), that are shared between components.
        common: number of lines and documents that were ignored because too many rows share them.
    """

    names: list[str]
    loose: np.ndarray
    common: int

    def crossing(self, heldout: Sequence[bool]) -> np.ndarray:
        """Return which rows outside the held-out part share a key with a held-out row, (rows,).

        Select whole components for ``heldout``, so that few rows cross.
        """
        heldout = np.asarray(heldout, dtype=bool)
        rows, keys = self.loose.astype(np.int64) if self.loose.size else np.zeros((2, 0), np.int64)
        shared = np.isin(keys, keys[heldout[rows]])
        crosses = np.zeros(len(heldout), dtype=bool)
        crosses[rows[shared]] = True
        return crosses & ~heldout


class Ties:
    """Collects rows and ties rows that share a key. Memory: about 20 bytes per row and key."""

    def __init__(self) -> None:
        self._groups: list[str] = []
        self._sources: list[str] = []
        self._rows, self._keys, self._kinds = array("Q"), array("q"), array("b")

    def add(
        self,
        group: str,
        text: str,
        documents: Iterable[str] = (),
        hypothesis: str = "",
        source: str = "",
    ) -> None:
        """Add a row.

        Args:
            group: article, name, question or claim of the row.
            text: premise or reference.
            documents: names of further documents of the row.
            hypothesis: hypothesis or claim; tied to rows that have it as ``text``, e.g. for pairs
                built from each other's sentences (SICK). Equal hypotheses alone do not tie rows.
            source: dataset of the row; each dataset gets its share of every split.
        """
        for kind, keys in enumerate(_keys(group, text, documents, hypothesis)):
            for key in keys:
                self._rows.append(len(self._groups))
                self._keys.append(key)
                self._kinds.append(kind)
        self._groups.append(group)
        self._sources.append(source)

    def tie(self, share: float) -> Tied:
        """Tie rows into components, starting with the keys that most rows share.

        Tying everything could connect all rows, e.g. all claims about one subject, so that no split
        is possible. Therefore no key is tied that would make a component larger than a third of
        ``share`` of a source's rows. Its rows may be on both sides of the split; callers exclude
        the rows of :meth:`Tied.crossing`. Documents that exceed this size alone, and lines that
        would, are ignored (site menus, main articles). Groups and texts are always kept together.

        The result does not depend on the order of the rows.

        Args:
            share: of the smaller side of the split, in (0, 1].
        """
        max_rows = {
            source: max(share * count / 3, _MIN_COMPONENT_ROWS)
            for source, count in Counter(self._sources).items()
        }
        # Row sizes in integer units, so that sums do not depend on the order.
        parts = [math.ceil(_CAPACITY / max_rows[source]) for source in self._sources]
        forest, loose, common = _Forest(parts), [], 0
        for key, rows, kind in self._shared():
            roots = {forest.find(row) for row in rows}
            size = sum(forest.size[root] for root in roots)
            too_large_alone = sum(parts[row] for row in rows) > _CAPACITY
            if len(roots) == 1:
                continue
            if size <= _CAPACITY or (kind == _GROUP_OR_TEXT and too_large_alone):
                forest.join(roots)
            elif kind == _LINE or too_large_alone:
                common += 1
            else:
                loose += [(row, key) for row in rows]
        crossing = np.asarray(loose, dtype=np.int64).reshape(-1, 2).T
        return Tied(self._names(forest, set(crossing[1].tolist())), crossing, common)

    def _shared(self) -> list[tuple[int, list[int], int]]:
        """Return each key of two or more rows with its rows and kind, most frequent first.

        Ties in frequency are ordered by kind: groups and texts before documents and lines. A key
        has the strongest kind of its rows.
        """
        rows = np.frombuffer(self._rows, dtype=np.uint64).astype(np.int64)
        keys = np.frombuffer(self._keys, dtype=np.int64)
        kinds = np.frombuffer(self._kinds, dtype=np.int8)
        order = np.lexsort((rows, kinds, keys))
        rows, keys, kinds = rows[order], keys[order], kinds[order]
        starts = np.flatnonzero(np.r_[len(keys) > 0, keys[1:] != keys[:-1]])
        ends = np.r_[starts[1:], len(keys)][: len(starts)]
        shared = [
            (int(keys[start]), list(dict.fromkeys(rows[start:end].tolist())), int(kinds[start]))
            for start, end in zip(starts, ends, strict=True)
            if end - start > 1 and kinds[start] != _HYPOTHESIS
        ]
        return sorted(shared, key=lambda entry: (-len(entry[1]), entry[2], entry[0]))

    def _names(self, forest: _Forest, loose: set[int]) -> list[str]:
        by_whole_group: dict[int, str] = {}
        by_any_group: dict[int, str] = {}
        for row, group in enumerate(self._groups):
            root = forest.find(row)
            by_any_group[root] = min(by_any_group.get(root, group), group)
            if _key("group", group) not in loose:
                by_whole_group[root] = min(by_whole_group.get(root, group), group)
        # Components with only parts of groups get a separate name.
        parts = {root: f"part of {name}" for root, name in by_any_group.items()}
        return [
            by_whole_group.get(root, parts[root])
            for root in map(forest.find, range(len(self._groups)))
        ]


class _Forest:
    """Union-find over numbered rows with sizes."""

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
    """Tie records by ``group``, premise or reference, ``documents`` and long lines.

    A file is the source of its records without ``source``; for ``share`` see :meth:`Ties.tie`.
    """
    ties = Ties()
    for index, records in enumerate(files):
        for record in records:
            source = getattr(record, "source", None) or str(index)
            keys = documents_of(record), judged_text_of(record), source
            ties.add(group_of(record), text_of(record), *keys)
    return ties.tie(share)


def text_of(record: Record) -> str:
    """Return the premise or reference of a record, else its group."""
    fields = ("premise", "reference")
    return next((getattr(record, n) for n in fields if hasattr(record, n)), group_of(record))


def judged_text_of(record: Record) -> str:
    """Return the hypothesis or claim of a record, if any."""
    fields = ("hypothesis", "claim")
    return next((getattr(record, name) for name in fields if hasattr(record, name)), "")


def documents_of(record: Record) -> list[str]:
    """Return the names in a record's column ``documents``: a list or a single value."""
    named = (record.model_extra or {}).get("documents")
    if isinstance(named, list):
        return [str(name) for name in named]
    # Empty table cells are NaN.
    return [] if named in (None, "") or named != named else [str(named)]


def keys_of(record: Record) -> set[int]:
    """Return all keys that a record may share with others."""
    group_and_text, document_keys, lines, _ = _keys(
        group_of(record), text_of(record), documents_of(record)
    )
    return group_and_text | document_keys | lines


def _keys(group: str, text: str, documents: Iterable[str], hypothesis: str = "") -> list[set[int]]:
    long_lines = [line for line in text.split("\n") if len(line.split()) >= LINE_WORDS]
    group_and_text = {_key("group", group), _key("text", text)}
    hypothesis_keys = {_key("text", hypothesis)} - group_and_text if hypothesis else set()
    return [
        group_and_text,
        {_key("document", name) for name in documents},
        {_key("line", line) for line in long_lines},
        hypothesis_keys,
    ]


def _key(kind: str, name: str) -> int:
    digest = hashlib.blake2b(f"{kind}\0{name_key(name)}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
