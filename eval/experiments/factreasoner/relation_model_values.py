"""What the relation model experiment computes of judged pairs."""

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
    """A relation, whose probability is the score, and the kinds of pairs that it is told from."""

    relation: str
    others: tuple[str, ...]

    @property
    def negatives(self) -> str:
        return self.others[0] if len(self.others) == 1 else "all"

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
    """A line of ``pairs.jsonl``; ``p`` holds entailment, neutral, contradiction, or none: failed.

    Premises and hypotheses are in the FACTOR file.
    """

    file: str
    document: str
    label: Literal["entailment", "neutral", "contradiction"]
    model: str
    p: tuple[float, float, float] | None = None


def measures_of(
    pairs: Sequence[Pair],
    found: dict[str, np.ndarray],
    thresholds: Sequence[float],
    seed: int,
    domain: str,
) -> list[dict]:
    """The results' fields of one file, with bootstrap intervals over documents.

    - ``auroc`` of each curve (``CURVES``), and its paired difference of every two models.
    - ``true_positive_rate`` and ``false_positive_rate`` at each threshold (the ``variant``) of the
      curves against both other kinds.
    - ``called_so``: share of a kind's pairs whose likeliest relation is that kind.

    Args:
        found: model to probabilities of shape (pairs, 3) in the order entailment, neutral,
            contradiction; NaN where the model failed. A pair that any model failed on is left out
            for all of them.
    """
    label = np.asarray([pair.label for pair in pairs])
    failed = np.any([np.isnan(table).any(axis=1) for table in found.values()], axis=0)
    place = np.flatnonzero(~failed)
    documents = np.asarray([pair.document for pair in pairs], dtype=object)[place]
    kinds = label[place]
    tables = {name: np.asarray(table, dtype=float)[place] for name, table in found.items()}

    def statistics(chosen: np.ndarray) -> dict[Value, float]:
        values = {}
        for model, table in tables.items():
            values |= _of_model(model, table[chosen], kinds[chosen], thresholds)
        for one, other in combinations(tables, 2):
            for curve in CURVES:
                mine, theirs = (values[Value("auroc", curve.name, m)] for m in (one, other))
                values[Value("auroc", curve.name, one, against=other)] = mine - theirs
        return values

    if not len(place):
        raise UserError(f"{domain}: no pair was judged by all relation models")
    shared = {"domain": domain, "n": len(set(documents)), "failed": int(failed.sum())}
    return [
        {**name._asdict(), **shared, **value}
        for name, value in bootstrap(statistics, documents, seed=seed).items()
        if value["value"] is not None
    ]


def _of_model(
    model: str, table: np.ndarray, kinds: np.ndarray, thresholds: Sequence[float]
) -> dict[Value, float]:
    values = {}
    for curve in CURVES:
        score = table[:, RELATIONS.index(curve.relation)]
        own = np.isin(kinds, (curve.relation, *curve.others))
        true = kinds == curve.relation
        values[Value("auroc", curve.name, model)] = auroc(score[own], true[own])
        for threshold in thresholds if len(curve.others) > 1 else ():
            rates = {"true_positive_rate": true, "false_positive_rate": own & ~true}
            for metric, rows in rates.items():
                name = Value(metric, curve.name, model, variant=threshold)
                values[name] = _share((score >= threshold)[rows])
    said = call_relation(table)
    for place, relation in enumerate(RELATIONS):
        values[Value("called_so", relation, model)] = _share((said == place)[kinds == relation])
    return values


def _share(said: np.ndarray) -> float:
    return said.mean() if len(said) else math.nan


# ROC curves


def roc(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates, from (0, 0) to (1, 1), a corner a distinct score.

    Args:
        scores: shape (n,), larger for positives.
        positive: bools of shape (n,), some of them true and some false.
    """
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)  # of equal scores
    hits = np.cumsum(positive[order])[last]
    misses = last + 1 - hits
    true, false = hits / hits[-1], misses / misses[-1]
    return np.append(0.0, false), np.append(0.0, true)


def curves_of(pairs: Sequence[JudgedPair]) -> dict[tuple[str, Curve], dict[str, tuple]]:
    """File and curve to each model's false and true positive rates.

    Pairs that a model failed on are left out for all models, as in the results.
    """
    found: dict[tuple[str, Curve], dict[str, tuple]] = {}
    for file in dict.fromkeys(pair.file for pair in pairs):
        by_model: dict[str, list[JudgedPair]] = {}
        for pair in pairs:
            if pair.file == file:
                by_model.setdefault(pair.model, []).append(pair)
        every = list(zip(*by_model.values(), strict=True))
        whole = [row for row in every if all(pair.p is not None for pair in row)]
        kinds = np.asarray([row[0].label for row in whole])
        for curve in CURVES:
            chosen = np.isin(kinds, (curve.relation, *curve.others))
            positive = kinds[chosen] == curve.relation
            if not positive.any() or positive.all():
                continue
            place = RELATIONS.index(curve.relation)
            for column, model in enumerate(by_model):
                score = np.asarray([row[column].p[place] for row in whole])[chosen]
                found.setdefault((file, curve), {})[model] = roc(score, positive)
    return found
