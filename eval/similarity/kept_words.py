"""The share of a text's words that another one keeps: the LSS as a metric, without n-grams."""

import math
from collections.abc import Sequence

from components.encoding import Pair
from components.words import Word, project, split_words
from eval.similarity import Measure


class KeptWords(Measure):
    """Share of the reference's words in a longest common subsequence with the candidate.

    On (claim, LSS) the supported share of the claim; marks do not count. It is ROUGE-L's recall
    over the words of any script. Not in the paper.
    """

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """One score in [0, 1] a pair."""
        split = [split_words(reference) for reference, _ in pairs]
        return [
            kept_share(words, project(candidate, words))
            for words, (_, candidate) in zip(split, pairs, strict=True)
        ]


def kept_share(words: Sequence[Word], keep: Sequence[bool]) -> float:
    """The share of a text's words that are kept, marks aside; NaN of a text without a word."""
    kept = [k for word, k in zip(words, keep, strict=True) if word.text[0].isalnum()]
    return sum(kept) / len(kept) if kept else math.nan
