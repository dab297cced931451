"""Who and what belongs to which split: people, properties and wordings never cross.

A model that has seen a template or a property in training could do well on the evaluation text by
its surface; so evaluation text shares neither with training text.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from data_builders.kb.facts import Person
from data_builders.splits import SPLITS
from records import UserError

# ``P21`` (sex) and ``alias`` (other names) fill up the two evaluation splits.
SPLIT_PROPERTIES = {
    "train": ("P106", "P27", "P569", "P19", "P69"),
    "dev": ("P20", "P21"),
    "test": ("P570", "P166", "P54", "alias"),
}


def split_people(
    people: Sequence[Person], shares: Sequence[int], seed: int
) -> dict[str, list[Person]]:
    """Divide people by share; namesakes (people with the same label) stay together.

    Args:
        people: all people.
        shares: of train, dev and test, e.g. ``(8, 1, 1)``.
        seed: of the shuffle.

    Returns:
        Split to its people, in the order of their identifiers.
    """
    if len(shares) != len(SPLITS) or min(shares) <= 0:
        raise UserError(f"shares: give three positive numbers for {', '.join(SPLITS)}")
    families: dict[str, list[Person]] = defaultdict(list)
    for person in people:
        families[person.name.casefold()].append(person)
    names = sorted(families)
    random.Random(f"{seed}:people").shuffle(names)
    found: dict[str, list[Person]] = {split: [] for split in SPLITS}
    for name in names:
        # Always to the split that is furthest below its share, so that big families do no harm.
        split = min(SPLITS, key=lambda s: len(found[s]) / shares[SPLITS.index(s)])
        found[split].extend(families[name])
    if min(len(members) for members in found.values()) < 2:
        raise UserError(f"{len(people)} people are too few for three splits; widen the population")
    return {split: sorted(members, key=lambda p: p.iri) for split, members in found.items()}
