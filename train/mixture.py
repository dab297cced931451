"""Which rows of which files make a split: weights, what is held back, and names of sources."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from components.ties import keys_of, tied_records
from records import UserError
from records.types import Record

Train = dict[str, float] | list[str] | str
Dev = float | list[str] | str
Paths = list[str] | str

# The largest weight of a file; the order of an epoch is in memory.
_MOST = 1_000_000


@dataclass(frozen=True)
class Part:
    """The rows that one file gives to a split.

    Attributes:
        path: the file.
        weight: how many times its rows are seen an epoch.
        rows: the records.
        numbers: 1-based place of each row in its file.
        source: name under which they are judged.
    """

    path: str
    weight: float
    rows: list[Record]
    numbers: list[int]
    source: str


def weights_of(train: Train) -> dict[str, float]:
    """Path → weight, 1 where none is given."""
    if not isinstance(train, Mapping):
        paths = [train] if isinstance(train, str) else list(train)
        if len(set(paths)) < len(paths):
            raise UserError("--data.train names a file twice; say how often as a weight: {FILE: 2}")
        train = dict.fromkeys(paths, 1.0)
    for path, weight in train.items():
        if not 0 < weight <= _MOST:  # NaN is nowhere
            raise UserError(
                f"--data.train: the weight of {path} must be positive and at most {_MOST:,}, "
                f"not {weight}"
            )
    return {path: float(weight) for path, weight in train.items()}


def share_of(dev: Dev) -> float | None:
    """The share of groups to hold back, or ``None`` where dev is files."""
    if not isinstance(dev, (int, float)):
        return None
    if not 0 < dev < 1:
        raise UserError(f"--data.dev {dev}: a share to hold back lies between 0 and 1")
    return float(dev)


@dataclass(frozen=True)
class Sides:
    """Which rows are held back, once it is known what they share.

    Attributes:
        dev: of each file, of each row: whether it is held back.
        away: likewise: whether it is in neither split, since it shares something with one that is.
        said: what to tell of it.
    """

    dev: list[list[bool]]
    away: list[list[bool]]
    said: str


def hold_back(files: Sequence[Sequence[Record]], seed: int, share: float) -> Sides:
    """Hold back whole components of rows that share something, across all files.

    Args:
        files: the records of each file.
        seed: of the draw.
        share: of the components to hold back, up to chance.
    """
    lengths = [len(rows) for rows in files]
    tied = tied_records(files, min(share, 1 - share))
    side = {name: in_dev(name, seed, share) for name in set(tied.names)}
    dev = [side[name] for name in tied.names]
    away = tied.crossing(dev).tolist()
    said = (
        f"{sum(dev):,} of {len(dev):,} rows are held back, whole sets of rows that share a group, "
        f"a text or a document ({len(side):,} sets)"
    )
    if sum(away):
        said += f"; {sum(away):,} more are left out, which share something with them"
    if tied.common:
        said += f"; {tied.common:,} lines or documents are passed over, which too many rows share"
    starts = [sum(lengths[:place]) for place in range(len(lengths))]
    cuts = [slice(start, start + n) for start, n in zip(starts, lengths, strict=True)]
    return Sides([dev[cut] for cut in cuts], [away[cut] for cut in cuts], said)


def in_dev(name: str, seed: int, share: float) -> bool:
    """Whether what hangs together under a name is dev; the same answer whatever else is there."""
    digest = hashlib.sha256(f"{seed}\n{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def shared_rows(held: Sequence[Record], train: Sequence[Record]) -> int:
    """How many held-out rows share a group, a text, a document or a long line with training."""
    seen: set[int] = set()
    for record in train:
        seen |= keys_of(record)
    return sum(not seen.isdisjoint(keys_of(record)) for record in held)


def source_names(paths: Sequence[str], rows: Sequence[Sequence[Record]]) -> list[str]:
    """One name a file: its rows' ``source`` where they all agree, else its stem; all different.

    Rows of a file that do not agree are judged by their own (:func:`row_sources`).

    Args:
        paths: the files.
        rows: all records of each.
    """
    plain = [_spelled(Path(path).stem) for path in paths]
    folders = [_spelled(f"{Path(p).parent.name}_{Path(p).stem}") for p in paths]
    names = []
    for stem, records in zip(plain, rows, strict=True):
        declared = {getattr(record, "source", None) for record in records}
        agreed = declared.pop() if len(declared) == 1 else None
        names.append(_spelled(agreed or stem))
    numbered = [f"{name}_{number}" for number, name in enumerate(names, 1)]
    for finer in (plain, folders, numbered):
        seen = Counter(names)
        names = [b if seen[a] > 1 else a for a, b in zip(names, finer, strict=True)]
    return names


def row_sources(part: Part) -> list[str]:
    """The name of the source of each row: its own where a file holds several, else the file's."""
    own = [getattr(row, "source", None) for row in part.rows]
    if len(set(own)) < 2:
        return [part.source] * len(own)
    return [_spelled(name) if name else part.source for name in own]


def _spelled(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)
