"""Data modules: read record files into splits, and say which rows make which batches.

How a record is encoded is the component's business (``ComponentModule.encode``); which rows a split
has is in ``train/mixture.py``, their order in ``train/batches.py``.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
from lightning import LightningDataModule

from components.checkpoint import DataFile, describe_data
from records import (
    Generation,
    LssExample,
    Preference,
    RelationPair,
    UnliPair,
    UserError,
    read_records,
)
from records.types import Record
from train.batches import FixedBatches, TrainBatches, run_seed, seen_an_epoch
from train.checks import check_labels
from train.mixture import (
    Dev,
    Part,
    Paths,
    Train,
    held_back,
    share_of,
    source_names,
    weights_of,
)
from train.module import ComponentModule, Item


class RecordData(LightningDataModule):
    """Reads the splits of one kind of record.

    Attributes:
        paths: the files of each split; those of train for dev when it is held back from them.
        parts: what each file gives to a split.
        records: the records of a split, file after file.
        sources: the name of its source for each record of a split.
        items: the encoded records of a split.
        files: name, SHA-256 and rows of each file and split.
    """

    accepts: tuple[type[Record], ...]

    def __init__(
        self,
        train: Train,
        dev: Dev,
        test: Paths | None,
        dev_rows: int | None,
        batch_size: int,
        eval_batch_size: int,
    ):
        super().__init__()
        if min(batch_size, eval_batch_size, 1 if dev_rows is None else dev_rows) < 1:
            raise UserError(
                "--data.batch_size, --data.eval_batch_size and --data.dev_rows must be at least 1"
            )
        self.dev_rows = dev_rows
        self.weights = weights_of(train)
        self.hold_back = share_of(dev)
        given = self.weights if self.hold_back else dev
        self.paths = {
            split: [paths] if isinstance(paths, str) else list(paths or [])
            for split, paths in (("train", self.weights), ("dev", given), ("test", test))
        }
        self.batch_size, self.eval_batch_size = batch_size, eval_batch_size
        self.parts: dict[str, list[Part]] = {}
        self.records: dict[str, list[Record]] = {}
        self.sources: dict[str, list[str]] = {}
        self.items: dict[str, list[Item]] = {}
        self.files: list[DataFile] = []

    @property
    def module(self) -> ComponentModule:
        return self.trainer.lightning_module

    @property
    def predict_split(self) -> str:
        """``test`` where it is given, else ``dev``."""
        return "test" if self.paths["test"] else "dev"

    def setup(self, stage: str) -> None:
        if self.module.record_type not in self.accepts:
            raise UserError(
                f"{type(self).__name__} cannot feed {type(self.module).__name__}: it needs "
                f"{self.module.record_type.__name__} records; change --data.class_path"
            )
        needed = {"fit": ["train", "dev"], "validate": ["dev"], "test": ["test"]}
        missing = [
            split for split in needed.get(stage, [self.predict_split]) if split not in self.records
        ]
        for split in missing:
            self._read(split)
        if "train" in missing:
            check_labels(self.records["train"], self.paths["train"])
        for split in missing:
            self.items[split] = self.module.encode(self.records[split], split == "train")

    def _read(self, split: str) -> None:
        """Fill ``parts``, ``records``, ``sources`` and ``files`` of a split."""
        paths = self.paths[split]
        if not paths:
            raise UserError(f"no {split} data: give --data.{split} PATH")
        whole = [read_records(path, self.module.record_type) for path in paths]
        names = source_names(paths, whole)
        parts = [
            self._part(split, path, rows, name)
            for path, rows, name in zip(paths, whole, names, strict=True)
        ]
        if not any(part.rows for part in parts):
            raise UserError(
                f"--data.dev {self.hold_back}: no row is left for {split}, since whole groups of "
                f"{', '.join(paths)} are held back; give another share or a file as --data.dev"
            )
        used = [part for part in parts if part.rows]
        self.files += [describe_data(split, part.path, len(part.rows)) for part in used]
        self.parts[split] = parts
        self.records[split] = list(chain.from_iterable(part.rows for part in parts))
        self.sources[split] = [part.source for part in parts for _ in part.rows]

    def _part(self, split: str, path: str, rows: list[Record], source: str) -> Part:
        """The rows of a file that belong to the split."""
        numbers = {id(row): number for number, row in enumerate(rows, 1)}
        chosen = self.choose(rows, path)
        if self.hold_back and split != "test":
            seed, dev = run_seed(), split == "dev"
            chosen = [row for row in chosen if held_back(row, seed, self.hold_back) == dev]
        if split == "dev" and self.dev_rows and len(chosen) > self.dev_rows:
            generator = np.random.default_rng(run_seed())
            drawn = generator.choice(len(chosen), self.dev_rows, replace=False)
            chosen = [chosen[index] for index in sorted(drawn)]
        weight = self.weights[path] if split == "train" else 1.0
        return Part(path, weight, chosen, [numbers[id(row)] for row in chosen], source)

    def evaluation(self) -> dict[str, object]:
        """The options besides files by which dev was chosen and batched, for component.json."""
        options = {"dev": self.hold_back, "dev_rows": self.dev_rows}
        options["eval_batch_size"] = self.eval_batch_size
        return {name: value for name, value in options.items() if value is not None}

    def choose(self, rows: list[Record], path: str) -> list[Record]:
        """The rows of a file to use; all of them unless a subclass filters."""
        return rows

    def places(self, split: str, indices: list[int]) -> list[str]:
        """``file:row`` of items, for messages; a file's first record is row 1."""
        where = [f"{part.path}:{number}" for part in self.parts[split] for number in part.numbers]
        return [where[self.items[split][index].row] for index in indices]

    def train_dataloader(self) -> TrainBatches:
        rank, world = self.trainer.global_rank, self.trainer.world_size
        items, start, mixture = self.items["train"], 0, []
        rows = np.asarray([item.row for item in items])
        for part in self.parts["train"]:
            end = start + len(part.rows)
            indices = np.flatnonzero((rows >= start) & (rows < end))
            if len(indices) and not seen_an_epoch(len(indices), part.weight):
                raise UserError(
                    f"--data.train: weight {part.weight} of {part.path} with {len(indices)} rows "
                    "is not a single row an epoch; raise it or leave the file out"
                )
            mixture.append((indices, part.weight))
            start = end
        return TrainBatches(self.module, items, self.batch_size, rank, world, mixture)

    def batches(self, split: str, rank: int = 0, world: int = 1) -> FixedBatches:
        """The evaluation batches of a split, or one process's share of them."""
        return FixedBatches(self.module, self.items[split], self.eval_batch_size, rank, world)

    def _shared(self, split: str) -> FixedBatches:
        return self.batches(split, self.trainer.global_rank, self.trainer.world_size)

    def val_dataloader(self) -> FixedBatches:
        return self._shared("dev")

    def test_dataloader(self) -> FixedBatches:
        return self._shared("test")

    def predict_dataloader(self) -> FixedBatches:
        return self._shared(self.predict_split)


