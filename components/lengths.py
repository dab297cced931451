"""Length of an LSS relative to its claim, and two ways to balance it (2308.12157, Figures 2, 4, 5).

Length is the number of whitespace-separated words, as in the figures. Most LSS of the dataset are
the whole claim: section 4.2 removes 2,000 of those pairs, and the "super version" of A.5 repeats
pairs until the lengths are balanced.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

# Length classes; the paper does not state its own.
LENGTH_CLASSES = 10


def length_ratio(claim: str, lss: str) -> float:
    """Words of the LSS by words of the claim, from 0 (nothing or a blank claim) to 1."""
    return min(1.0, len(lss.split()) / max(1, len(claim.split())))


def length_class(ratio: float) -> int:
    """Return the class of a ratio, from 0 to 9; 1.0 is in class 9."""
    return min(LENGTH_CLASSES - 1, int(ratio * LENGTH_CLASSES + 1e-9))


def drop_full_length(
    whole: Sequence[bool], eliminated: int, generator: np.random.Generator
) -> list[int]:
    """Return the indices that remain after removing full-length LSS (section 4.2).

    Args:
        whole: whether each LSS is the whole claim.
        eliminated: number to remove; 0 removes until at most half of the rows are full-length.
        generator: selects the removed rows.
    """
    full_length = np.flatnonzero(whole)
    surplus = max(0, 2 * len(full_length) - len(whole)) if len(full_length) < len(whole) else 0
    count = eliminated or surplus
    if count > len(full_length):
        raise ValueError(f"cannot remove {count} rows: only {len(full_length)} are the whole claim")
    if count and count == len(whole):
        raise ValueError(f"cannot remove {count} rows: none would remain")
    removed = set(generator.choice(full_length, count, replace=False).tolist())
    return [index for index in range(len(whole)) if index not in removed]


def balance_lengths(ratios: Sequence[float], generator: np.random.Generator) -> list[int]:
    """Return indices, in order, repeated until non-empty classes are equally large (A.5)."""
    classes: dict[int, list[int]] = defaultdict(list)
    for index, ratio in enumerate(ratios):
        classes[length_class(ratio)].append(index)
    largest = max(map(len, classes.values()), default=0)
    indices: list[int] = []
    for _, members in sorted(classes.items()):
        copies, remainder = divmod(largest, len(members))
        indices += members * copies + generator.choice(members, remainder, replace=False).tolist()
    return sorted(indices)
