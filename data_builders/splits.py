"""Draw train, dev and test splits of whole groups (topics, references)."""

import random
from collections.abc import Iterable, Sequence

from components.ties import tied_records
from records import group_of
from records.types import Record

SPLITS = ("train", "dev", "test")


def by_split(kind: str, splits: Iterable[str] = SPLITS) -> dict[str, str]:
    """Map each split to the record file of a kind."""
    return {split: f"{kind}_{split}.jsonl" for split in splits}


def drawn_splits(groups: Iterable[str], shares: Sequence[int], seed: int) -> dict[str, str]:
    """Map each group to a split, drawn independently of the order of the groups.

    Args:
        groups: groups that must not cross splits; may repeat.
        shares: of train, dev and optionally test.
    """
    order = sorted(set(groups))
    random.Random(f"{seed}:split").shuffle(order)
    total = sum(shares)
    edges = [round(len(order) * sum(shares[:end]) / total) for end in range(1, len(shares))]
    return {group: SPLITS[sum(index >= e for e in edges)] for index, group in enumerate(order)}


def split_at(position: float, shares: Sequence[int]) -> str:
    """Return the split that a number from 0 to the sum of the shares falls into.

    With a number from a group's hash, the split does not depend on the other groups.
    """
    return SPLITS[sum(position >= sum(shares[:end]) for end in range(1, len(shares)))]


def least_share(shares: Sequence[int]) -> float:
    """Return the share of the smallest non-empty split; 1 for a single split."""
    return min(share for share in shares if share) / sum(shares)


def tied_groups(records: Sequence[Record], shares: Sequence[int]) -> dict[str, str]:
    """Map each group to the first group with which it shares a text or document, or itself.

    Drawing tied groups together keeps an article that two groups read in one split.
    """
    names = tied_records([records], least_share(shares)).names
    ties: dict[str, str] = {}
    for record, name in zip(records, names, strict=True):
        group = group_of(record)
        ties[group] = min(name, ties.get(group, name))
    return ties
