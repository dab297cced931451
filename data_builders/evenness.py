"""How well word overlap alone predicts the labels of pairs."""

from collections.abc import Sequence

import numpy as np

from components.overlap import covered_share, stem_weights
from components.statistics import auroc
from records import RelationPair


def overlap_auroc(pairs: Sequence[RelationPair]) -> float | None:
    """AUROC of entailment by the IDF-weighted share of hypothesis stems in the premise.

    The IDF is over the premises. 0.5 is chance; ``None`` if there is only one class.
    """
    weight = stem_weights(pair.premise for pair in pairs)
    shares = [covered_share(pair.hypothesis, [pair.premise], weight) for pair in pairs]
    value = auroc(np.asarray(shares), np.asarray([p.label == "entailment" for p in pairs]))
    return None if np.isnan(value) else round(value, 4)
