"""Comparison of two runs: results, configuration, and scores of single texts.

Texts are paired by id, or by topic if the runs have no text in common.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cli.printable import printable
from components.statistics import holm, paired_t, ratio
from eval.metrics.document import named
from eval.report.declare import Cell, TextTable, cell, number
from records import Result, ResultFile, iter_rows, read_results

if TYPE_CHECKING:
    import pandas as pd

MAX_CHANGED = 1000  # texts that a table lists
# Identifying fields of a result.
KEYS = ("metric", "assessor", "variant", "against", "domain", "generator", "kind", "group", "bin")
KEYS += ("selection",)
# Compared parts of the provenance.
_DECIDING = ("config", "data", "checkpoints", "prompts", "versions")
# Files with scores of single texts.
_TEXTS = ("scored.jsonl", "texts.jsonl")
# Assessor (or metric) and selection.
Place = tuple[str, str]


class TextScores(NamedTuple):
    """A text, its scores (``None`` for a missing score), and the ids of its selected claims."""

    id: str
    topic: str
    kind: str
    generator: str
    text: str
    scores: Mapping[Place, float | None]
    selected: Sequence[str] = ()


class Change(NamedTuple):
    """A text's score in both runs."""

    text: TextScores
    place: Place
    left: float | None
    right: float | None

    @property
    def size(self) -> float:
        """Absolute difference; infinite if a score is missing."""
        if self.left is None or self.right is None:
            return math.inf
        return abs(self.left - self.right)


class Difference(NamedTuple):
    """Left minus right over the texts with both scores.

    Attributes:
        texts: their number.
        means: of the left and of the right scores.
        value, ci95, topics: the mean difference, its 95 % interval over topics, and their number.
        ways: texts with a higher left and with a higher right score.
    """

    texts: int
    means: tuple[float | None, float | None]
    value: float | None
    ci95: tuple[float, float] | None
    topics: int
    ways: tuple[int, int]


@dataclass
class Paired:
    """The texts of two runs.

    Attributes:
        cells: score and kind of text to the paired texts.
        counts: texts in both runs, in one run only, with the same id but different text, and in
            both runs with different selected claims.
        unit: paired unit: ``text``, or ``topic`` with the mean of its texts.
    """

    cells: dict[tuple[Place, str], list[Change]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    unit: str = "text"


def compare(left: Path, right: Path) -> list[TextTable]:
    """Return the tables of two runs: paired tests, results, what differs, and changed texts.

    Args:
        left: a run's folder, A.
        right: the other's, B.
    """
    files = [read_results(folder / "results.json") for folder in (left, right)]
    tables = [_side_by_side(*files), _what_differs(*files)]
    scores = [list(text_scores(folder)) for folder in (left, right)]
    if not all(scores):
        return tables
    tests, changed = paired_tables(pair(*scores))
    return [tests, *tables, changed]


def compare_runs(a: str | Path, b: str | Path) -> pd.DataFrame:
    """Compare the precision of the texts of two runs of ``score`` or of an experiment.

    Args:
        a: a run's folder.
        b: the other's.

    Returns:
        One row per assessor (or metric), selection and kind of text: ``n`` (texts with a precision
            in both runs), their means ``a`` and ``b``, ``difference`` (a − b) with its 95 %
            interval over topics (``low``, ``high``), ``p`` of the paired t-test, two-sided, and
            ``p_holm``, corrected for all rows.
    """
    import pandas as pd  # takes 0.5 s to import

    paired = pair(*(list(text_scores(Path(folder))) for folder in (a, b)))
    tests = [_two_sided(changes) for changes in paired.cells.values()]
    rows = []
    for (place, kind), changes in paired.cells.items():
        texts, means, value, ci95, *_ = _mean_difference(changes)
        low, high = ci95 or (None, None)
        rows.append((*place, kind, texts, *means, value, low, high))
    names = ["metric", "selection", "kind", "n", "a", "b", "difference", "low", "high"]
    frame = pd.DataFrame(rows, columns=names).assign(p=tests, p_holm=holm(tests))
    return frame.astype(dict.fromkeys([*names[4:], "p", "p_holm"], float))


# Results


def _side_by_side(left: ResultFile, right: ResultFile) -> TextTable:
    ours, theirs = by_key(left.results), by_key(right.results)
    keys = list(dict.fromkeys([*ours, *theirs]))
    fields = [i for i, name in enumerate(KEYS) if name == "metric" or varies(keys, i)]
    rows, unchanged = [], 0
    for key in keys:
        a, b = ours.get(key), theirs.get(key)
        if a and b and (a.value, a.n, a.failed) == (b.value, b.n, b.failed):
            unchanged += 1
            continue
        names = ["" if key[i] is None else printable(str(key[i])) for i in fields]
        rows.append([*names, cell(a), cell(b), _difference(a, b)])
    both = len(ours.keys() & theirs.keys())
    note = (
        f"{both:,} results are in both runs, {len(ours) - both:,} only in A, "
        f"{len(theirs) - both:,} only in B; {unchanged:,} unchanged results are not shown. "
        "Brackets hold each run's own 95 % interval."
    )
    head = [*(KEYS[i].capitalize() for i in fields), "A", "B", "A − B"]
    return TextTable("Results", note, head, rows)


def by_key(results: Iterable[Result]) -> dict[tuple, Result]:
    """Index results by ``KEYS`` and a counter that distinguishes duplicates."""
    rows_by_key: dict[tuple, Result] = {}
    for row in results:
        key, place = tuple(getattr(row, name) for name in KEYS), 0
        while (*key, place) in rows_by_key:
            place += 1
        rows_by_key[*key, place] = row
    return rows_by_key


def varies(keys: Sequence[tuple], place: int) -> bool:
    """Whether keys differ in a field."""
    return len({key[place] for key in keys}) > 1


def _difference(a: Result | None, b: Result | None) -> str:
    if a is None or b is None or a.value is None or b.value is None:
        return "–"
    return _signed(a.value - b.value)


def _signed(value: float) -> str:
    return f"{value:+z.3f}"


def _what_differs(left: ResultFile, right: ResultFile) -> TextTable:
    ours, theirs = _deciding(left), _deciding(right)
    rows = [
        [printable(key), *(printable(side.get(key, "–")) for side in (ours, theirs))]
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key) != theirs.get(key)
    ]
    note = "Configuration, content of files (SHA-256) and versions, by key in results.json."
    if not rows:
        note = "No differences in configuration, content of files and versions."
    return TextTable("What differs", note, ["Key", "A", "B"], rows)


