"""The values of the relation model experiment."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from components.checkpoint import RELATIONS
from components.statistics import auroc
from eval.experiments.quantities import Quantity, estimate
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

    def truth(self, kinds: np.ndarray) -> np.ndarray:
        """Whether each pair is positive, as 1 or 0; NaN for pairs of no side of the curve."""
        included = np.isin(kinds, (self.relation, *self.negative_kinds))
        return np.where(included, kinds == self.relation, np.nan)


CURVES = (
    Curve("entailment", ("contradiction", "neutral")),
    Curve("entailment", ("contradiction",)),
    Curve("contradiction", ("entailment", "neutral")),
    Curve("contradiction", ("entailment",)),
)


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
    failed = np.any([np.isnan(table).any(axis=1) for table in by_model.values()], axis=0)
    if failed.all():
        raise UserError(f"{domain}: no pair was judged by all relation models")
    kept = [pair for pair, missing in zip(pairs, failed, strict=True) if not missing]
    tables = {name: np.asarray(table, dtype=float)[~failed] for name, table in by_model.items()}
    documents = [pair.document for pair in kept]
    quantities = list(_quantities(tables, np.asarray([pair.label for pair in kept]), thresholds))
    shared = {"domain": domain, "n": len(set(documents)), "failed": int(failed.sum())}
    rows = estimate(quantities, documents, seed)
    return [row | shared for row in rows if row["value"] is not None]


def _quantities(
    tables: Mapping[str, np.ndarray], kinds: np.ndarray, thresholds: Sequence[float]
) -> Iterator[Quantity]:
    scores = {}
    for model, table in tables.items():
        for curve in CURVES:
            score = scores[model, curve] = table[:, RELATIONS.index(curve.relation)]
            fields = {"kind": curve.name, "assessor": model}
            yield Quantity({"metric": "auroc", **fields}, [score, curve.truth(kinds)], auroc)
            for threshold in thresholds if len(curve.negative_kinds) > 1 else ():
                for metric, true in (("true_positive_rate", 1), ("false_positive_rate", 0)):
                    above = np.where(curve.truth(kinds) == true, score >= threshold, np.nan)
                    yield Quantity({"metric": metric, "variant": threshold, **fields}, [above])
        likeliest = call_relation(table)
        for index, relation in enumerate(RELATIONS):
            fields = {"metric": "called_so", "kind": relation, "assessor": model}
            yield Quantity(fields, [np.where(kinds == relation, likeliest == index, np.nan)])
    for first, second in combinations(tables, 2):
        for curve in CURVES:
            fields = {"metric": "auroc", "kind": curve.name, "assessor": first, "against": second}
            columns = [scores[first, curve], scores[second, curve], curve.truth(kinds)]
            yield Quantity(fields, columns, lambda a, b, true: auroc(a, true) - auroc(b, true))


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
            truth = curve.truth(kinds)
            chosen = ~np.isnan(truth)
            positive = truth[chosen] == 1
            if not positive.any() or positive.all():
                continue
            index = RELATIONS.index(curve.relation)
            for column, model in enumerate(by_model):
                score = np.asarray([row[column].p[index] for row in complete])[chosen]
                curves.setdefault((file, curve), {})[model] = roc(score, positive)
    return curves
