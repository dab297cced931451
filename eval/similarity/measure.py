"""How much of a reference a candidate has: the measures of metric(claim, LSS) (2308.12157, §6).

One file a measure, each a class that is called with all pairs at once. Which of the two texts is
the reference is the caller's: metric(reference, claim) is asked with (reference, claim), and
metric(claim, LSS) with (claim, LSS).
"""

import math
from collections.abc import Sequence

import numpy as np

from components.encoding import Pair
from records import UserError
from records.stage_outputs import class_path_of, require_one_each


class Measure:
    """A score for each (reference, candidate) pair; a user's own is a subclass with ``score``.

    Each different pair is judged once. A candidate without a word has 0: nothing is in it. With a
    reference without a word there is nothing to compare: NaN.
    """

    def __call__(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Scores of shape (n,), larger for more alike; NaN where a pair could not be judged."""
        asked = list(dict.fromkeys((r, c) for r, c in pairs if _has_word(r) and _has_word(c)))
        found = dict(zip(asked, self._scores(asked), strict=True)) if asked else {}
        return np.asarray(
            [found.get((r, c), 0.0 if _has_word(r) else math.nan) for r, c in pairs], dtype=float
        )

    def score(self, pairs: Sequence[Pair]) -> Sequence[float]:
        """One score a pair; all pairs differ and all texts have a word."""
        raise NotImplementedError

    def _scores(self, pairs: Sequence[Pair]) -> np.ndarray:
        given = require_one_each(class_path_of(self), self.score(pairs), pairs, "pair")
        try:
            scores = np.asarray(given, dtype=float)
        except (TypeError, ValueError):  # texts, or lists of several lengths
            scores = np.full(len(pairs), math.inf)
        if scores.shape != (len(pairs),) or np.isinf(scores).any():
            raise UserError(
                f"{class_path_of(self)}: gave scores that are no finite numbers; give one number a "
                "pair, NaN where there is none"
            )
        return scores


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))
