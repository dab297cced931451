"""The values of the relation model experiment."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from components.checkpoint import RELATIONS
from components.statistics import auroc, bootstrap
from eval.stages import call_relation
from records import UserError
from records.types import Record


class Curve(NamedTuple):
    """A relation, whose probability is the score, and the kinds of its negative pairs."""

    relation: str
    negative_kinds: tuple[str, ...]

    @property
    def negatives(self) -> str:
        return self.negative_kinds[0] if len(self.negative_kinds) == 1 else "all"

    @property
    def name(self) -> str:
        return f"{self.relation} > {self.negatives}"


CURVES = (
    Curve("entailment", ("contradiction", "neutral")),
    Curve("entailment", ("contradiction",)),
    Curve("contradiction", ("entailment", "neutral")),
    Curve("contradiction", ("entailment",)),
)


class Value(NamedTuple):
    metric: str
    kind: str
    assessor: str
    against: str | None = None
    variant: float | None = None


class Pair(NamedTuple):
    document: str
    label: str
    premise: str
    hypothesis: str


class JudgedPair(Record):
    """A line of ``pairs.jsonl``; ``p`` is entailment, neutral, contradiction, or ``None``."""

    file: str
    document: str
    label: Literal["entailment", "neutral", "contradiction"]
    model: str
    p: tuple[float, float, float] | None = None


def compute_measures(
    pairs: Sequence[Pair],
    by_model: dict[str, np.ndarray],
    thresholds: Sequence[float],
    seed: int,
    domain: str,
) -> list[dict]:
    """Compute the fields of the results of one file, with bootstrap intervals over documents.

    - ``auroc`` of each curve (``CURVES``), and paired differences between models.
    - ``true_positive_rate`` and ``false_positive_rate`` at each threshold (the ``variant``) of the
      curves with both other kinds as negatives.
    - ``called_so``: share of a kind's pairs whose likeliest relation is that kind.

    Args:
        by_model: model to probabilities of entailment, neutral, contradiction, shape (pairs, 3);
            NaN if the model failed. Pairs on which any model failed are excluded for all models.
    """
    label = np.asarray([pair.label for pair in pairs])
    failed = np.any([np.isnan(table).any(axis=1) for table in by_model.values()], axis=0)
    kept = np.flatnonzero(~failed)
    documents = np.asarray([pair.document for pair in pairs], dtype=object)[kept]
    kinds = label[kept]
    tables = {name: np.asarray(table, dtype=float)[kept] for name, table in by_model.items()}

    def statistics(chosen: np.ndarray) -> dict[Value, float]:
        values = {}
        for model, table in tables.items():
            values |= _model_values(model, table[chosen], kinds[chosen], thresholds)
        for first, second in combinations(tables, 2):
            for curve in CURVES:
                left, right = (values[Value("auroc", curve.name, m)] for m in (first, second))
                values[Value("auroc", curve.name, first, against=second)] = left - right
        return values

    if not len(kept):
        raise UserError(f"{domain}: no pair was judged by all relation models")
    shared = {"domain": domain, "n": len(set(documents)), "failed": int(failed.sum())}
    return [
        {**name._asdict(), **shared, **value}
        for name, value in bootstrap(statistics, documents, seed=seed).items()
        if value["value"] is not None
    ]


def _model_values(
    model: str, table: np.ndarray, kinds: np.ndarray, thresholds: Sequence[float]
) -> dict[Value, float]:
    values = {}
    for curve in CURVES:
        score = table[:, RELATIONS.index(curve.relation)]
        included = np.isin(kinds, (curve.relation, *curve.negative_kinds))
        true = kinds == curve.relation
        values[Value("auroc", curve.name, model)] = auroc(score[included], true[included])
        for threshold in thresholds if len(curve.negative_kinds) > 1 else ():
            rates = {"true_positive_rate": true, "false_positive_rate": included & ~true}
            for metric, rows in rates.items():
                name = Value(metric, curve.name, model, variant=threshold)
                values[name] = _share((score >= threshold)[rows])
    likeliest = call_relation(table)
    for index, relation in enumerate(RELATIONS):
        correct = (likeliest == index)[kinds == relation]
        values[Value("called_so", relation, model)] = _share(correct)
    return values


def _share(values: np.ndarray) -> float:
    return values.mean() if len(values) else math.nan


# ROC curves


def roc(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute false and true positive rates from (0, 0) to (1, 1), one point per distinct score.

    Args:
        scores: shape (n,), larger for positives.
        positive: bools of shape (n,) with both classes.
    """
    order = np.argsort(-scores, kind="stable")
    # The last index of each run of equal scores
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    hits = np.cumsum(positive[order])[last]
    misses = last + 1 - hits
    true, false = hits / hits[-1], misses / misses[-1]
    return np.append(0.0, false), np.append(0.0, true)


def compute_curves(pairs: Sequence[JudgedPair]) -> dict[tuple[str, Curve], dict[str, tuple]]:
    """Map (file, curve) to each model's false and true positive rates, as in the results."""
    curves: dict[tuple[str, Curve], dict[str, tuple]] = {}
    for file in dict.fromkeys(pair.file for pair in pairs):
        by_model: dict[str, list[JudgedPair]] = {}
        for pair in pairs:
            if pair.file == file:
                by_model.setdefault(pair.model, []).append(pair)
        rows = list(zip(*by_model.values(), strict=True))
        complete = [row for row in rows if all(pair.p is not None for pair in row)]
        kinds = np.asarray([row[0].label for row in complete])
        for curve in CURVES:
            chosen = np.isin(kinds, (curve.relation, *curve.negative_kinds))
            positive = kinds[chosen] == curve.relation
            if not positive.any() or positive.all():
                continue
            index = RELATIONS.index(curve.relation)
            for column, model in enumerate(by_model):
                score = np.asarray([row[column].p[index] for row in complete])[chosen]
                curves.setdefault((file, curve), {})[model] = roc(score, positive)
    return curves
