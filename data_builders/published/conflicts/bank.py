"""Read ConflictBank's rows in their three published formats, and sample claims.

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

# ``category`` of the Hub's claim-evidence table, which has one evidence per row.
CATEGORIES = {
    "default": "",
    "misinformation_conflict": "fact",
    "temporal_conflict": "temporal",
    "semantic_conflict": "semantic",
}
# Claim and evidence fields per kind, of the project's scripts and of the Hub's CB_qa; one evidence
# field has two spellings.
_SCRIPT_FIELDS = {
    "": ("correct_pair", ("correct_evidence",)),
    "fact": ("fact_conflict_pair", ("fact_conflict_evidence",)),
    "temporal": ("temporal_conflict_pair", ("temporal_conflict_evidence",)),
    "semantic": ("fact_conflict_pair", ("semantic_conflict_evidence",)),
}
_QA_FIELDS = {
    "": ("default_claim", ("default_evidence",)),
    "fact": (
        "misinformation_conflict_claim",
        ("misinformation_conflict_evidence_evidence", "misinformation_conflict_evidence"),
    ),
    "temporal": ("temporal_conflict_claim", ("temporal_conflict_evidence",)),
    "semantic": ("semantic_conflict_claim", ("semantic_conflict_evidence",)),
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
    """The content of a row: the true part of a group, the conflicting part, or both."""

    key: str
    subject: str
    true: Evidenced | None
    conflicting: Evidenced | None


def _read_pieces(
    rows: Iterable[tuple[str, dict]], kind: Kind, dropped: Counter[str]
) -> Iterator[_Piece]:
    for where, row in rows:
        if "category" in row and "evidence" in row:
            piece = _read_evidence_row(where, row, kind, dropped)
        elif "correct_pair" in row:
            piece = _read_paired_row(row, kind, _SCRIPT_FIELDS, dropped)
        elif "default_claim" in row:
            piece = _read_paired_row(row, kind, _QA_FIELDS, dropped)
        else:
            raise BadInput(
                [
                    f"{where}: expected `category` and `evidence`, `correct_pair`, or "
                    f"`default_claim` of ConflictBank, got fields {', '.join(sorted(row))}"
                ]
            )
        if piece is not None:
            yield piece


def _text(row: dict, *names: str) -> str:
    value = next((row[name] for name in names if isinstance(row.get(name), str)), "")
    return value.strip()


def _read_evidence_row(where: str, row: dict, kind: Kind, dropped: Counter[str]) -> _Piece | None:
    category = row["category"]
    if not isinstance(category, str) or category not in CATEGORIES:
        names = ", ".join(CATEGORIES)
        raise BadInput([f"{where}: category: expected one of {names}, got {category!r}"])
    if CATEGORIES[category] not in ("", kind):
        dropped["evidence of another kind of conflict"] += 1
        return None
    # Neither the id nor the subject is unique.
    key = f"{row.get('id', '')}\0{_text(row, 'subject')}"
    pair = Evidenced(_text(row, "claim"), _text(row, "evidence"))
    missing = [name for name, text in zip(Evidenced._fields, pair, strict=True) if not text]
    if key.startswith("\0") or key.endswith("\0"):
        missing = ["id or subject"]
    for name in missing[:1]:
        dropped[f"row without {name}"] += 1
        return None
    subject = _text(row, "subject")
    return _Piece(key, subject, *((pair, None) if category == "default" else (None, pair)))


def _read_paired_row(row: dict, kind: Kind, fields: dict, dropped: Counter[str]) -> _Piece | None:
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
        parts.append(Evidenced(_text(row, claim), _text(row, *evidences)))
    return _Piece(f"{subject}\0{parts[0].claim}", subject, *parts)


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
        side = (1 if piece.true else 0) | (2 if piece.conflicting else 0)
        sides[key] = sides.get(key, 0) | side
    complete = sorted(key for key, side in sides.items() if side == 3)
    drawn = {key: Group("") for key in complete[:number]}
    for piece in _read_pieces(read(), kind, Counter()):
        if (group := drawn.get(_hash(piece, seed))) is not None:
            group.subject = group.subject or piece.subject
            group.rows += 1
            # The alphabetically first of several evidences, independent of the row order.
            group.true = min((e for e in (group.true, piece.true) if e), default=None)
            both = (group.conflicting, piece.conflicting)
            group.conflicting = min((e for e in both if e), default=None)
    counts["row of a claim that was not drawn"] += total - sum(g.rows for g in drawn.values())
    dropped.update(counts)
    return list(drawn.values())


def _hash(piece: _Piece, seed: int) -> int:
    digest = hashlib.sha256(f"{seed}\0{piece.key}".encode()).digest()
    return int.from_bytes(digest[:16], "big")