class PairData(RecordData):
    """Pairs of premise and hypothesis, for UNLI and for the relation model.

    Args:
        train: JSONL, CSV, TSV or Parquet to train on: a file, a list, or ``{file: weight}``, where
            a weight is how many times the file's rows are seen an epoch (0.5: every other time).
        dev: file or files that choose the best weights and calibrate. A number in (0, 1)
            holds back that share of the groups of the train files (of equal premise).
        test: file or files for ``test`` and ``predict``.
        dev_rows: judge only this many seeded rows of each dev file; null for all.
        batch_size: pairs a training batch and device.
        eval_batch_size: pairs an evaluation batch and device.
    """

    accepts = (UnliPair, RelationPair)

    def __init__(
        self,
        train: Train,
        dev: Dev,
        test: Paths | None = None,
        dev_rows: int | None = None,
        batch_size: int = 32,
        eval_batch_size: int = 64,
    ):
        super().__init__(train, dev, test, dev_rows, batch_size, eval_batch_size)


class LssData(RecordData):
    """Claims, references and their longest supported subsequences.

    Args:
        train: JSONL, CSV, TSV or Parquet to train on: a file, a list, or ``{file: weight}``, where
            a weight is how many times the file's rows are seen an epoch (0.5: every other time).
        dev: file or files that choose the best weights and tune the threshold. A number in (0, 1)
            holds back that share of the groups of the train files (of equal reference).
        test: file or files for ``test`` and ``predict``.
        dev_rows: judge only this many seeded rows of each dev file; null for all.
        batch_size: claims a training batch and device.
        eval_batch_size: claims an evaluation batch and device.
    """

    accepts = (LssExample,)

    def __init__(
        self,
        train: Train,
        dev: Dev,
        test: Paths | None = None,
        dev_rows: int | None = None,
        batch_size: int = 16,
        eval_batch_size: int = 32,
    ):
        super().__init__(train, dev, test, dev_rows, batch_size, eval_batch_size)


