"""Train, dev and test: whole groups (topics, references) drawn by a seed."""

import random
from collections.abc import Iterable, Sequence

from components.ties import tied_records
from records import group_of
from records.types import Record

SPLITS = ("train", "dev", "test")


def by_split(kind: str, splits: Iterable[str] = SPLITS) -> dict[str, str]:
    """Split to the file of records of a kind."""
    return {split: f"{kind}_{split}.jsonl" for split in splits}


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


def split_at(place: float, shares: Sequence[int]) -> str:
    """The split that a number from 0 to the shares' sum falls into.

    For builders that take the number from a group's hash, so that its split is the same whatever
    else the files hold, and no table of groups is in memory.
    """
    return SPLITS[sum(place >= sum(shares[:end]) for end in range(1, len(shares)))]


def least_share(shares: Sequence[int]) -> float:
    """The share of the smallest split that has one; 1 for a single split."""
    return min(share for share in shares if share) / sum(shares)


def tied_groups(records: Sequence[Record], shares: Sequence[int]) -> dict[str, str]:
    """Group to the name of the groups that it shares a text or a document with, its own for none.

    What is drawn instead of groups, so that an article that two groups read is on one side.

    Args:
        records: of all splits.
        shares: of the splits.
    """
    names = tied_records([records], least_share(shares)).names
    found: dict[str, str] = {}
    for record, name in zip(records, names, strict=True):
        group = group_of(record)
        found[group] = min(name, found.get(group, name))
    return found
