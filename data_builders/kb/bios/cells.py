"""Cells of frequency and group: how many topics each gives, and who goes to which split.

Core (2407.03572, section 4.2) samples its 1,024 topics uniformly over 4 frequency bins and 4 groups
of continents, and divides them about 8:1:1: 50, 7 and 7 of each cell.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from data_builders.splits import SPLITS

Cell = tuple[int, str]

_PARENTHESES = re.compile(r"\s*\([^)]*\)$")


def draw_order(cells: Sequence[Cell], seed: int) -> list[Cell]:
    """The order in which cells get the topics that do not divide evenly."""
    return random.Random(f"{seed}:cells").sample(list(cells), len(cells))


def quotas(order: Sequence[Cell], most: Mapping[Cell, int | None], topics: int) -> dict[Cell, int]:
    """Topics of each cell: the same of all; what a cell lacks is spread evenly over the others.

    Args:
        order: the cells, those first that get one more where the number does not divide.
        most: how many topics a cell has; ``None`` for enough.
        topics: how many there shall be; fewer where all cells together have fewer.
    """
    given = dict.fromkeys(order, 0)
    while True:
        room = [c for c in order if most[c] is None or given[c] < most[c]]
        left = topics - sum(given.values())
        if not room or not left:
            return given
        each = left // len(room)
        for cell in room if each else room[:left]:
            space = left if most[cell] is None else most[cell] - given[cell]
            given[cell] += min(each or 1, space)


def split_sizes(numbers: Mapping[str, int], shares: Sequence[int]) -> dict[str, Counter[str]]:
    """Cell to how many of its topics go to each split.

    Topic after topic goes to the split that is furthest below its share, over all cells, so that
    the sizes hold in all and, as nearly as numbers allow, in each cell.
    """
    share = dict(zip(SPLITS, shares, strict=True))
    given: Counter[str] = Counter()
    found: dict[str, Counter[str]] = {cell: Counter() for cell in numbers}
    for cell, number in numbers.items():
        for _ in range(number):
            done = given.total() + 1
            lacks = {s: share[s] * done - given[s] * sum(shares) for s in SPLITS}
            split = max(SPLITS, key=lacks.__getitem__)
            given[split] += 1
            found[cell][split] += 1
    return found


def split_topics(topics: Sequence[dict], shares: Sequence[int], seed: int) -> dict[str, str]:
    """Topic to its split, cell by cell; namesakes stay together.

    Args:
        topics: rows with ``topic``, ``name`` and ``cell``; those of one name, or of one title but
            for what stands in parentheses, are a family.
        shares: of train, dev and test.
        seed: of the draws.
    """
    rng = random.Random(f"{seed}:split")
    members: dict[str, list[dict]] = defaultdict(list)
    for row in topics:
        members[row["cell"]].append(row)
    cells = rng.sample(sorted(members), len(members))
    left = split_sizes({cell: len(members[cell]) for cell in cells}, shares)
    families = _families(topics)
    rng.shuffle(families)
    found: dict[str, str] = {}
    # Large families first, while there is room for them.
    for family in sorted(families, key=len, reverse=True):
        needs: dict[str, int] = defaultdict(int)
        for row in family:
            needs[row["cell"]] += 1
        fits = [s for s in SPLITS if all(left[c][s] >= n for c, n in needs.items())]
        weights = [sum(left[c][s] for c in needs) for s in fits]
        split = rng.choices(fits, weights)[0] if fits else "train"
        for row in family:
            left[row["cell"]][split] -= 1
            found[row["topic"]] = split
    return found


def _families(topics: Sequence[dict]) -> list[list[dict]]:
    head: dict[str, str] = {}

    def find(key: str) -> str:
        while head.setdefault(key, key) != key:
            key = head[key]
        return key

    for row in topics:
        head[find(_title(row))] = find(row["name"].casefold())
    families: dict[str, list[dict]] = defaultdict(list)
    for row in topics:
        families[find(row["name"].casefold())].append(row)
    return list(families.values())


def _title(row: dict) -> str:
    return _PARENTHESES.sub("", row["topic"]).casefold()
