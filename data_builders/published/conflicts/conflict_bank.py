"""Read ConflictBank's table of claims and evidence, and sample claims.

ConflictBank (Su et al. 2024, 2408.12076) has claims from Wikidata with supporting evidence, and
evidence for conflicting claims: with another object (fact), another time (temporal), or another
meaning of the subject (semantic).
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from records import BadInput

Kind = Literal["fact", "temporal", "semantic"]

# ``category`` of a row, which has one evidence.
CATEGORIES = {
    "default": "",
    "misinformation_conflict": "fact",
    "temporal_conflict": "temporal",
    "semantic_conflict": "semantic",
}


class Evidenced(NamedTuple):
    claim: str
    evidence: str


@dataclass
class Group:
    """A true claim and a conflicting one, with their evidence; ``rows`` counts the input rows."""

    subject: str
    true: Evidenced | None = None
    conflicting: Evidenced | None = None
    rows: int = 0


class _Piece(NamedTuple):
    """The content of a row: the true claim of a group, or the conflicting one."""

    key: str
    subject: str
    pair: Evidenced
    is_true: bool


def _read_pieces(
    rows: Iterable[tuple[str, dict]], kind: Kind, dropped: Counter[str]
) -> Iterator[_Piece]:
    for where, row in rows:
        category = row.get("category")
        if not isinstance(category, str) or category not in CATEGORIES:
            names = ", ".join(CATEGORIES)
            raise BadInput([f"{where}: category: expected one of {names}, got {category!r}"])
        if CATEGORIES[category] not in ("", kind):
            dropped["evidence of another kind of conflict"] += 1
            continue
        subject, pair = (
            _text(row, "subject"),
            Evidenced(_text(row, "claim"), _text(row, "evidence")),
        )
        missing = [name for name, text in zip(Evidenced._fields, pair, strict=True) if not text]
        if not subject or row.get("id", "") == "":
            missing = ["id or subject"]
        if missing:
            dropped[f"row without {missing[0]}"] += 1
        else:  # neither the id nor the subject is unique
            yield _Piece(f"{row['id']}\0{subject}", subject, pair, category == "default")


def _text(row: dict, name: str) -> str:
    value = row.get(name)
    return value.strip() if isinstance(value, str) else ""


def sample(
    read: Callable[[], Iterable[tuple[str, dict]]],
    kind: Kind,
    number: int,
    seed: int,
    dropped: Counter[str],
) -> list[Group]:
    """Sample claims with a supporting and a conflicting evidence by hash.

    The rows are read twice: first to find the claims with both evidences, then to read the texts of
    the sample. A group's hash depends only on its key and the seed, not on the order of the rows.

    Args:
        read: returns an iterator over all rows and their locations.
        kind: kind of conflict.
        number: maximum number of claims.
        seed: seed of the hashes.
        dropped: counts skipped rows.

    Returns:
        The groups, ordered by hash.
    """
    sides: dict[int, int] = {}  # hash to bits: 1 for a true part, 2 for a conflicting one
    counts: Counter[str] = Counter()
    total = 0
    for piece in _read_pieces(read(), kind, counts):
        total += 1
        key = _hash(piece, seed)
        sides[key] = sides.get(key, 0) | (1 if piece.is_true else 2)
    complete = sorted(key for key, side in sides.items() if side == 3)
    drawn = {key: Group("") for key in complete[:number]}
    for piece in _read_pieces(read(), kind, Counter()):
        if (group := drawn.get(_hash(piece, seed))) is not None:
            group.subject = group.subject or piece.subject
            group.rows += 1
            # The alphabetically first of several evidences, independent of the row order.
            if piece.is_true:
                group.true = min(group.true or piece.pair, piece.pair)
            else:
                group.conflicting = min(group.conflicting or piece.pair, piece.pair)
    counts["row of a claim that was not drawn"] += total - sum(g.rows for g in drawn.values())
    dropped.update(counts)
    return list(drawn.values())


def _hash(piece: _Piece, seed: int) -> int:
    digest = hashlib.sha256(f"{seed}\0{piece.key}".encode()).digest()
    return int.from_bytes(digest[:16], "big")
