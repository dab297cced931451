"""What the relation model experiment computes of judged pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from components.checkpoint import RELATIONS
from components.statistics import auroc, bootstrap
from eval.stages import called
from records import UserError
from records.types import Record

# Score's relation, the positives, and the negatives.
CURVES = {
    "entailment > all": ("entailment", ("contradiction", "neutral")),
    "entailment > contradiction": ("entailment", ("contradiction",)),
    "contradiction > all": ("contradiction", ("entailment", "neutral")),
    "contradiction > entailment": ("contradiction", ("entailment",)),
}


class Pair(NamedTuple):
    """A premise and a hypothesis of a document, and how they are related."""

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

    - ``auroc`` of each curve (``CURVES``), and of every two models ``auroc_difference``, paired.
    - ``true_positive_rate@t`` and ``false_positive_rate@t`` of the curves against both other kinds.
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

    def statistics(chosen: np.ndarray) -> dict[tuple, float]:
        values = {}
        for model, table in tables.items():
            values |= _of_model(model, table[chosen], kinds[chosen], thresholds)
        for first, second in _couples(list(tables)):
            for curve in CURVES:
                one, other = (values["auroc", curve, model] for model in (first, second))
                values["auroc_difference", curve, f"{first} − {second}"] = one - other
        return values

    if not len(place):
        raise UserError(f"{domain}: no pair was judged by all relation models")
    return [
        {
            "metric": metric,
            "selection": "none",
            "kind": curve,
            "generator": model,
            "domain": domain,
            "n": len(set(documents)),
            "failed": int(failed.sum()),
            **value,
        }
        for (metric, curve, model), value in bootstrap(statistics, documents, seed=seed).items()
        if value["value"] is not None
    ]


def _of_model(
    model: str, table: np.ndarray, kinds: np.ndarray, thresholds: Sequence[float]
) -> dict[tuple, float]:
    values = {}
    for curve, (positive, negative) in CURVES.items():
        score = table[:, RELATIONS.index(positive)]
        own = np.isin(kinds, (positive, *negative))
        true = kinds == positive
        values["auroc", curve, model] = auroc(score[own], true[own])
        if curve.endswith("> all"):
            for threshold in thresholds:
                said = score >= threshold
                names = (f"true_positive_rate@{threshold:g}", f"false_positive_rate@{threshold:g}")
                for name, rows in zip(names, (true, own & ~true), strict=True):
                    values[name, curve, model] = said[rows].mean() if rows.any() else math.nan
    said = called(table)
    for place, relation in enumerate(RELATIONS):
        rows = kinds == relation
        values["called_so", relation, model] = (
            (said[rows] == place).mean() if rows.any() else math.nan
        )
    return values


def _couples(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]
