"""Sentence BLEU; on (claim, LSS) the metric of 2308.12157, section 6."""

from collections.abc import Sequence
from dataclasses import dataclass

from components.encoding import Pair
from components.measures import sentence_bleu_of
from eval.similarity import Measure


@dataclass(eq=False)
class Bleu(Measure):
    """Sentence BLEU, smoothed (:func:`components.measures.sentence_bleu_of`).

    Args:
        blanks: split texts only at spaces as in the released code (facebookresearch/lss_eval,
            evaluate.py), so that "Paris" and "Paris," differ; otherwise into words and punctuation.
    """

    blanks: bool = False

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return one score in [0, 1] per pair."""
        return [sentence_bleu_of(reference, text, self.blanks) for reference, text in pairs]
