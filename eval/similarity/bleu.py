"""BLEU of single texts; on (claim, LSS) the paper's own metric (2308.12157, section 6)."""

from collections.abc import Sequence
from dataclasses import dataclass

from components.encoding import Pair
from components.measures import sentence_bleu_of
from eval.similarity import Measure


@dataclass(eq=False)
class Bleu(Measure):
    """Sentence BLEU, smoothed (:func:`components.measures.sentence_bleu_of`).

    Args:
        blanks: split texts at blanks alone, as the released code does (facebookresearch/lss_eval,
            evaluate.py), so that "Paris" and "Paris," differ; else over words and marks.
    """

    blanks: bool = False

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """One score in [0, 1] a pair."""
        return [sentence_bleu_of(reference, text, self.blanks) for reference, text in pairs]
