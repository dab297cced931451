"""ROUGE by the package ``rouge-score``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from components.encoding import Pair
from components.measures import has_rouge_words
from eval.similarity import Measure

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer


@dataclass(eq=False)
class Rouge(Measure):
    """F1 of ROUGE-1, ROUGE-2 or ROUGE-L (Lin 2004), without stemming.

    ``rouge-score`` only reads the letters a to z and digits: a pair with a text without them has
    failed. Equal texts have 1 in any script.

    Args:
        kind: variant of ROUGE.
    """

    kind: Literal["rouge1", "rouge2", "rougeL"] = "rougeL"

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return one score in [0, 1] per pair; NaN if a text has no letters a to z or digits."""
        from rouge_score.rouge_scorer import RougeScorer  # imports NLTK, which takes seconds

        scorer = RougeScorer([self.kind])
        return [
            1.0 if reference == candidate else self._fmeasure(scorer, reference, candidate)
            for reference, candidate in pairs
        ]

    def _fmeasure(self, scorer: RougeScorer, reference: str, candidate: str) -> float:
        if not (has_rouge_words(reference) and has_rouge_words(candidate)):
            return math.nan
        return float(scorer.score(reference, candidate)[self.kind].fmeasure)
