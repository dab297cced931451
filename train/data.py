"""Data modules: read record files and make batches of similar length.

How a record is encoded is the component's business (``ComponentModule.encode``); here are only
files, batches and their order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
from lightning import LightningDataModule

from components.checkpoint import DataFile, describe_data
from components.encoding import batches_by_length
from records import Generation, LssExample, RelationPair, UnliPair, UserError, read_records
from records.types import Record
from train.module import ComponentModule, Item

Paths = str | list[str]

# Batches are made of similar lengths within this many at a time, so that they stay mixed.
_WINDOW = 50


def run_seed() -> int:
    """The seed that ``seed_everything`` set; Lightning's samplers read it in the same way."""
    return int(os.environ.get("PL_GLOBAL_SEED", 0))


class TrainBatches:
    """Shuffled batches of similar length, whose order is a pure function of seed and epoch.

    Lightning calls ``set_epoch`` through ``sampler`` and keeps ``state_dict`` in its checkpoints,
    so that a run resumed in the middle of an epoch goes on with the next batch.

    Args:
        module: encodes and collates.
        items: the encoded training data.
        batch_size: items a batch and device.
        rank, world: this process and how many there are; each takes every ``world``-th batch.
    """

    def __init__(
        self,
        module: ComponentModule,
        items: Sequence[Item],
        batch_size: int,
        rank: int = 0,
        world: int = 1,
    ):
        self.module, self.items, self.batch_size = module, items, batch_size
        self.rank, self.world = rank, world
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
        """All batches of an epoch for this process, as indices of items."""
        generator = np.random.default_rng([run_seed(), epoch])
        order = generator.permutation(len(self.items))
        size = _WINDOW * self.batch_size
        batches: list[list[int]] = []
        for start in range(0, len(order), size):
            part = order[start : start + size].tolist()
            lengths = [self.items[index].length for index in part]
            found = batches_by_length(lengths, self.batch_size)
            batches.extend([part[place] for place in batch] for batch in found)
        shuffled = [batches[index] for index in generator.permutation(len(batches))]
        # Every process needs as many batches as the others: the first ones fill the last round.
        shuffled += shuffled[: -len(shuffled) % self.world]
        return shuffled[self.rank :: self.world]

    def __len__(self) -> int:
        # The number of batches does not depend on the order.
        full, rest = divmod(len(self.items), _WINDOW * self.batch_size)
        batches = full * _WINDOW + -(-rest // self.batch_size)
        return -(-batches // self.world)

    def __iter__(self) -> Iterator[dict]:
        resume, self._resume = self._resume, None
        start = resume["done"] if resume and resume["epoch"] == self.epoch else 0
        for place, batch in enumerate(self.plan(self.epoch)):
            if place >= start:
                self.done = place + 1
                yield self.module.collate([self.items[index] for index in batch], batch)

    def state_dict(self) -> dict[str, int]:
        """The epoch and how many of its batches were given."""
        return {"epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on behind the batches that ``state`` counts, once."""
        self._resume = dict(state)


class FixedBatches:
    """Batches of an evaluation: always the same, longest first.

    Every process sees all of them, so that measures need no gathering and are exact.
    """

    def __init__(self, module: ComponentModule, items: Sequence[Item], batch_size: int):
        self.module, self.items = module, items
        self.batches = list(batches_by_length([item.length for item in items], batch_size))

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[dict]:
        for batch in self.batches:
            yield self.module.collate([self.items[index] for index in batch], batch)


class RecordData(LightningDataModule):
    """Reads the splits of one kind of record."""

    accepts: tuple[type[Record], ...]

    def __init__(
        self,
        train: Paths,
        dev: Paths,
        test: Paths | None,
        dev_rows: int | None,
        batch_size: int,
        eval_batch_size: int,
    ):
        super().__init__()
        if min(batch_size, eval_batch_size, dev_rows or 1) < 1:
            raise UserError(
                "--data.batch_size, --data.eval_batch_size and --data.dev_rows must be at least 1"
            )
        self.dev_rows = dev_rows
        self.paths = {
            split: [paths] if isinstance(paths, str) else list(paths or [])
            for split, paths in (("train", train), ("dev", dev), ("test", test))
        }
        self.batch_size, self.eval_batch_size = batch_size, eval_batch_size
        self.records: dict[str, list[Record]] = {}
        self.items: dict[str, list[Item]] = {}
        self.files: list[DataFile] = []

    @property
    def module(self) -> ComponentModule:
        return self.trainer.lightning_module

    @property
    def predict_split(self) -> str:
        """``test`` where it is given, else ``dev``."""
        return "test" if self.paths["test"] else "dev"

    def dev_records(self) -> list[Record]:
        """The records of dev that were read; none before ``setup``."""
        return self.records.get("dev", [])

    def setup(self, stage: str) -> None:
        if self.module.record_type not in self.accepts:
            raise UserError(
                f"{type(self).__name__} cannot feed {type(self.module).__name__}: it needs "
                f"{self.module.record_type.__name__} records; change --data.class_path"
            )
        needed = {"fit": ["train", "dev"], "validate": ["dev"], "test": ["test"]}
        for split in needed.get(stage, [self.predict_split]):
            if split not in self.records:
                self.records[split] = self._read(split)
                self.items[split] = self.module.encode(self.records[split], split == "train")

    def _read(self, split: str) -> list[Record]:
        if not self.paths[split]:
            raise UserError(f"no {split} data: give --data.{split} PATH")
        found: list[Record] = []
        for path in self.paths[split]:
            rows = self.choose(read_records(path, self.module.record_type), path)
            if split == "dev" and self.dev_rows and len(rows) > self.dev_rows:
                generator = np.random.default_rng(run_seed())
                chosen = generator.choice(len(rows), self.dev_rows, replace=False)
                rows = [rows[index] for index in sorted(chosen)]
            self.files.append(describe_data(split, path, len(rows)))
            found.extend(rows)
        return found

    def choose(self, rows: list[Record], path: str) -> list[Record]:
        """The rows of a file to use; all of them unless a subclass filters."""
        return rows

    def train_dataloader(self) -> TrainBatches:
        rank, world = self.trainer.global_rank, self.trainer.world_size
        return TrainBatches(self.module, self.items["train"], self.batch_size, rank, world)

    def batches(self, split: str) -> FixedBatches:
        """The evaluation batches of a split."""
        return FixedBatches(self.module, self.items[split], self.eval_batch_size)

    def val_dataloader(self) -> FixedBatches:
        return self.batches("dev")

    def test_dataloader(self) -> FixedBatches:
        return self.batches("test")

    def predict_dataloader(self) -> FixedBatches:
        return self.batches(self.predict_split)


class PairData(RecordData):
    """Pairs of premise and hypothesis, for UNLI and for the relation model.

    Args:
        train: file or files to train on: JSONL, CSV, TSV or Parquet.
        dev: file or files that choose the best weights and calibrate.
        test: file or files for ``test`` and ``predict``.
        dev_rows: judge only this many seeded rows of each dev file; null for all.
        batch_size: pairs a training batch.
        eval_batch_size: pairs an evaluation batch.
    """

    accepts = (UnliPair, RelationPair)

    def __init__(
        self,
        train: Paths,
        dev: Paths,
        test: Paths | None = None,
        dev_rows: int | None = None,
        batch_size: int = 32,
        eval_batch_size: int = 64,
    ):
        super().__init__(train, dev, test, dev_rows, batch_size, eval_batch_size)


class LssData(RecordData):
    """Claims, references and their longest supported subsequences.

    Args:
        train: file or files to train on: JSONL, CSV, TSV or Parquet.
        dev: file or files that choose the best weights and tune the threshold.
        test: file or files for ``test`` and ``predict``.
        dev_rows: judge only this many seeded rows of each dev file; null for all.
        batch_size: claims a training batch.
        eval_batch_size: claims an evaluation batch.
    """

    accepts = (LssExample,)

    def __init__(
        self,
        train: Paths,
        dev: Paths,
        test: Paths | None = None,
        dev_rows: int | None = None,
        batch_size: int = 16,
        eval_batch_size: int = 32,
    ):
        super().__init__(train, dev, test, dev_rows, batch_size, eval_batch_size)


class GenerationData(RecordData):
    """Texts about topics, for the adversaries.

    Args:
        train: file or files to train on: JSONL, CSV, TSV or Parquet.
        dev: file or files that choose the best weights.
        test: file or files for ``test`` and ``predict``.
        dev_rows: judge only this many seeded rows of each dev file; null for all.
        kinds: use only texts of these kinds, e.g. ``[uninformative]``; null for all.
        batch_size: texts a training batch.
        eval_batch_size: texts an evaluation batch.
    """

    accepts = (Generation,)

    def __init__(
        self,
        train: Paths,
        dev: Paths,
        test: Paths | None = None,
        dev_rows: int | None = None,
        kinds: list[str] | None = None,
        batch_size: int = 8,
        eval_batch_size: int = 8,
    ):
        super().__init__(train, dev, test, dev_rows, batch_size, eval_batch_size)
        self.kinds = kinds

    def choose(self, rows: list[Generation], path: str) -> list[Generation]:
        chosen = [row for row in rows if self.kinds is None or row.kind in self.kinds]
        if not chosen:
            there = ", ".join(sorted({str(row.kind) for row in rows}))
            raise UserError(
                f"{path}: no text of kind {', '.join(self.kinds)}; the file has: {there}; change "
                "--data.kinds"
            )
        return chosen
