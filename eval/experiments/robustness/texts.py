"""All texts of a run for a page's script: compact JSON, compressed, and inert whatever they say."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from eval.experiments.robustness.grid import NONE, CurveRow, Judged, Row
from eval.experiments.robustness.values import label_of, twin_of
from eval.stages import Selection
from records import Claim, Verdict, first_fault, iter_rows

# The file of the curves' texts.
CURVES = "curves.jsonl"

# Characters of the page that the texts may take, and what is cut of one text before any is left
# out.
MAX_PACKED = 17_000_000
MAX_CHARACTERS = 4000
MAX_CLAIMS = 120
MAX_CLAIM = 600

REASONS = {
    "selected": "in the best selection",
    "uninformative": "says no more than a bleached claim, which holds for any topic",
    "irrelevant": "its sentence is not about the topic",
    "duplicate": "repeats a claim that was kept",
    "incoherent": "its sentence does not entail it and the coherence budget has no room",
    "failed": "it could not be judged whether its sentence is relevant",
}
LABELS = (
    "supported",
    "not_supported",
    "contradicted",
    "undecided",
    "irrelevant",
    "failed",
)


class Packed(NamedTuple):
    """Texts as they stand in a page.

    Attributes:
        data: gzip of JSON, in base64.
        shown, total: texts that are in it, and that there are.
        cut: texts of which something is left out.
    """

    data: str
    shown: int
    total: int
    cut: int


def packed(folder: Path, most: int = MAX_PACKED) -> Packed | None:
    """The texts of a run's folder; ``None`` where there are none.

    Where they are too many, the first of each kind and generator stay, and of each curve the first
    texts with their twins.

    Args:
        folder: each line of its ``texts.jsonl`` is a ``grid.Row``, each of ``curves.jsonl`` a
            ``grid.CurveRow``.
        most: characters that they may take.

    Raises:
        BadInput: a line that is no such row.
    """
    columns: dict[tuple[str, str, str], int] = {}
    names: dict[str, dict[tuple[str, str], None]] = {}
    seen: Counter[tuple] = Counter()
    every: list[tuple[int, str, bool]] = []  # rank in its cell, JSON, whether it is cut
    defences: list[str] = []
    twins: dict[tuple[str, str], int] = {}
    for row in _rows(folder):
        compact = _compact(row, columns, defences)
        for metric, own in row.metrics.items():
            said = {(v.assessor, v.name): None for v in own.verdicts}
            names.setdefault(metric, {}).update(said)
        if isinstance(row, CurveRow):
            twin, k = twin_of(row.document)
            compact |= {"v": row.curve} | ({} if k is None else {"n": k, "w": twin})
            rank = twins.setdefault((row.curve, twin), len(twins) + 1)
        else:
            cell = (row.document.kind, row.document.generator)
            seen[cell] += 1
            rank = seen[cell]
        every.append((rank, _json(compact), "z" in compact))
    if not every:
        return None
    head = {
        "metrics": [label_of(m, (a, n), list(names[m])) for m, a, n in columns],
        "defences": defences,
        "labels": LABELS,
        "reasons": list(REASONS),
        "why": list(REASONS.values()),
    }
    return _fitted(_json(head), every, most)


def _rows(folder: Path) -> Iterator[Row]:
    for path, record in ((folder / "texts.jsonl", Row), (folder / CURVES, CurveRow)):
        for line, raw in iter_rows(path) if path.is_file() else ():
            try:
                yield record.model_validate(raw)
            except ValidationError as error:
                raise first_fault(f"{path}:{line}", error) from None


def _fitted(head: str, every: Sequence[tuple[int, str, bool]], most: int) -> Packed:
    ranks = sorted(rank for rank, _, _ in every)
    count = len(every)
    while True:
        last = ranks[count - 1]
        own = [text for text in every if text[0] <= last][:count]
        content = f'{{"head":{head},"texts":[{",".join(text for _, text, _ in own)}]}}'
        small = gzip.compress(content.encode("utf-8"), 9, mtime=0)
        data = base64.b64encode(small).decode("ascii")
        if len(data) <= most or count == 1:
            return Packed(data, len(own), len(every), sum(cut for _, _, cut in own))
        count = max(1, int(count * most / len(data) * 0.97))


# A text


def _compact(row: Row, columns: dict[tuple[str, str, str], int], defences: list[str]) -> dict:
    own = row.document
    found: dict[str, Any] = {"i": own.id, "t": own.topic, "k": own.kind, "g": own.generator}
    found |= {"b": own.bin, "r": own.group, "x": _cut(own.text, MAX_CHARACTERS)}
    cut = len(own.text) > MAX_CHARACTERS
    sets: dict[str, int] = {}
    metrics = []
    for metric, judged in row.metrics.items():
        for defence in judged.selections:
            if defence not in defences:
                defences.append(defence)
        claims = judged.claims[:MAX_CLAIMS]
        cut = cut or len(judged.claims) > MAX_CLAIMS
        place = sets.setdefault(_json(_set(claims, judged, defences)), len(sets))
        for name in dict.fromkeys((v.assessor, v.name) for v in judged.verdicts):
            column = columns.setdefault((metric, *name), len(columns))
            metrics.append([column, place, *_judged(claims, judged, name, defences)])
    found |= {"s": [json.loads(one) for one in sets], "m": metrics}
    return found | ({"z": 1} if cut else {})


def _set(claims: Sequence[Claim], judged: Judged, defences: Sequence[str]) -> dict:
    place = {claim.id: number for number, claim in enumerate(claims)}
    texts = [_cut(claim.text, MAX_CLAIM) for claim in claims]
    failed = {place[c.id]: _cut(c.failed, MAX_CLAIM) for c in claims if c.failed is not None}
    decided = {
        defences.index(defence): _decided(len(claims), own, place)
        for defence, own in judged.selections.items()
    }
    return {"c": texts, "f": failed, "d": decided}


def _decided(count: int, selections: Sequence[Selection], place: dict[str, int]) -> list:
    letters, weights, entailed, other = ["-"] * count, [0.0] * count, [0] * count, {}
    for one in selections:
        if one.claim not in place:
            continue  # cut
        at = place[one.claim]
        letters[at] = str(list(REASONS).index(one.reason))
        weights[at] = round(one.weight, 2)
        p = one.document_entailment
        entailed[at] = None if p is None else round(100 * p)
        if one.duplicate_of in place:
            other[at] = place[one.duplicate_of]
    return ["".join(letters), weights, entailed, other]


def _judged(
    claims: Sequence[Claim], judged: Judged, name: tuple[str, str], defences: Sequence[str]
) -> list:
    """Verdicts as letters, probabilities in per cent, reasons of failures, scores, those anew."""
    own = _of(judged.verdicts, name)
    chances = [own[c.id].p if c.id in own else None for c in claims]
    shown = [None if p is None else round(100 * p) for p in chances]
    why = {
        at: _cut(own[claim.id].reason, MAX_CLAIM)
        for at, claim in enumerate(claims)
        if claim.id in own and own[claim.id].label == "failed" and own[claim.id].reason
    }
    scores = {
        -1 if s.selection == NONE else defences.index(s.selection): s.precision
        for s in judged.scores
        if (s.assessor, s.name) == name
    }
    rounded = {k: None if v is None else round(v, 3) for k, v in scores.items()}
    anew = {
        defences.index(defence): _letters(claims, _of(verdicts, name))
        for defence, verdicts in judged.again.items()
        if _of(verdicts, name)
    }
    known = shown if any(p is not None for p in shown) else 0
    return [_letters(claims, own), known, why, rounded, anew]


def _of(verdicts: Sequence[Verdict], name: tuple[str, str]) -> dict[str, Verdict]:
    return {v.claim: v for v in verdicts if (v.assessor, v.name) == name}


def _letters(claims: Sequence[Claim], own: dict[str, Verdict]) -> str:
    return "".join(str(LABELS.index(own[c.id].label)) if c.id in own else "-" for c in claims)


def _cut(text: str | None, most: int) -> str:
    text = text or ""
    return text if len(text) <= most else text[:most].rstrip() + " …"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
