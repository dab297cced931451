"""What a grid of metrics and defences shows: mean scores, order of honest texts, costs.

F1@K: SAFE (2403.18802), section 5.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from components.statistics import pearson, t_interval
from eval.defences import NO_DEFENCE, Defence
from eval.experiments.robustness.robustness_cells import (
    ALL,
    By,
    Cells,
    Text,
    Value,
    bound,
    by_kind,
    fields_of,
    mean,
    strata,
)
from eval.experiments.robustness.robustness_grid import NONE
from eval.experiments.robustness.robustness_verdicts import HonestLadders
from eval.metrics.probabilities import labelled_precision

# Names of a mean score in the results, by the ``score`` of a defence; "score" of a text metric.
SCORES = {None: "factual_precision", "precision": "factual_precision"} | {
    name: name for name in ("factscore", "f1_at_k")
}
TEXT_SCORE = "score"


# Texts by kind


def score_values(
    cells: Cells, defences: Mapping[str, Defence], by: Sequence[By], seed: int
) -> Iterator[Value]:
    """Mean score, ``claims``, ``respond_ratio`` and ``kept_share`` by kind of text.

    Next to each score its bounds as ``variant``: the score if every claim that could not be judged
    were supported, or none.
    """
    for (metric, column), texts in cells.items():
        for kind, members in by_kind(texts).items():
            for stratum, some in strata(members, by):
                shared = {"assessor": metric, "selection": column, "kind": kind} | stratum
                shared["failed"] = sum(text.failed for text in some)
                defence = defences.get(column, NO_DEFENCE)
                for name, variant, values in _columns(some, column, defence):
                    row = shared | {"metric": name, "variant": variant}
                    yield row | mean(np.array(values, dtype=float), some, seed)


def _columns(
    texts: Sequence[Text], column: str, defence: Defence
) -> Iterator[tuple[str, str | None, list[float]]]:
    scores = [text.score for text in texts]
    name = TEXT_SCORE if None in scores else SCORES[defence.score]
    yield name, None, [text.value for text in texts]
    if any(text.failed for text in texts):
        for variant, supported in (("failed_supported", True), ("failed_not_supported", False)):
            yield name, variant, [bound(text, defence, supported) for text in texts]
    if None in scores:
        return
    yield "claims", None, [s.kept if s.responded else math.nan for s in scores]
    if column == NONE:
        yield "respond_ratio", None, [float(s.responded) for s in scores]
    elif any(s.kept_share not in (None, 1.0) for s in scores):
        yield "kept_share", None, [s.kept_share if s.claims else math.nan for s in scores]


# Order and costs


def ladder_values(
    ladders: Mapping[tuple[str, str], HonestLadders],
) -> Iterator[Value]:
    """How each column orders the honest texts, and what its defence costs them.

    - ``order``: Kendall's tau of score and gold F1 by ladder, mean over topics;
    - ``order_lost``: that without the defence minus that with it;
    - ``rung``: mean score by gold F1 (``variant``);
    - ``disorder``: success rate of the ladder's own texts;
    - ``cost``: score without the defence minus score with it of the best texts, both on the
      defence's scale;
    - ``empty_share``: share of the texts of which the defence keeps no claim.
    """
    for (metric, column), ladder in ladders.items():
        shared = {"assessor": metric, "selection": column, "generator": ALL}
        plain = ladders[metric, NONE]
        for kind, texts in ladder.texts.items():
            row = shared | {"kind": kind, "failed": sum(text.failed for text in texts)}
            orders = ladder.orders(kind)
            yield row | {"metric": "order"} | fields_of(t_interval(_array(orders)))
            if column != NONE:
                before = plain.orders(kind)
                lost = {t: before[t] - order for t, order in orders.items() if t in before}
                result = {"metric": "order_lost", "against": NONE}
                yield row | result | fields_of(t_interval(_array(lost)))
            yield from _rungs(texts, row)
        row = shared | {"kind": next(iter(ladder.texts), ALL), "failed": 0}
        yield row | {"metric": "disorder"} | fields_of(t_interval(_array(ladder.disorder())))
        if column == NONE:
            continue
        best = [rungs[-1] for rungs in ladder.rungs.values()]
        costs = {text.document.topic: text.plain - text.value for text in best}
        yield row | {"metric": "cost", "against": NONE} | fields_of(t_interval(_array(costs)))
        texts = [text for rungs in ladder.rungs.values() for text in rungs]
        empty = {text.document.id: float(text.score.empty_selection) for text in texts}
        value = sum(empty.values()) / len(empty) if empty else None
        share = {"value": value, "ci95": None, "n": len(ladder.rungs)}
        yield row | {"metric": "empty_share"} | share


def _array(values: Mapping[str, float]) -> np.ndarray:
    return np.array(list(values.values()), dtype=float)


def _rungs(texts: Sequence[Text], shared: Value) -> Iterator[Value]:
    levels: dict[float, list[float]] = defaultdict(list)
    for text in texts:
        levels[round(text.document.gold.f1, 2)].append(text.value)
    for level in sorted(levels):
        row = shared | {"metric": "rung", "variant": level}
        yield row | fields_of(t_interval(np.array(levels[level])))


def honest_values(cells: Cells, honest: str) -> Iterator[Value]:
    """``label_correlation``: Pearson's correlation of precision and the labels' precision."""
    for (metric, column), texts in cells.items():
        of_kind = by_kind(texts).get(honest, [])
        pairs = [(t, labelled_precision(t.document.claims or [])) for t in of_kind]
        pairs = [(t, p) for t, p in pairs if p is not None and not math.isnan(t.value)]
        if len(pairs) < 3:
            continue
        value = correlation([(text.value, label) for text, label in pairs])
        topics = len({text.document.topic for text, _ in pairs})
        yield {
            "metric": "label_correlation",
            "assessor": metric,
            "selection": column,
            "kind": honest,
            "generator": ALL,
            "failed": sum(text.failed for text in of_kind),
            "against": "labels",
            "n": topics,
            "value": value,
            "ci95": fisher(value, topics),
        }


def correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's correlation; ``None`` if one side is constant."""
    columns = np.array(pairs)
    value = float(pearson(columns[:, 0], columns[:, 1]))
    return None if math.isnan(value) else value


def fisher(value: float | None, n: int) -> tuple[float, float] | None:
    """Fisher's 95 % interval of a correlation over ``n`` topics."""
    if value is None or n < 4 or abs(value) >= 1:
        return None
    middle, half = math.atanh(value), 1.959964 / math.sqrt(n - 3)
    return math.tanh(middle - half), math.tanh(middle + half)


def duplicate_columns(cells: Cells) -> dict[tuple[str, str], str]:
    """Cells with the same score for every text as an earlier one, and the name of that one."""
    seen: dict[tuple, str] = {}
    duplicates = {}
    for place, texts in cells.items():
        values = tuple(None if math.isnan(text.value) else text.value for text in texts)
        name = seen.setdefault(values, f"{place[0]}, {place[1]}")
        if name != f"{place[0]}, {place[1]}":
            duplicates[place] = name
    return duplicates
