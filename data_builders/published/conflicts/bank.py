"""ConflictBank's rows, in the three shapes they are published in, and a sample of its claims.

ConflictBank (Su et al. 2024, 2408.12076) has a claim from Wikidata with an evidence that supports
it, and evidences for claims that conflict with it: by another object (fact), by another time
(temporal), or by another meaning of the subject (semantic).
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from records import BadInput

Kind = Literal["fact", "temporal", "semantic"]

# The Hub's claim-evidence table holds one evidence a row; its ``category`` says which.
CATEGORIES = {
    "default": "",
    "misinformation_conflict": "fact",
    "temporal_conflict": "temporal",
    "semantic_conflict": "semantic",
}
# Each kind's claim and evidence in the rows of the project's own scripts and of the Hub's CB_qa;
# there are two spellings of one evidence field.
_OWN = {
    "": ("correct_pair", ("correct_evidence",)),
    "fact": ("fact_conflict_pair", ("fact_conflict_evidence",)),
    "temporal": ("temporal_conflict_pair", ("temporal_conflict_evidence",)),
    "semantic": ("fact_conflict_pair", ("semantic_conflict_evidence",)),
}
_QA = {
    "": ("default_claim", ("default_evidence",)),
    "fact": (
        "misinformation_conflict_claim",
        ("misinformation_conflict_evidence_evidence", "misinformation_conflict_evidence"),
    ),
    "temporal": ("temporal_conflict_claim", ("temporal_conflict_evidence",)),
    "semantic": ("semantic_conflict_claim", ("semantic_conflict_evidence",)),
}


class Told(NamedTuple):
    """A claim and an evidence that supports it."""

    claim: str
    evidence: str


@dataclass
class Group:
    """All that is known of one true claim.

    Attributes:
        subject: what it is about.
        true: the claim and its evidence.
        conflicting: what conflicts with it.
        rows: how many rows told of it.
    """

    subject: str
    true: Told | None = None
    conflicting: Told | None = None
    rows: int = 0


class _Piece(NamedTuple):
    """What a row tells: of a claim's group the true part, the conflicting part, or both."""

    key: str
    subject: str
    true: Told | None
    conflicting: Told | None


def _pieces(
    rows: Iterable[tuple[str, dict]], kind: Kind, dropped: Counter[str]
) -> Iterator[_Piece]:
    """The rows of any of the three shapes; what lacks a field is counted and left out."""
    for where, row in rows:
        if "category" in row and "evidence" in row:
            piece = _one_evidence(where, row, kind, dropped)
        elif "correct_pair" in row:
            piece = _whole(row, kind, _OWN, dropped)
        elif "default_claim" in row:
            piece = _whole(row, kind, _QA, dropped)
        else:
            raise BadInput(
                [
                    f"{where}: record: neither `category` and `evidence`, nor `correct_pair`, nor "
                    f"`default_claim` of ConflictBank (fields: {', '.join(sorted(row))})"
                ]
            )
        if piece is not None:
            yield piece


def _text(row: dict, *names: str) -> str:
    found = next((row[name] for name in names if isinstance(row.get(name), str)), "")
    return found.strip()


def _one_evidence(where: str, row: dict, kind: Kind, dropped: Counter[str]) -> _Piece | None:
    category = row["category"]
    if not isinstance(category, str) or category not in CATEGORIES:
        known = ", ".join(CATEGORIES)
        raise BadInput([f"{where}: category: expected one of {known}, got {category!r}"])
    if CATEGORIES[category] not in ("", kind):
        dropped["evidence of another kind of conflict"] += 1
        return None
    # The same subject stands under many ids, and an id is not unique by itself.
    key = f"{row.get('id', '')}\0{_text(row, 'subject')}"
    told = Told(_text(row, "claim"), _text(row, "evidence"))
    missing = [name for name, text in zip(Told._fields, told, strict=True) if not text]
    if key.startswith("\0") or key.endswith("\0"):
        missing = ["id or subject"]
    for name in missing[:1]:
        dropped[f"row without {name}"] += 1
        return None
    subject = _text(row, "subject")
    return _Piece(key, subject, *((told, None) if category == "default" else (None, told)))


def _whole(row: dict, kind: Kind, fields: dict, dropped: Counter[str]) -> _Piece | None:
    subject, parts = _text(row, "subject"), []
    if not subject:
        dropped["row without subject"] += 1
        return None
    for part in ("", kind):
        claim, evidences = fields[part]
        for names in ((claim,), evidences):
            if not _text(row, *names):
                dropped[f"row without {names[0]}"] += 1
                return None
        parts.append(Told(_text(row, claim), _text(row, *evidences)))
    return _Piece(f"{subject}\0{parts[0].claim}", subject, *parts)


def sample(
    read: Callable[[], Iterable[tuple[str, dict]]],
    kind: Kind,
    number: int,
    seed: int,
    dropped: Counter[str],
) -> list[Group]:
    """Claims with a supporting and a conflicting evidence, drawn by hash.

    The rows are read twice: once for which claims have both evidences, once for the texts of those
    that are drawn. A group's hash depends on its key and the seed alone, so the order of the rows
    changes nothing.

    Args:
        read: gives the rows with where they stand, from the start each time it is called.
        kind: of conflict.
        number: how many; fewer where there are not as many.
        seed: of the hashes.
        dropped: counts rows that lack a field, and what was not drawn.

    Returns:
        The groups, in the order of their hashes.
    """
    sides: dict[int, int] = {}  # of each claim's hash: 1 for a true part, 2 for a conflicting one
    counts: Counter[str] = Counter()
    told = 0
    for piece in _pieces(read(), kind, counts):
        told += 1
        mark = _mark(piece, seed)
        side = (1 if piece.true else 0) | (2 if piece.conflicting else 0)
        sides[mark] = sides.get(mark, 0) | side
    whole = sorted(mark for mark, side in sides.items() if side == 3)
    drawn = {mark: Group("") for mark in whole[:number]}
    for piece in _pieces(read(), kind, Counter()):
        if (group := drawn.get(_mark(piece, seed))) is not None:
            group.subject = group.subject or piece.subject
            group.rows += 1
            # Of several evidences the first in the alphabet, whatever the order of the rows.
            group.true = min((e for e in (group.true, piece.true) if e), default=None)
            both = (group.conflicting, piece.conflicting)
            group.conflicting = min((e for e in both if e), default=None)
    counts["row of a claim that was not drawn"] += told - sum(g.rows for g in drawn.values())
    dropped.update(counts)
    return list(drawn.values())


def _mark(piece: _Piece, seed: int) -> int:
    digest = hashlib.sha256(f"{seed}\0{piece.key}".encode()).digest()
    return int.from_bytes(digest[:16], "big")