class GenerationData(RecordData):
    """Texts about topics, for the adversaries.

    Args:
        train: JSONL, CSV, TSV or Parquet to train on: a file, a list, or ``{file: weight}``, where
            a weight is how many times the file's rows are seen an epoch (0.5: every other time).
        dev: file or files that choose the best weights. A number in (0, 1)
            holds back that share of the groups of the train files (of equal topic).
        test: file or files for ``test`` and ``predict``.
        dev_rows: judge only this many seeded rows of each dev file; null for all.
        kinds: use only texts of these kinds, e.g. ``[uninformative]``; null for all.
        batch_size: texts a training batch and device.
        eval_batch_size: texts an evaluation batch and device.
    """

    accepts = (Generation,)

    def __init__(
        self,
        train: Train,
        dev: Dev,
        test: Paths | None = None,
        dev_rows: int | None = None,
        kinds: list[str] | None = None,
        batch_size: int = 8,
        eval_batch_size: int = 8,
    ):
        super().__init__(train, dev, test, dev_rows, batch_size, eval_batch_size)
        self.kinds = kinds

    def evaluation(self) -> dict[str, object]:
        return super().evaluation() | ({"kinds": self.kinds} if self.kinds else {})

    def choose(self, rows: list[Generation], path: str) -> list[Generation]:
        chosen = [row for row in rows if self.kinds is None or row.kind in self.kinds]
        if not chosen:
            there = ", ".join(sorted({str(row.kind) for row in rows}))
            raise UserError(
                f"{path}: no text of kind {', '.join(self.kinds)}; the file has: {there}; change "
                "--data.kinds"
            )
        return chosen


class PreferenceData(RecordData):
    """Pairs of texts that a metric ordered, for training against that metric.

    Args:
        train: JSONL, CSV, TSV or Parquet to train on: a file, a list, or ``{file: weight}``, where
            a weight is how many times the file's rows are seen an epoch (0.5: every other time).
        dev: file or files that choose the best weights. A number in (0, 1)
            holds back that share of the groups of the train files (of equal prompt).
        test: file or files for ``test`` and ``predict``.
        dev_rows: judge only this many seeded rows of each dev file; null for all.
        batch_size: pairs a training batch and device; each is two texts.
        eval_batch_size: pairs an evaluation batch and device.
    """

    accepts = (Preference,)

    def __init__(
        self,
        train: Train,
        dev: Dev,
        test: Paths | None = None,
        dev_rows: int | None = None,
        batch_size: int = 4,
        eval_batch_size: int = 4,
    ):
        super().__init__(train, dev, test, dev_rows, batch_size, eval_batch_size)
