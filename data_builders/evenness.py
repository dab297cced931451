"""Predict the labels of pairs from word overlap, and compute weights against it."""

from collections.abc import Sequence

import numpy as np

from components.overlap import covered_share, stem_weights
from components.statistics import auroc, quantile_bins
from records import RelationPair

N_BINS = 10
MAX_WEIGHT = 4.0  # limits the influence of a class that is rare in its decile


def overlap_auroc(pairs: Sequence[RelationPair]) -> float | None:
    """AUROC of entailment by the IDF-weighted share of hypothesis stems in the premise.

    The IDF is over the premises. 0.5 is chance; ``None`` if there is only one class.
    """
    shares = overlaps([(pair.premise, pair.hypothesis) for pair in pairs])
    value = auroc(shares, np.asarray([p.label == "entailment" for p in pairs]))
    return None if np.isnan(value) else round(value, 4)


def overlaps(pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Return the IDF-weighted share of each hypothesis's stems in its premise, shape (n,)."""
    weight = stem_weights(premise for premise, _ in pairs)
    return np.asarray(
        [covered_share(hypothesis, [premise], weight) for premise, hypothesis in pairs]
    )


def even_weights(shares: np.ndarray, entailed: np.ndarray) -> np.ndarray:
    """Weight pairs so that each decile of overlap has the same share of entailment.

    In each decile, a class weight is its overall share divided by its share in the decile. A model
    gains nothing from overlap, and no pair is dropped.

    Args:
        shares: overlap of each pair, shape (n,).
        entailed: bools of shape (n,).

    Returns:
        Weights of shape (n,), from 1 / ``MAX_WEIGHT`` to ``MAX_WEIGHT``.
    """
    weights = np.ones(len(shares))
    deciles = quantile_bins(shares, N_BINS)
    for decile in np.unique(deciles):
        for kind in (entailed, ~entailed):
            members = kind & (deciles == decile)
            if members.any():
                weights[members] = kind.mean() * (deciles == decile).sum() / members.sum()
    return weights.clip(1 / MAX_WEIGHT, MAX_WEIGHT)