def _deciding(file: ResultFile) -> dict[str, str]:
    settings = {"experiment": file.experiment}
    for name in _DECIDING:
        settings |= _flat(file.provenance.get(name), name)
    # Checkpoints are compared by hash only.
    return {k: v for k, v in settings.items() if not k.startswith("checkpoints") or "sha256" in k}


def _flat(value: object, where: str) -> dict[str, str]:
    if isinstance(value, dict) and value:
        parts = [(f"{where}.{key}", item) for key, item in value.items()]
    elif isinstance(value, list) and value:
        parts = [(f"{where}[{place}]", item) for place, item in enumerate(value)]
    else:
        return {where: json.dumps(value, ensure_ascii=False)}
    return {key: text for way, item in parts for key, text in _flat(item, way).items()}


# Texts


def text_scores(folder: Path) -> Iterator[TextScores]:
    """Yield the precision of each text by assessor (or metric) and selection.

    A text without verdicts has one score, which counts for all assessors of a metric.
    """
    rows = [row for name in _TEXTS if (folder / name).is_file() for row in _rows(folder / name)]
    names: dict[str, dict[str, None]] = defaultdict(dict)
    for _, scores, _ in rows:
        for metric, label, *_ in scores:
            names[metric] |= {label: None} if label else {}
    for document, scores, selected in rows:
        by_place = {}
        for metric, label, selection, precision in scores:
            for name in [label] if label else names[metric]:
                label_parts = [metric] * bool(metric) + [name] * (name != "default")
                by_place[", ".join(label_parts), selection] = precision
        kinds = (document.get("kind") or "normal", document.get("generator") or "given")
        yield TextScores(
            document["id"], document["topic"], *kinds, document["text"], by_place, selected
        )


def _rows(path: Path) -> Iterator[tuple[dict, list[tuple[str, str, str, float | None]], list[str]]]:
    for _, row in iter_rows(path):
        if not isinstance(row.get("document"), dict):
            return
        metrics = row.get("metrics") or {"": row}
        scores = [
            (metric, _label(score, metric), score["selection"], score.get("precision"))
            for metric, metric_row in metrics.items()
            for score in metric_row["scores"]
        ]
        selected = [
            f"{metric}/{selection['claim']}"
            for metric, metric_row in metrics.items()
            for selection in metric_row.get("selections") or ()
            if selection["selected"]
        ]
        places = [row[name] for name in ("set", "evidence") if name in row]
        document = row["document"]
        yield {**document, "id": "/".join([*places, document["id"]])}, scores, selected


def _label(score: dict, metric: str) -> str:
    if not score.get("assessor"):
        return ""
    return score["name"] if metric else named(score["assessor"], score["name"])


def pair(left: Sequence[TextScores], right: Sequence[TextScores]) -> Paired:
    """Pair the texts of two runs by id, or by topic if no id is in both."""
    paired = _paired(left, right)
    if not paired.counts["both"]:
        of_topics = _paired(_topics(left), _topics(right))
        if of_topics.counts["both"]:
            of_topics.unit = "topic"
            return of_topics
    return paired


