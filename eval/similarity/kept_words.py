"""The share of a text's words that another text keeps."""

import math
from collections.abc import Sequence

from components.encoding import Pair
from components.words import Word, project, split_words
from eval.similarity import Measure


class KeptWords(Measure):
    """Share of the reference's words in a longest common subsequence with the candidate.

    On (claim, LSS) it is the supported share of the claim. It equals ROUGE-L recall over words of
    any script, without punctuation. Not in the paper.
    """

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return one score in [0, 1] per pair."""
        split = [split_words(reference) for reference, _ in pairs]
        return [
            kept_share(words, project(candidate, words))
            for words, (_, candidate) in zip(split, pairs, strict=True)
        ]


def kept_share(words: Sequence[Word], keep: Sequence[bool]) -> float:
    """The share of words that are kept, without punctuation; NaN for a text without words."""
    kept = [k for word, k in zip(words, keep, strict=True) if word.text[0].isalnum()]
    return sum(kept) / len(kept) if kept else math.nan
