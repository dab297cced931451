"""The scores of all texts by metric and defence, and pairs of an attacked and an honest text."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from components.statistics import Ratio, ratio
from eval.defences import Defence
from eval.experiments.robustness.robustness_grid import NONE, TextScores
from eval.metrics.document import DocumentScore
from records import Document

Value = dict[str, Any]
Scored = TypeVar("Scored", "Text", TextScores)
By = Literal["generator", "bin", "group", "generator+bin"]
ALL = "all"
# Differences of equal means are not 0 but their rounding error.
_ROUNDING = 1e-12


class Text(NamedTuple):
    """A text with its score by one metric with one defence.

    Attributes:
        value: the score; NaN if nothing could be judged or the text does not respond.
        score: counts behind the value; ``None`` of a text metric.
        plain: the value on the same scale without the defence.
    """

    document: Document
    value: float
    score: DocumentScore | None = None
    plain: float = math.nan

    @property
    def failed(self) -> int:
        """Number of claims that could not be judged; of a text metric 1 for a failed text."""
        return int(math.isnan(self.value)) if self.score is None else self.score.failed


# Metric (with the name of its verdict if it has several) and defence to the texts' scores.
Cells = dict[tuple[str, str], list[Text]]


def cells_of(
    rows: Sequence[TextScores],
    defences: Mapping[str, Defence],
    verdicts: Mapping[str, str] | None = None,
    same: Collection[tuple[str, str]] = (),
) -> Cells:
    """Collect the scores of all texts by metric and defence.

    Args:
        rows: texts under all metrics.
        defences: name to defence, ``none`` included.
        verdicts: metric to the name of the verdict that it scores; by default each verdict is a
            metric.
        same: metric and defence of columns that are left out, since others are equal to them.
    """
    cells: Cells = {}
    for metric in rows[0].metrics if rows else ():
        scored = [
            {(s.selection, s.assessor, s.name): s for s in row.metrics[metric].scores}
            for row in rows
        ]
        names = {column: verdict_names(rows, metric, column, verdicts) for column in defences}
        for label, name in metric_labels(metric, names[NONE]).items():
            for column, defence in defences.items():
                verdict = _match(name, names[column])
                if verdict is None or (metric, column) in same:
                    continue
                texts = []
                for row, scores in zip(rows, scored, strict=True):
                    score = _score(scores, column, verdict)
                    plain = defence.value(_score(scores, NONE, name))
                    value = defence.value(score)
                    texts.append(Text(row.document, _number(value), score, _number(plain)))
                cells[label, column] = texts
    for metric in rows[0].text_scores if rows else ():
        values = [_number(row.text_scores[metric]) for row in rows]
        cells[metric, NONE] = [
            Text(row.document, value, None, value) for row, value in zip(rows, values, strict=True)
        ]
    return cells


def verdict_names(
    rows: Sequence[TextScores], metric: str, column: str, verdicts: Mapping[str, str] | None
) -> list[tuple[str, str]]:
    """Assessor and name of the verdicts that a metric scores in a column."""
    chosen = (verdicts or {}).get(metric)
    names = dict.fromkeys(
        (score.assessor, score.name)
        for row in rows
        for score in row.metrics[metric].scores
        if score.selection == column and score.assessor
    )
    return [name for name in names if chosen in (None, name[1])] or list(names)


def metric_labels(metric: str, names: Sequence[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """The metric's name to its verdict; if it has several, with the verdict's name appended."""
    if len(names) < 2:
        return {metric: names[0] if names else ("", "default")}
    if len({assessor for assessor, _ in names}) > 1:
        return {f"{metric}.{assessor}.{name}": (assessor, name) for assessor, name in names}
    return {f"{metric}.{name}": (assessor, name) for assessor, name in names}


def _match(name: tuple[str, str], names: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """The verdict of a defended pipeline that replaces one of the metric."""
    if name in names or not names:
        return name
    return names[0] if len(names) == 1 else None


def _score(scores: Mapping[tuple, DocumentScore], column: str, name: tuple) -> DocumentScore:
    # A text without claims has one score, without the name of a verdict.
    return scores.get((column, *name)) or scores[column, "", "default"]


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def bound(text: Text, defence: Defence, is_supported: bool) -> float:
    """The score of a text if all failed claims were supported, or none."""
    if text.score is None:
        return text.value
    return _number(defence.value(text.score.bound(is_supported)))


# Selections of texts


def draw_of(document: Document) -> int:
    """The number of a text among those of an attack on a topic, of which the best counts."""
    return (document.model_extra or {}).get("draw", 0)


def by_kind(texts: Iterable[Scored]) -> dict[str, list[Scored]]:
    """Kind to its texts, in their order."""
    kinds: dict[str, list[Scored]] = defaultdict(list)
    for text in texts:
        kinds[text.document.kind or "normal"].append(text)
    return dict(kinds)


def strata(texts: Sequence[Text], by: Sequence[By]) -> list[tuple[Value, list[Text]]]:
    """All texts, then those of each generator, bin, group, and pair if there are several."""
    groups: list[tuple[Value, list[Text]]] = [({"generator": ALL}, list(texts))]
    for fields in by:
        names = fields.split("+")
        members: dict[tuple[str, ...], list[Text]] = defaultdict(list)
        for text in texts:
            values = tuple(getattr(text.document, name) for name in names)
            if None not in values:
                members[values].append(text)
        if len(members) > 1:
            for values in sorted(members):
                stratum = {"generator": ALL} | dict(zip(names, values, strict=True))
                groups.append((stratum, members[values]))
    return groups


def mean(column: np.ndarray, texts: Sequence[Text], seed: int) -> Value:
    """Value, bootstrap interval and number of topics, of the rows that are not NaN."""
    present = ~np.isnan(column)
    topics = [text.document.topic for text, keep in zip(texts, present, strict=True) if keep]
    return fields_of(ratio(column[present], np.ones(present.sum()), topics, seed))


def fields_of(result: Ratio) -> Value:
    """A ratio as fields of a result, with rounding errors set to 0."""
    value, ci95, n = result
    if value is not None and abs(value) < _ROUNDING:
        value = 0.0
    if ci95 is not None:
        ci95 = tuple(0.0 if abs(end) < _ROUNDING else end for end in ci95)
    return {"value": value, "ci95": ci95, "n": n}
