"""Train, dev and test: whole groups (topics, references) drawn by a seed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

SPLITS = ("train", "dev", "test")


def drawn_splits(groups: Iterable[str], shares: Sequence[int], seed: int) -> dict[str, str]:
    """Group to its split, by a draw that depends on the groups and the seed, not on their order.

    Args:
        groups: what must not stand on both sides of a split; may repeat.
        shares: of train, dev and, if there are three, test.
        seed: of the draw.
    """
    order = sorted(set(groups))
    random.Random(f"{seed}:split").shuffle(order)
    total = sum(shares)
    edges = [round(len(order) * sum(shares[:end]) / total) for end in range(1, len(shares))]
    return {group: SPLITS[sum(place >= e for e in edges)] for place, group in enumerate(order)}
