"""How far word overlap alone tells the labels of pairs; that of even pairs does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.overlap import covered_share, stem_weights
from components.statistics import auroc
from records import RelationPair


def overlap_auroc(pairs: Sequence[RelationPair]) -> float | None:
    """The AUROC of entailment by the IDF-weighted share of a hypothesis's stems in its premise.

    The IDF is over the premises. 0.5 is even; ``None`` where there is one class alone.
    """
    weight = stem_weights(pair.premise for pair in pairs)
    shares = [covered_share(pair.hypothesis, [pair.premise], weight) for pair in pairs]
    found = auroc(np.asarray(shares), np.asarray([p.label == "entailment" for p in pairs]))
    return None if np.isnan(found) else round(found, 4)
