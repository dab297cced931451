"""Metrics of an assessor's probabilities, with and without labels.

Graded precision is the mean probability (or grade). E, binary entropy and -log P measure
confidence. These are means over texts. Brier score and calibration error compare probabilities with
labels over the claims of all texts (the experiment of 2502.18573 also has Brier's mean over texts).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from components.calibration import expected_calibration_error
from components.statistics import bootstrap
from records import Claim, Verdict

# Lower bound of P in -log P, as in the released code of 2502.18573.
_LEAST = 1e-6

# A metric's value, its interval, and the number of topics.
Value = tuple[float | None, tuple[float, float] | None, int]
Pairs = Sequence[tuple[Claim, Verdict]]


def graded_precision(p: np.ndarray) -> float:
    """Mean p, i.e. expected precision."""
    return float(np.mean(p))


def e_measure(p: np.ndarray) -> float:
    """E = -(1/n) Σ P(a) log10 P(a) (2502.18573, Eq. 1): 0.150515 if all P = 0.5, 0 at P = 1.

    The paper describes E as infinite if all P = 0. Eq. 1 is 0 there, as at P = 1, with a maximum of
    0.159768 at P = 1/e; :func:`binary_entropy` and :func:`negative_log` behave as described.

    Args:
        p: posteriors of shape (n,), n > 0.
    """
    return float(np.mean(_surprise(p)) / math.log(10))


def binary_entropy(p: np.ndarray) -> float:
    """Mean entropy in bits: 1 if all P = 0.5, 0 if each P is 0 or 1."""
    p = np.asarray(p, dtype=float)
    return float(np.mean(_surprise(p) + _surprise(1 - p)) / math.log(2))


def negative_log(p: np.ndarray) -> float:
    """Mean -ln P in nats, with P clipped at 1e-6: 0 if all P = 1, 13.8 if all P = 0."""
    return float(np.mean(np.abs(np.log(np.clip(p, _LEAST, 1.0)))))


def _surprise(p: np.ndarray) -> np.ndarray:
    p = np.asarray(p, dtype=float)
    return -p * np.log(np.where(p > 0, p, 1.0))


def of_one_text(judged: Pairs) -> dict[str, float]:
    """Return the label-free metrics by name; empty without probabilities."""
    p = np.array([p for _, p in _with_probability(judged)])
    return {name: measure(p) for name, measure in _ALONE.items()} if len(p) else {}


def _with_probability(judged: Pairs) -> list[tuple[Claim, float]]:
    return [
        (c, v.p) for c, v in judged if v.p is not None and v.label not in ("failed", "irrelevant")
    ]


def labelled_precision(claims: Sequence[Claim]) -> float | None:
    """Return S / (S + NS) of the claims' labels; ``None`` without labels."""
    labels = [claim.label for claim in claims if claim.label in ("S", "NS")]
    return labels.count("S") / len(labels) if labels else None


def brier_of_one_text(judged: Pairs) -> float | None:
    """Brier score of a text (2502.18573, appendix C.2); ``None`` without labelled claims."""
    labelled = [(p, c.label == "S") for c, p in _with_probability(judged) if c.label in ("S", "NS")]
    return math.fsum((p - true) ** 2 for p, true in labelled) / len(labelled) if labelled else None


def posterior_measures(
    documents: Sequence[Pairs], topics: Sequence[str], seed: int = 0
) -> dict[str, Value]:
    """Return the metrics above by name, with labels also ``brier`` and ``ece``.

    Only judged claims with a probability count.

    Args:
        documents: claims with their verdicts.
        topics: of each document.
        seed: of the bootstrap over topics.
    """
    texts = [of_one_text(measures) for measures in documents]
    having = [row for row, measures in enumerate(texts) if measures]
    columns = {name: np.array([texts[row][name] for row in having]) for name in _ALONE}
    values = _intervals(
        lambda rows: {name: float(column[rows].mean()) for name, column in columns.items()},
        [topics[row] for row in having],
        seed,
    )
    judged = [
        (p, claim.label == "S", topic)
        for judged_pairs, topic in zip(documents, topics, strict=True)
        for claim, p in _with_probability(judged_pairs)
        if claim.label in ("S", "NS")
    ]
    if judged:
        p, true, of = (list(column) for column in zip(*judged, strict=True))
        p, true = np.array(p), np.array(true, dtype=float)
        values |= _intervals(
            lambda rows: {"brier": float(np.mean((p[rows] - true[rows]) ** 2))}, of, seed
        )
        # No bootstrap interval: claims drawn several times bias ECE upwards.
        values["ece"] = expected_calibration_error(p, true), None, values["brier"][2]
    return values


_ALONE: dict[str, Callable[[np.ndarray], float]] = {
    "graded_precision": graded_precision,
    "e_measure": e_measure,
    "binary_entropy": binary_entropy,
    "negative_log_p": negative_log,
}


def _intervals(
    measures: Callable[[np.ndarray], dict[str, float]], topics: Sequence[str], seed: int
) -> dict[str, Value]:
    intervals = bootstrap(measures, topics, seed=seed) if topics else {}
    n = len(set(topics))
    return {name: (row["value"], row["ci95"], n) for name, row in intervals.items()}
