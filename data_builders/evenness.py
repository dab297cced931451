"""How far word overlap alone tells the labels of pairs, and weights by which it does not."""

from collections.abc import Sequence

import numpy as np

from components.overlap import covered_share, stem_weights
from components.statistics import auroc, quantile_bins
from records import RelationPair

# Into so many parts the overlaps are cut.
TENTHS = 10
# A class that is rare in its tenth weighs at most so much, or a few pairs would be the training.
MOST = 4.0


def overlap_auroc(pairs: Sequence[RelationPair]) -> float | None:
    """The AUROC of entailment by the IDF-weighted share of a hypothesis's stems in its premise.

    The IDF is over the premises. 0.5 is even; ``None`` where there is one class alone.
    """
    shares = overlaps([(pair.premise, pair.hypothesis) for pair in pairs])
    found = auroc(shares, np.asarray([p.label == "entailment" for p in pairs]))
    return None if np.isnan(found) else round(found, 4)


def overlaps(pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """The IDF-weighted share of each hypothesis's stems that its premise has, of shape (n,).

    Args:
        pairs: (premise, hypothesis); the IDF is over the premises.
    """
    weight = stem_weights(premise for premise, _ in pairs)
    return np.asarray(
        [covered_share(hypothesis, [premise], weight) for premise, hypothesis in pairs]
    )


def even_weights(shares: np.ndarray, entailed: np.ndarray) -> np.ndarray:
    """Weights of pairs under which a tenth of the overlaps has as much entailment as any other.

    In each tenth a class weighs what it has of all pairs over what it has of the tenth's: what a
    model gains by trusting overlap is taken from it, and no pair is lost.

    Args:
        shares: overlap of each pair, shape (n,).
        entailed: bools of shape (n,).

    Returns:
        Shape (n,), from 1 / ``MOST`` to ``MOST``.
    """
    weights = np.ones(len(shares))
    tenths = quantile_bins(shares, TENTHS)
    for tenth in np.unique(tenths):
        for kind in (entailed, ~entailed):
            own = kind & (tenths == tenth)
            if own.any():
                weights[own] = kind.mean() * (tenths == tenth).sum() / own.sum()
    return weights.clip(1 / MOST, MOST)
