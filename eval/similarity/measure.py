"""Base class of similarity measures, e.g. of metric(claim, LSS) (2308.12157, section 6).

Pairs are in the order of the metric's arguments: metric(reference, claim) is called with
(reference, claim), metric(claim, LSS) with (claim, LSS).
"""

import math
from collections.abc import Sequence

import numpy as np

from components.encoding import Pair
from records import UserError
from records.stage_outputs import class_path_of, require_one_each


class Measure:
    """A score for each (reference, candidate) pair; subclasses implement ``score``.

    Distinct pairs are scored once. A candidate without words has score 0; the score is NaN if the
    reference has no words.
    """

    def __call__(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return scores of shape (n,), larger for more similar texts; NaN if scoring failed."""
        distinct = list(dict.fromkeys((r, c) for r, c in pairs if _has_word(r) and _has_word(c)))
        scores = dict(zip(distinct, self._scores(distinct), strict=True)) if distinct else {}
        return np.asarray(
            [scores.get((r, c), 0.0 if _has_word(r) else math.nan) for r, c in pairs], dtype=float
        )

    def score(self, pairs: Sequence[Pair]) -> Sequence[float]:
        """Return one score per pair; pairs are distinct and all texts have words."""
        raise NotImplementedError

    def _scores(self, pairs: Sequence[Pair]) -> np.ndarray:
        outputs = require_one_each(class_path_of(self), self.score(pairs), pairs, "pair")
        try:
            scores = np.asarray(outputs, dtype=float)
        except (TypeError, ValueError):  # texts, or lists of several lengths
            scores = np.full(len(pairs), math.inf)
        if scores.shape != (len(pairs),) or np.isinf(scores).any():
            raise UserError(f"{class_path_of(self)}: expected one finite number, or NaN, per pair")
        return scores


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))
