"""ROUGE by ``rouge-score``, as the summarisation literature reports it."""

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

    Texts of any length. ``rouge-score`` sees letters a to z and digits only: a pair with a text
    that has none of them has failed. Texts that are equal have 1 whatever their script.

    Args:
        kind: which ROUGE.
    """

    kind: Literal["rouge1", "rouge2", "rougeL"] = "rougeL"

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """One score in [0, 1] a pair; NaN where a text has no letter that counts."""
        from rouge_score.rouge_scorer import RougeScorer  # imports NLTK, which takes seconds

        scorer = RougeScorer([self.kind])
        return [
            1.0 if reference == candidate else self._one(scorer, reference, candidate)
            for reference, candidate in pairs
        ]

    def _one(self, scorer: RougeScorer, reference: str, candidate: str) -> float:
        if not (has_rouge_words(reference) and has_rouge_words(candidate)):
            return math.nan
        return float(scorer.score(reference, candidate)[self.kind].fmeasure)
