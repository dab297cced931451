"""BLEU of single texts; on (claim, LSS) the paper's own metric (2308.12157, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

from components.encoding import Pair
from components.measures import sentence_bleu_of
from eval.similarity import Measure


class Bleu(Measure):
    """Sentence BLEU over words and marks, smoothed (:func:`components.measures.sentence_bleu_of`).

    The released code (facebookresearch/lss_eval) splits at blanks instead, so that "Paris" and
    "Paris," differ; the smoothing is the same.
    """

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """One score in [0, 1] a pair."""
        return [sentence_bleu_of(reference, candidate) for reference, candidate in pairs]
