"""Two runs text by text, or, where they are of other texts, topic by topic."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from components.statistics import holm, paired_t, ratio
from eval.report.tables import Cell, TextTable, number

MAX_CHANGED = 200  # texts that a page lists
# Whose score, and under which selection.
Place = tuple[str, str]


class TextScores(NamedTuple):
    """A text and its scores; ``None`` where there is none."""

    id: str
    topic: str
    kind: str
    generator: str
    text: str
    scores: Mapping[Place, float | None]


class Change(NamedTuple):
    """A text whose score is another one in the other run."""

    text: TextScores
    place: Place
    here: float | None
    there: float | None

    @property
    def size(self) -> float:
        """How far it moved; infinite where one side has no score."""
        if self.here is None or self.there is None:
            return math.inf
        return abs(self.here - self.there)


@dataclass
class Comparison:
    """What two runs have in common, and where they differ.

    Attributes:
        places: the scores that both runs have.
        cells: a score and a kind of text to the texts of both runs.
        changed: texts whose score changed, those that moved most first.
        counts: texts in both, of one alone, and of one id with other words.
        lost: scores of one run alone.
        unit: what is paired: ``text``, or ``topic`` with the mean of its texts.
    """

    places: list[Place] = field(default_factory=list)
    cells: dict[tuple[Place, str], list[Change]] = field(default_factory=dict)
    changed: list[Change] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    lost: list[Place] = field(default_factory=list)
    unit: str = "text"


def compare(here: Iterable[TextScores], there: Iterable[TextScores]) -> Comparison:
    """Pair the texts of two runs by their ids; where no text is in both, pair their topics.

    The texts of two models on the same topics are such.
    """
    one, other = list(here), list(there)
    found = _paired(one, other)
    if not found.counts["both"]:
        of_topics = _paired(_topics(one), _topics(other))
        if of_topics.counts["both"]:
            of_topics.unit = "topic"
            return of_topics
    return found


def _topics(texts: Sequence[TextScores]) -> list[TextScores]:
    own: dict[tuple[str, str], list[TextScores]] = defaultdict(list)
    for text in texts:
        own[text.topic, text.kind].append(text)
    found = []
    for (topic, kind), some in own.items():
        scores = {}
        for place in dict.fromkeys(place for text in some for place in text.scores):
            known = [v for text in some if (v := text.scores.get(place)) is not None]
            scores[place] = float(np.mean(known)) if known else None
        generators = ", ".join(dict.fromkeys(text.generator for text in some))
        found.append(TextScores(f"{kind}: {topic}", topic, kind, generators, "", scores))
    return found


def _paired(here: Sequence[TextScores], there: Sequence[TextScores]) -> Comparison:
    others = {text.id: text for text in there}
    found = Comparison()
    cells: dict[tuple[Place, str], list[Change]] = defaultdict(list)
    own_places: dict[Place, None] = {}
    for text in here:
        own_places |= dict.fromkeys(text.scores)
        other = others.get(text.id)
        if other is None:
            found.counts["here"] += 1
        elif other.text != text.text:
            found.counts["other"] += 1
        else:
            found.counts["both"] += 1
            for place in text.scores.keys() & other.scores.keys():
                change = Change(text, place, text.scores[place], other.scores[place])
                cells[place, text.kind].append(change)
    paired = found.counts["both"] + found.counts["other"]
    found.counts["there"] = len(others) - paired
    their_places = dict.fromkeys(place for text in others.values() for place in text.scores)
    found.places = [place for place in own_places if place in their_places]
    found.lost = [place for place in own_places | their_places if place not in found.places]
    found.cells = dict(sorted(cells.items(), key=lambda item: _order(found.places, item[0])))
    moved = [c for own in found.cells.values() for c in own if c.here != c.there]
    found.changed = sorted(moved, key=lambda change: -change.size)  # stable
    return found


def _order(places: Sequence[Place], key: tuple[Place, str]) -> tuple[int, str]:
    return places.index(key[0]), key[1]


def comparison_tables(found: Comparison, seed: int = 0) -> list[TextTable]:
    """The test of each score and kind of text, and the texts that changed."""
    tests = [_two_sided(own) for own in found.cells.values()]
    corrected = holm(tests)
    rows: list[list[Cell | str]] = [
        [*place, kind, *_cells_of(own, seed), _p(p), _p(after)]
        for ((place, kind), own), p, after in zip(
            found.cells.items(), tests, corrected, strict=True
        )
    ]
    units = f"{found.unit}s"
    head = ["Metric", "Defence", "Kind", units.capitalize(), "Here", "There", "Difference"]
    head += ["Up", "Down", "p", "p, Holm"]
    note = (
        f"Mean precision of the {units} that have one in both runs, and the difference here minus "
        f"there with its 95 % interval over topics. p: Student’s paired t-test over {units}, two-"
        "sided; beside it Holm’s correction for all rows of this table. Up and down count "
        f"{units}."
    )
    shown = found.changed[:MAX_CHANGED]
    said = f"{len(found.changed):,} scores changed."
    if len(found.changed) > len(shown):
        said += f" The {len(shown)} that moved most are here; all are in changed.csv."
    return [
        TextTable("Difference of two runs", note, head, rows),
        TextTable(
            f"{units.capitalize()} whose score changed",
            said,
            ["Topic", "Kind", "Generator", "Id", "Metric", "Defence", "Here", "There"],
            [[*_names(c), number(c.here), number(c.there)] for c in shown],
        ),
    ]


def changed_rows(found: Comparison) -> list[dict[str, object]]:
    """All texts whose score changed, one a line of a CSV file."""
    names = ("topic", "kind", "generator", "id", "metric", "defence")
    return [
        dict(zip(names, _names(c), strict=True)) | {"here": c.here, "there": c.there}
        for c in found.changed
    ]


def summary(found: Comparison) -> list[str]:
    """What was compared, and which differences are no chance."""
    counts = found.counts
    sides = f"are in both runs; {counts['here']:,} only here, {counts['there']:,} only there"
    if found.unit == "topic":
        lines = [f"No text is in both runs, so topics are compared: {counts['both']:,} {sides}."]
    else:
        lines = [
            f"{counts['both']:,} texts {sides}, {counts['other']:,} have the same id and other "
            "words and are not compared."
        ]
    if found.lost:
        names = ", ".join(f"{metric} under {defence}" for metric, defence in found.lost)
        lines.append(f"Only one of the runs has: {names}.")
    corrected = holm([_two_sided(own) for own in found.cells.values()])
    sure = [p for p in corrected if p is not None and p < 0.05]
    lines.append(
        f"{len(found.changed):,} scores changed; {len(sure)} of {len(found.cells)} differences of "
        "the means have p < 0.05 after Holm’s correction."
    )
    return lines


def _names(change: Change) -> list[str]:
    text = change.text
    return [text.topic, text.kind, text.generator, text.id, *change.place]


def _columns(changes: Sequence[Change]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    known = [c for c in changes if c.here is not None and c.there is not None]
    one, other = (np.array([getattr(c, side) for c in known], float) for side in ("here", "there"))
    return one, other, [c.text.topic for c in known]


def _two_sided(changes: Sequence[Change]) -> float | None:
    one, other, _ = _columns(changes)
    sides = [paired_t(one, other, way).p for way in ("greater", "less")]
    known = [p for p in sides if p is not None]
    return min(1.0, 2 * min(known)) if known else None


def _cells_of(changes: Sequence[Change], seed: int) -> list[Cell | str]:
    one, other, topics = _columns(changes)
    value, ci95, n = ratio(one - other, np.ones(len(one)), topics, seed)
    ends = "" if ci95 is None else f"[{_signed(ci95[0])}, {_signed(ci95[1])}]"
    means = [number(float(side.mean()) if len(side) else None) for side in (one, other)]
    difference = Cell("–" if value is None else _signed(value), ends, f"n = {n}")
    ways = (str(int((one > other).sum())), str(int((one < other).sum())))
    return [f"{len(one)} of {len(changes)}", *means, difference, *ways]


def _signed(value: float) -> str:
    return f"{value:+z.3f}"


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
