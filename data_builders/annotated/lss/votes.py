"""Merge several LSS of a pair into one by vote, or by an adjudicator's decision.

By ``words`` (ours): keep the words that more than half of the annotators keep. The result may be an
LSS that no annotator wrote, so gold rows record the decision. Words kept by half are ties.

By ``whole`` LSS (2308.12157, section 4.1): the LSS that two or more annotators wrote; if all
differ, the pair is open and an adjudicator chooses. LSS are compared letter by letter: of the
triples that the authors released as all different, one in seven has two LSS that differ only in
punctuation and letter case. A majority LSS is gold as written if it is no subsequence of the claim.
"""

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import Literal

from components.words import Word, align, join_words, keep_targets
from eval.metrics.lss_agreement import is_adjudicated
from records import Annotation, LssExample

By = Literal["words", "whole"]


@dataclass(frozen=True)
class Vote:
    """The joint decision of the annotators of a pair.

    Attributes:
        words: the claim's words.
        keep: one bool per word; ``None`` if open.
        counts: number of annotators who keep each word.
        voters: number of counted annotations.
        unaligned: number of annotations that are not a subsequence of the claim's words.
        decided: ``single``, ``unanimous``, ``majority``, ``adjudicated``; if open, ``tie`` or
            ``unaligned``.
        text: of a vote by whole LSS, the LSS that is no subsequence of the claim.
    """

    words: list[Word]
    keep: list[bool] | None
    counts: list[int]
    voters: int
    unaligned: int
    decided: str
    text: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether an adjudicator has to decide."""
        return self.keep is None and self.text is None


def vote(example: LssExample, by: By = "words") -> Vote:
    """Vote on the words of a claim; the last adjudication of a pair overrides the vote.

    Words that exactly half of the annotators keep leave the pair open.
    """
    words, kept, unaligned = keep_targets(example)
    final = [a for a in example.annotations if is_adjudicated(a)]
    if final:
        keep = align(final[-1].lss, words)
        if keep is not None:
            return Vote(words, keep, [int(k) for k in keep], 1, unaligned, "adjudicated")
        return Vote(words, None, [0] * len(words), 0, unaligned, "unaligned")
    voters = len(kept)
    counts = [sum(column) for column in zip(*kept, strict=True)] if kept else [0] * len(words)
    if by == "whole" and example.keep is None:
        keep, decided, text = _most_common_lss(example, words)
        return Vote(words, keep, counts, voters, unaligned, decided, text)
    if not voters:
        return Vote(words, None, counts, 0, unaligned, "unaligned")
    if any(2 * count == voters for count in counts):
        return Vote(words, None, counts, voters, unaligned, "tie")
    keep = [2 * count > voters for count in counts]
    if voters == 1:
        decided = "single"
    else:
        decided = "unanimous" if all(row == kept[0] for row in kept) else "majority"
    return Vote(words, keep, counts, voters, unaligned, decided)


def _most_common_lss(
    example: LssExample, words: list[Word]
) -> tuple[list[bool] | None, str, str | None]:
    texts = Counter(_spaced(a.lss) for a in example.annotations)
    (text, most), *runners_up = texts.most_common(2)
    if most < min(2, len(example.annotations)) or any(count == most for _, count in runners_up):
        return None, "tie", None
    keep = align(text, words)
    decided = "majority" if runners_up else "single" if most == 1 else "unanimous"
    return keep, decided, text if keep is None else None


def _spaced(text: str) -> str:
    return " ".join(text.split())


def merge_gold(example: LssExample, decision: Vote) -> Annotation:
    """Return the decided LSS with the closest annotation's LSS* and the median rating.

    Free text cannot be voted on: the LSS* is from the annotation that agrees on most words (ties:
    the first). An adjudicated pair has the adjudicator's LSS* and rating. An open vote is an error.
    """
    ratings = [a.rating for a in example.annotations if a.rating is not None]
    rating = median(ratings) if ratings else None
    if decision.text is not None:
        same = [a.lss_star for a in example.annotations if _spaced(a.lss) == decision.text]
        star = next((text for text in same if text is not None), None)
        return Annotation(lss=decision.text, lss_star=star, rating=rating)
    if decision.keep is None:
        raise ValueError("the vote is open")
    lss = join_words(example.claim, decision.words, decision.keep)
    if decision.decided == "adjudicated":
        final = [a for a in example.annotations if is_adjudicated(a)][-1]
        return Annotation(lss=lss, lss_star=final.lss_star, rating=final.rating)
    stars = [
        (sum(a != b for a, b in zip(keep, decision.keep, strict=True)), index)
        for index, annotation in enumerate(example.annotations)
        if annotation.lss_star is not None
        and (keep := align(annotation.lss, decision.words)) is not None
    ]
    star = example.annotations[min(stars)[1]].lss_star if stars else None
    return Annotation(lss=lss, lss_star=star, rating=rating)