def _topics(texts: Sequence[TextScores]) -> list[TextScores]:
    by_topic: dict[tuple[str, str], list[TextScores]] = defaultdict(list)
    for text in texts:
        by_topic[text.topic, text.kind].append(text)
    topics = []
    for (topic, kind), some in by_topic.items():
        scores = {}
        for place in dict.fromkeys(place for text in some for place in text.scores):
            values = [v for text in some if (v := text.scores.get(place)) is not None]
            scores[place] = float(np.mean(values)) if values else None
        generators = ", ".join(dict.fromkeys(text.generator for text in some))
        topics.append(TextScores(f"{kind}: {topic}", topic, kind, generators, "", scores))
    return topics


def _paired(left: Sequence[TextScores], right: Sequence[TextScores]) -> Paired:
    right_by_id = {text.id: text for text in right}
    paired = Paired()
    cells: dict[tuple[Place, str], list[Change]] = defaultdict(list)
    for text in left:
        other = right_by_id.get(text.id)
        if other is None:
            paired.counts["left"] += 1
        elif other.text != text.text:
            paired.counts["other"] += 1
        else:
            paired.counts["both"] += 1
            paired.counts["reselected"] += text.selected != other.selected
            for place in text.scores.keys() & other.scores.keys():
                change = Change(text, place, text.scores[place], other.scores[place])
                cells[place, text.kind].append(change)
    paired.counts["right"] = len(right_by_id) - paired.counts["both"] - paired.counts["other"]
    paired.cells = dict(sorted(cells.items()))
    return paired


def paired_tables(paired: Paired) -> list[TextTable]:
    """Return the tables of tests per score and kind of text, and of changed texts."""
    tests = [_two_sided(changes) for changes in paired.cells.values()]
    rows: list[list[Cell | str]] = [
        [number(p, "p"), number(after, "p"), *place, kind, *_cells_of(changes)]
        for ((place, kind), changes), p, after in zip(
            paired.cells.items(), tests, holm(tests), strict=True
        )
        if any(change.left != change.right for change in changes)
    ]
    units, counts = f"{paired.unit}s", paired.counts
    head = ["p", "p, Holm", "Metric", "Selection", "Kind", units.capitalize(), "A", "B", "A − B"]
    head += ["Up", "Down"]
    note = (
        f"{counts['both']:,} {units} are in both runs, {counts['left']:,} only in A, "
        f"{counts['right']:,} only in B, {counts['other']:,} have the same id but different text. "
        f"Mean precision of the {units} that have one in both runs, with the 95 % interval of the "
        f"difference over topics. p: Student’s paired t-test over {units}, two-sided; next to it "
        f"Holm’s correction for all {len(tests):,} comparisons; "
        f"{len(tests) - len(rows):,} unchanged ones are not shown."
    )
    moved = [c for changes in paired.cells.values() for c in changes if c.left != c.right]
    changed = sorted(moved, key=lambda change: -change.size)[:MAX_CHANGED]  # stable
    summary = f"{counts['reselected']:,} {units} with other selected claims; "
    summary += f"{len(moved):,} scores changed" + (
        f"; the {len(changed):,} that moved most." if len(changed) < len(moved) else "."
    )
    return [
        TextTable(f"Difference of {units}", note, head, rows),
        TextTable(
            f"{units.capitalize()} whose score changed",
            summary,
            ["Topic", "Kind", "Generator", "Id", "Metric", "Selection", "A", "B"],
            [[*c.text[1:4], c.text.id, *c.place, number(c.left), number(c.right)] for c in changed],
        ),
    ]


def _columns(changes: Sequence[Change]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    scored = [c for c in changes if c.left is not None and c.right is not None]
    a, b = (np.array([getattr(c, side) for c in scored], float) for side in ("left", "right"))
    return a, b, [c.text.topic for c in scored]


def _two_sided(changes: Sequence[Change]) -> float | None:
    left, right, _ = _columns(changes)
    sides = [paired_t(left, right, way).p for way in ("greater", "less")]
    p_values = [p for p in sides if p is not None]
    return min(1.0, 2 * min(p_values)) if p_values else None


def _mean_difference(changes: Sequence[Change]) -> Difference:
    left, right, topics = _columns(changes)
    value, ci95, n = ratio(left - right, np.ones(len(left)), topics, seed=0)
    means = tuple(float(side.mean()) if len(side) else None for side in (left, right))
    ways = int((left > right).sum()), int((left < right).sum())
    return Difference(len(left), means, value, ci95, n, ways)


def _cells_of(changes: Sequence[Change]) -> list[Cell | str]:
    difference = _mean_difference(changes)
    value, ci95 = difference.value, difference.ci95
    ends = "" if ci95 is None else f"[{_signed(ci95[0])}, {_signed(ci95[1])}]"
    cell_of_difference = Cell(
        "–" if value is None else _signed(value), ends, f"n = {difference.topics}"
    )
    means = map(number, difference.means)
    return [
        f"{difference.texts} of {len(changes)}",
        *means,
        cell_of_difference,
        *map(str, difference.ways),
    ]
