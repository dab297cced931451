"""ROUGE by ``rouge-score``, as the summarisation literature reports it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from components.encoding import Pair
from components.measures import rouge_sees
from eval.similarity import Measure

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer


class Rouge(Measure):
    """ROUGE-1, ROUGE-2 or ROUGE-L (Lin 2004).

    Texts of any length. ``rouge-score`` sees letters a to z and digits only: a pair with a text
    that has none of them has failed. Texts that are equal have 1 whatever their script.

    Args:
        kind: which ROUGE.
        value: ``precision`` is over the candidate's words, ``recall`` over the reference's.
        stem: compare Porter stems.
    """

    def __init__(
        self,
        kind: Literal["rouge1", "rouge2", "rougeL"] = "rougeL",
        value: Literal["fmeasure", "precision", "recall"] = "fmeasure",
        stem: bool = False,
    ):
        self.kind = kind
        self.value = value
        self.stem = stem

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """One score in [0, 1] a pair; NaN where a text has no letter that counts."""
        from rouge_score.rouge_scorer import RougeScorer  # imports NLTK, which takes seconds

        scorer = RougeScorer([self.kind], use_stemmer=self.stem)
        return [
            1.0 if reference == candidate else self._one(scorer, reference, candidate)
            for reference, candidate in pairs
        ]

    def _one(self, scorer: RougeScorer, reference: str, candidate: str) -> float:
        if not (rouge_sees(reference) and rouge_sees(candidate)):
            return math.nan
        return float(getattr(scorer.score(reference, candidate)[self.kind], self.value))
