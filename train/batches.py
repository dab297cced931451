"""Batches: which rows are seen in which order, and which process sees them.

The order is a pure function of seed and epoch, and step k covers the same rows whether one process
takes a batch whole or several take their share of it. Kill, resume and DDP rest on that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from components.encoding import batches_by_length
from train.items import Item
from train.module import ComponentModule

# Batches are made of similar lengths within a window of so many, so that they stay mixed: a quarter
# of the epoch between these bounds. Wider windows pad less and repeat the same batches every epoch.
_NARROW, _WIDE = 50, 200

Parts = Sequence[tuple[Sequence[int], float]]


def run_seed() -> int:
    """The seed that ``seed_everything`` set; Lightning's samplers read it in the same way."""
    return int(os.environ.get("PL_GLOBAL_SEED", 0))


def seen_an_epoch(size: int, weight: float) -> int:
    """How many items of a file an epoch has: ``weight`` times its size, rounded."""
    return int(weight) * size + round((weight - int(weight)) * size)


def epoch_order(parts: Parts, seed: int, epoch: int, generator: np.random.Generator) -> np.ndarray:
    """The items of one epoch of a mixture, shuffled and evenly mixed.

    A weight of 2.5 is two passes over the file and half a one. The part of a pass moves on with
    every epoch, so that two epochs at 0.5 see the whole file once. Passes follow each other: a
    repeated item does not stand beside its copy.

    Args:
        parts: item indices and weight of each file.
        seed, epoch: decide which part of a file a fraction takes.
        generator: shuffles each pass.

    Returns:
        Indices of items, shape (items an epoch,).
    """
    found, places = [], []
    for number, (indices, weight) in enumerate(parts):
        passes = [generator.permutation(len(indices)) for _ in range(int(weight))]
        rest = seen_an_epoch(len(indices), weight) - int(weight) * len(indices)
        if rest:
            fixed = np.random.default_rng([seed, number, 1]).permutation(len(indices))
            turn = (epoch * rest + np.arange(rest)) % len(indices)
            passes.append(generator.permutation(fixed[turn]))
        if passes:
            order = np.concatenate(passes)
            found.append(np.asarray(indices)[order])
            places.append((np.arange(len(order)) + 0.5) / len(order))
    return np.concatenate(found)[np.argsort(np.concatenate(places), kind="stable")]


class TrainBatches:
    """Shuffled batches of similar length, whose order is a pure function of seed and epoch.

    Lightning calls ``set_epoch`` through ``sampler`` and keeps ``state_dict`` in its checkpoints,
    so that a run resumed in the middle of an epoch goes on with the next batch.

    Every batch of ``batch_size * world`` items is dealt out to the processes, which may get unequal
    numbers of the last one; a process that would get nothing takes one item that does not count.

    Args:
        module: encodes and collates.
        items: the encoded training data.
        batch_size: items a step and process.
        rank, world: this process and how many there are.
        parts: item indices and weight of each file; all items once an epoch without it.
    """

    def __init__(
        self,
        module: ComponentModule,
        items: Sequence[Item],
        batch_size: int,
        rank: int = 0,
        world: int = 1,
        parts: Parts | None = None,
    ):
        self.module, self.items, self.batch_size = module, items, batch_size
        self.rank, self.world = rank, world
        self.parts = [(range(len(items)), 1.0)] if parts is None else parts
        self.epoch, self.done = 0, 0
        self._resume: dict[str, int] | None = None

    @property
    def sampler(self) -> TrainBatches:
        """Itself: Lightning calls ``set_epoch`` of a loader's sampler."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order comes next."""
        self.epoch = epoch

    def plan(self, epoch: int) -> list[list[int]]:
        """All batches of an epoch, each for all processes together, as indices of items."""
        generator = np.random.default_rng([run_seed(), epoch])
        order = epoch_order(self.parts, run_seed(), epoch, generator)
        together = self.batch_size * self.world
        size = max(_NARROW, min(_WIDE, len(self) // 4)) * together
        batches: list[list[int]] = []
        for start in range(0, len(order), size):
            part = order[start : start + size].tolist()
            lengths = [self.items[index].length for index in part]
            found = batches_by_length(lengths, together)
            batches.extend([part[place] for place in batch] for batch in found)
        return [batches[index] for index in generator.permutation(len(batches))]

    def __len__(self) -> int:
        # Whole windows are whole batches, so the order does not matter.
        total = sum(seen_an_epoch(len(indices), weight) for indices, weight in self.parts)
        return -(-total // (self.batch_size * self.world))

    def __iter__(self) -> Iterator[dict]:
        resume, self._resume = self._resume, None
        start = resume["done"] if resume and resume["epoch"] == self.epoch else 0
        for place, batch in enumerate(self.plan(self.epoch)):
            if place >= start:
                self.done = place + 1
                mine = batch[self.rank :: self.world]
                chosen = mine or batch[:1]
                collated = self.module.collate([self.items[index] for index in chosen], chosen)
                yield {**collated, "counted": bool(mine)}

    def state_dict(self) -> dict[str, int]:
        """The epoch and how many of its batches were given."""
        return {"epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on behind the batches that ``state`` counts, once."""
        self._resume = dict(state)


class FixedBatches:
    """Batches of an evaluation: always the same, longest first.

    With several processes each takes every ``world``-th batch. All take equally many, because a
    sharded model computes in step: the first ones are judged again at the end, to the same outputs.
    """

    def __init__(
        self,
        module: ComponentModule,
        items: Sequence[Item],
        batch_size: int,
        rank: int = 0,
        world: int = 1,
    ):
        self.module, self.items = module, items
        found = list(batches_by_length([item.length for item in items], batch_size))
        rounds = -(-len(found) // world)
        self.batches = [found[(turn * world + rank) % len(found)] for turn in range(rounds)]

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[dict]:
        for batch in self.batches:
            yield self.module.collate([self.items[index] for index in batch], batch)
