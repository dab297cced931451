"""One LSS from several people's: a vote, and an adjudicator's last word.

By ``words``, ours: an LSS that keeps, word by word, what more than half of the annotators keep.
Where more than half gave the same LSS, that is the one; where they differ, it may be one that
nobody wrote, so gold rows say how they were decided. A word that exactly half keep is a tie.

By ``whole`` LSS, as in 2308.12157, section 4.1: the LSS that two or more of the annotators wrote;
where all differ, the pair is open, and an adjudicator says which of them is correct. LSS are the
same letter by letter: of the triples that the authors released as all different, one in seven has
two LSS that differ in marks and letter case only.
"""

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import Literal

from components.words import Word, align, join_words, keep_targets
from records import Annotation, LssExample

OnTie = Literal["open", "keep", "remove"]
By = Literal["words", "whole"]


@dataclass(frozen=True)
class Vote:
    """What the annotators of a pair decided together.

    Attributes:
        words: the claim's words.
        keep: a bool a word; ``None`` where it is open.
        counts: how many annotators keep each word.
        voters: how many annotations were counted.
        unaligned: how many were not, being no subsequence of the claim's words.
        decided: ``single``, ``unanimous``, ``majority``, ``adjudicated``; or why it is open:
            ``tie``, ``unaligned``.
    """

    words: list[Word]
    keep: list[bool] | None
    counts: list[int]
    voters: int
    unaligned: int
    decided: str


def is_adjudicated(annotation: Annotation) -> bool:
    """Whether an annotation overrides the others."""
    return bool((annotation.model_extra or {}).get("adjudicated"))


def vote(example: LssExample, on_tie: OnTie = "open", by: By = "words") -> Vote:
    """Decide on the words of a claim.

    Args:
        example: the pair with its annotations; of several adjudications the last one counts.
        on_tie: what becomes of a word that exactly half keep; ``open`` leaves the pair undecided.
        by: what is voted on, single words or whole LSS.
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
    if not voters:
        return Vote(words, None, counts, 0, unaligned, "unaligned")
    if by == "whole" and example.keep is None:
        keep, decided = _commonest(example, words)
        return Vote(words, keep, counts, voters, unaligned, decided)
    if on_tie == "open" and any(2 * count == voters for count in counts):
        return Vote(words, None, counts, voters, unaligned, "tie")
    keep = [2 * c > voters or (2 * c == voters and on_tie == "keep") for c in counts]
    if voters == 1:
        decided = "single"
    else:
        decided = "unanimous" if all(row == kept[0] for row in kept) else "majority"
    return Vote(words, keep, counts, voters, unaligned, decided)


def _commonest(example: LssExample, words: list[Word]) -> tuple[list[bool] | None, str]:
    texts = Counter(" ".join(a.lss.split()) for a in example.annotations)
    (text, most), *others = texts.most_common(2)
    if most < min(2, len(example.annotations)) or any(count == most for _, count in others):
        return None, "tie"
    keep = align(text, words)
    if keep is None:
        return None, "unaligned"
    if others:
        return keep, "majority"
    return keep, "single" if most == 1 else "unanimous"


def gold(example: LssExample, decision: Vote) -> Annotation:
    """The decided LSS with the LSS* of the annotation nearest to it and the median rating.

    Free text cannot be voted on: the LSS* is that of whoever agrees with most of the words, the
    first one of equals. An adjudicated pair has the adjudicator's LSS* and rating.

    Raises:
        ValueError: the vote is open.
    """
    if decision.keep is None:
        raise ValueError("the vote is open")
    lss = join_words(example.claim, decision.words, decision.keep)
    if decision.decided == "adjudicated":
        final = [a for a in example.annotations if is_adjudicated(a)][-1]
        return Annotation(lss=lss, lss_star=final.lss_star, rating=final.rating)
    ratings = [a.rating for a in example.annotations if a.rating is not None]
    stars = [
        (sum(a != b for a, b in zip(keep, decision.keep, strict=True)), place)
        for place, annotation in enumerate(example.annotations)
        if annotation.lss_star is not None
        and (keep := align(annotation.lss, decision.words)) is not None
    ]
    star = example.annotations[min(stars)[1]].lss_star if stars else None
    return Annotation(lss=lss, lss_star=star, rating=median(ratings) if ratings else None)


def length_class(decision: Vote) -> str:
    """Class of an LSS by its share of the claim's words, marks not counted.

    ``none`` (0), ``little`` (up to a third), ``half`` (up to two thirds), ``most``, ``all`` (1).
    """
    if decision.keep is None:
        raise ValueError("the vote is open")
    kept = [k for w, k in zip(decision.words, decision.keep, strict=True) if w.text[0].isalnum()]
    share = sum(kept) / max(1, len(kept))
    if share in (0, 1):
        return "all" if share else "none"
    return "little" if share <= 1 / 3 else "half" if share <= 2 / 3 else "most"
