"""A picture of what a verifier by graphical model saw: claims, contexts and their relations.

Claims stand on the left, contexts on the right, and relations between contexts are arcs beside
them. The places follow from the relations alone, so that equal documents give equal pictures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eval.metrics.document import Scored
from eval.report.figures import BLUE, GREEN, ORANGE
from records import Verdict

# What can still be read; the caption says what is left out.
MAX_CLAIMS = 60
MAX_CONTEXTS = 80
MAX_EDGES = 160

_ROW = 20  # pixels
_TOP = 46
_WIDTH = 890
_CLAIM_X, _CONTEXT_X, _TEXT_X = 304, 520, 640
_RADIUS = 6
_CLAIM_CHARACTERS, _CONTEXT_CHARACTERS = 42, 40
_WORDS = {
    "entailment": "entails",
    "contradiction": "contradicts",
    "equivalence": "is equivalent to",
}
_COLOURS = {"entailment": BLUE, "contradiction": ORANGE, "equivalence": GREEN}
_DASHES = {"entailment": "none", "contradiction": "5 3", "equivalence": "none"}


@dataclass(frozen=True)
class Node:
    """A claim or a context; ``p`` is its posterior as text, ``hint`` its whole text."""

    x: float
    y: float
    fill: str
    p: str
    text: str
    hint: str


@dataclass(frozen=True)
class Line:
    """A relation; ``heads`` are the arrow heads of one between contexts."""

    path: str
    colour: str
    dash: str
    width: float
    opacity: float
    heads: list[str]
    hint: str


@dataclass(frozen=True)
class Picture:
    """What the template draws; ``caption`` says whose verdicts they are and what is left out."""

    width: int
    height: int
    claims: list[Node]
    contexts: list[Node]
    lines: list[Line]
    heads: tuple[int, int]  # where the columns' headings end and begin
    guides: tuple[int, int]
    caption: str
    legend: list[tuple[str, str, str]]


@dataclass(frozen=True)
class _Edge:
    source: str  # a context
    target: str  # a claim, or a context
    relation: str
    p: float


def picture_of(scored: Scored) -> Picture | None:
    """The picture of a document's largest graph; none where no such verifier judged it.

    Of several versions the one with relations between contexts is drawn, else the last one.
    """
    verdicts = _chosen(scored.verdicts)
    posteriors: dict[str, float] = {}
    to_claims: list[_Edge] = []
    between: list[_Edge] = []
    for verdict in verdicts:
        extra = verdict.model_extra or {}
        posteriors |= extra.get("context_posteriors") or {}
        for one in extra.get("relations") or []:
            to_claims.append(_Edge(one["context"], verdict.claim, one["relation"], one["p"]))
        for one in extra.get("context_relations") or []:
            between.append(_Edge(one["from"], one["to"], one["relation"], one["p"]))
    if not verdicts:
        return None
    every = len(to_claims) + len(between)
    claims = [verdict.claim for verdict in verdicts][:MAX_CLAIMS]
    contexts = _strongest(list(posteriors), to_claims + between)
    there = {*claims, *contexts}
    # Sorting is stable: of equal probabilities the first ones stay.
    drawn = [e for e in to_claims + between if e.source in there and e.target in there]
    drawn = sorted(drawn, key=lambda edge: -edge.p)[:MAX_EDGES]
    order = _ordered(contexts, claims, drawn)
    rows = max(len(claims), len(order), 1)
    height = _TOP + rows * _ROW + 8
    places = {name: (_CLAIM_X, _y(i, len(claims), rows)) for i, name in enumerate(claims)}
    places |= {name: (_CONTEXT_X, _y(i, len(order), rows)) for i, name in enumerate(order)}
    left_out = [
        f"{total - shown} of {total} {name} are not drawn"
        for shown, total, name in (
            (len(claims), len(verdicts), "claims"),
            (len(order), len(posteriors), "contexts"),
            (len(drawn), every, "relations (the least probable)"),
        )
        if shown < total
    ]
    judge = f"{verdicts[0].assessor}.{verdicts[0].name}"
    return Picture(
        width=_WIDTH,
        height=height,
        claims=_claim_nodes(scored, verdicts[: len(claims)], places),
        contexts=_context_nodes(scored, order, posteriors, places),
        lines=[_line(edge, places, height) for edge in reversed(drawn)],
        heads=(_CLAIM_X - 44, _TEXT_X),
        guides=(_CONTEXT_X + _RADIUS, _TEXT_X - 30),
        caption="; ".join([f"Posteriors and relations of {judge}", *left_out]) + ".",
        legend=[(_COLOURS[name], _DASHES[name], word) for name, word in _WORDS.items()],
    )


def _chosen(verdicts: Sequence[Verdict]) -> list[Verdict]:
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.assessor, verdict.name), []).append(verdict)
    found: list[Verdict] = []
    rank = -1
    for own in groups.values():
        extras = [verdict.model_extra or {} for verdict in own]
        if not any("context_posteriors" in extra for extra in extras):
            continue
        mine = int(any("context_relations" in extra for extra in extras))
        if mine >= rank:
            found, rank = own, mine
    return found


def _strongest(contexts: Sequence[str], edges: Sequence[_Edge]) -> list[str]:
    """The contexts with the most probable relations, in their own order."""
    best = dict.fromkeys(contexts, 0.0)
    for edge in edges:
        for end in (edge.source, edge.target):
            if end in best:
                best[end] = max(best[end], edge.p)
    kept = set(sorted(contexts, key=lambda name: -best[name])[:MAX_CONTEXTS])
    return [name for name in contexts if name in kept]


def _ordered(contexts: Sequence[str], claims: Sequence[str], edges: Sequence[_Edge]) -> list[str]:
    place = {name: number / max(1, len(claims)) for number, name in enumerate(claims)}
    pulls: dict[str, list[tuple[float, float]]] = {name: [] for name in contexts}
    for edge in edges:
        if edge.target in place:
            pulls[edge.source].append((place[edge.target], edge.p))
    middle = {
        name: sum(at * p for at, p in own) / sum(p for _, p in own) if own else 1.0
        for name, own in pulls.items()
    }
    return sorted(contexts, key=lambda name: middle[name])


def _y(number: int, count: int, rows: int) -> float:
    return round(_TOP + (number + 0.5) * rows / max(1, count) * _ROW, 1)


def _claim_nodes(
    scored: Scored, verdicts: Sequence[Verdict], places: dict[str, tuple[float, float]]
) -> list[Node]:
    texts = {claim.id: claim.text for claim in scored.claims}
    return [
        Node(
            *places[verdict.claim],
            fill=_fill(verdict.p),
            p="failed" if verdict.p is None else f"{verdict.p:.2f}",
            text=_cut(texts.get(verdict.claim, verdict.claim), _CLAIM_CHARACTERS),
            hint=f"{verdict.claim}, {verdict.label}: {texts.get(verdict.claim, '')}",
        )
        for verdict in verdicts
    ]


def _context_nodes(
    scored: Scored,
    names: Sequence[str],
    posteriors: dict[str, float],
    places: dict[str, tuple[float, float]],
) -> list[Node]:
    passages = {passage.id: passage for passage in scored.passages}
    nodes = []
    for name in names:
        passage = passages.get(name)
        text = passage.text if passage else name
        source = f" ({passage.source})" if passage and passage.source else ""
        p = posteriors[name]
        hint = f"{name}{source}: {_cut(text, 600)}"
        shown = _cut(text, _CONTEXT_CHARACTERS)
        nodes.append(Node(*places[name], _fill(p), f"{p:.2f}", shown, hint))
    return nodes


def _line(edge: _Edge, places: dict[str, tuple[float, float]], height: int) -> Line:
    (x, y), (to_x, to_y) = places[edge.source], places[edge.target]
    heads = []
    if to_x == x:  # an arc beside the contexts
        bend = round(x + 24 + 84 * math.sqrt(abs(to_y - y) / height), 1)
        path = f"M {x + _RADIUS} {y} C {bend} {y} {bend} {to_y} {x + _RADIUS} {to_y}"
        ends = {"entailment": [to_y], "equivalence": [y, to_y]}.get(edge.relation, [])
        tip = x + _RADIUS
        heads = [f"{tip},{end} {tip + 7},{end - 3.5} {tip + 7},{end + 3.5}" for end in ends]
    else:
        path = f"M {x - _RADIUS} {y} L {to_x + _RADIUS} {to_y}"
    sure = max(0.0, 2 * edge.p - 1)
    return Line(
        path=path,
        colour=_COLOURS.get(edge.relation, "#7A7A7A"),
        dash=_DASHES.get(edge.relation, "1 3"),
        width=round(0.8 + 1.4 * sure, 2),
        opacity=round(0.25 + 0.6 * sure, 2),
        heads=heads,
        hint=f"{edge.source} {_WORDS.get(edge.relation, edge.relation)} {edge.target}, "
        f"p = {edge.p:.2f}",
    )


def _fill(p: float | None) -> str:
    if p is None:
        return "#ffffff"
    end, share = (BLUE, 2 * p - 1) if p >= 0.5 else (ORANGE, 1 - 2 * p)
    mixed = [round(0xF2 + share * (int(end[i : i + 2], 16) - 0xF2)) for i in (1, 3, 5)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _cut(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
