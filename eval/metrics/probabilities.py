"""Measures of what an assessor's probabilities are worth, alone and against labels.

Graded precision counts each claim by its probability, or by its share where an assessor grades. E,
binary entropy and -log P judge how sure an assessor is. These are means over texts as precision is;
Brier score and calibration error judge its probabilities against the claims' labels, over the
claims of all texts (the experiment of 2502.18573 has Brier's mean over texts as well).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from components.calibration import expected_calibration_error
from components.statistics import bootstrap
from records import Claim, Verdict

# Of a probability whose logarithm is taken alone; as the released code of 2502.18573.
_LEAST = 1e-6

# A metric's value, its interval, and how many topics it is of.
Value = tuple[float | None, tuple[float, float] | None, int]
Pairs = Sequence[tuple[Claim, Verdict]]


def graded_precision(p: np.ndarray) -> float:
    """Mean p: precision without a threshold; of FactReasoner the expected precision."""
    return float(np.mean(p))


def e_measure(p: np.ndarray) -> float:
    """E = -(1/n) Σ P(a) log10 P(a) (2502.18573, Eq. 1): 0.150515 where all P = 0.5, 0 at P = 1.

    The paper's text says that E is infinite where all P = 0. Eq. 1 gives 0 there, as at P = 1, and
    has its maximum of 0.159768 at P = 1/e; :func:`binary_entropy` and :func:`negative_log` tell
    what E is meant to tell.

    Args:
        p: posteriors of shape (n,), n > 0.
    """
    return float(np.mean(_surprise(p)) / math.log(10))


def binary_entropy(p: np.ndarray) -> float:
    """Mean entropy in bits: 1 where all P = 0.5, 0 where each P is 0 or 1."""
    p = np.asarray(p, dtype=float)
    return float(np.mean(_surprise(p) + _surprise(1 - p)) / math.log(2))


def negative_log(p: np.ndarray) -> float:
    """Mean -ln P in nats, of P cut at 1e-6: 0 where all P = 1, 13.8 where all are 0."""
    return float(np.mean(np.abs(np.log(np.clip(p, _LEAST, 1.0)))))


def _surprise(p: np.ndarray) -> np.ndarray:
    p = np.asarray(p, dtype=float)
    return -p * np.log(np.where(p > 0, p, 1.0))


def of_one_text(judged: Pairs) -> dict[str, float]:
    """The measures that need no labels, by name; none where nothing judged has a probability."""
    p = np.array([p for _, p in _with_probability(judged)])
    return {name: measure(p) for name, measure in _ALONE.items()} if len(p) else {}


def _with_probability(judged: Pairs) -> list[tuple[Claim, float]]:
    """The claims that were judged with a probability."""
    return [
        (c, v.p) for c, v in judged if v.p is not None and v.label not in ("failed", "irrelevant")
    ]


def labelled_precision(claims: Sequence[Claim]) -> float | None:
    """S / (S + NS) of the claims' own labels; ``None`` where there is none."""
    labels = [claim.label for claim in claims if claim.label in ("S", "NS")]
    return labels.count("S") / len(labels) if labels else None


def brier_of_one_text(judged: Pairs) -> float | None:
    """Mean squared error of a text's probabilities against its labels; ``None`` of nothing.

    2502.18573, appendix C.2 gives its mean and standard deviation over texts.
    """
    labelled = [(p, c.label == "S") for c, p in _with_probability(judged) if c.label in ("S", "NS")]
    return math.fsum((p - true) ** 2 for p, true in labelled) / len(labelled) if labelled else None


def posterior_measures(
    documents: Sequence[Pairs], topics: Sequence[str], seed: int = 0
) -> dict[str, Value]:
    """The measures above by their metrics' names; with labels also ``brier`` and ``ece``.

    Only claims that were judged and have a probability count; of an assessor without probabilities
    there is no measure.

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
        # Claims drawn several times make any ECE larger, so that an interval of draws would lie
        # above the value.
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
