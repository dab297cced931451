"""How long an LSS is beside its claim, and two ways to balance it (2308.12157, Figures 2, 4 and 5).

The length is the number of words between blanks, as the paper's figures count them. Most LSS of its
data are the whole claim: section 4.2 eliminates 2,000 of those pairs, and the "super version" of
A.5 repeats pairs until the lengths are balanced.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

# Classes of length; the paper does not give those of its super version.
LENGTH_CLASSES = 10


def length_ratio(claim: str, lss: str) -> float:
    """Words of an LSS by words of its claim, from 0 (nothing is supported) to 1 (all is).

    Of a claim of nothing but blanks it is 0.
    """
    return min(1.0, len(lss.split()) / max(1, len(claim.split())))


def length_class(ratio: float) -> int:
    """The class of a ratio, from 0 to 9; all of the claim is in the last one."""
    return min(LENGTH_CLASSES - 1, int(ratio * LENGTH_CLASSES + 1e-9))


def drop_full_length(
    whole: Sequence[bool], eliminated: int, generator: np.random.Generator
) -> list[int]:
    """Places that stay when LSS that are the whole claim are eliminated (section 4.2).

    Args:
        whole: whether each LSS is the whole claim.
        eliminated: how many go; 0 for as many as it takes to have as many of them as of others, if
            there are more.
        generator: which ones go.

    Raises:
        ValueError: there are not so many, or nothing would be left.
    """
    places = np.flatnonzero(whole)
    surplus = max(0, 2 * len(places) - len(whole)) if len(places) < len(whole) else 0
    count = eliminated or surplus
    if count > len(places):
        raise ValueError(f"{count} are to be eliminated, and {len(places)} are the whole claim")
    if count and count == len(whole):
        raise ValueError(f"{count} are to be eliminated, and there are no more")
    gone = set(generator.choice(places, count, replace=False).tolist())
    return [place for place in range(len(whole)) if place not in gone]


def balance_lengths(ratios: Sequence[float], generator: np.random.Generator) -> list[int]:
    """Places, in order, repeated until every tenth that has any has as many as the fullest (A.5).

    Args:
        ratios: LSS length by claim length.
        generator: which ones stand once more than their neighbours.
    """
    classes: dict[int, list[int]] = defaultdict(list)
    for place, ratio in enumerate(ratios):
        classes[length_class(ratio)].append(place)
    most = max(map(len, classes.values()), default=0)
    found: list[int] = []
    for _, own in sorted(classes.items()):
        times, rest = divmod(most, len(own))
        found += own * times + generator.choice(own, rest, replace=False).tolist()
    return sorted(found)
