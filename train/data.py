"""The data module: reads record files into splits, and says which rows make which batches.

How a record is encoded is the component's business (``ComponentModule.encode``); which rows a split
has is in ``train/mixture.py``, their order in ``train/batches.py``.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
from jsonargparse.typing import PositiveInt
from lightning import LightningDataModule

from components.checkpoint import DataFile, describe_data
from components.nearness import fields_of, nearness, shown_nearness
from records import UserError, read_records
from records.types import Record
from train.batches import FixedBatches, TrainBatches, run_seed, seen_an_epoch
from train.checks import BadRow, check_labels
from train.items import Item
from train.mixture import (
    Dev,
    Part,
    Paths,
    Sides,
    Train,
    hold_back,
    row_sources,
    share_of,
    shared_rows,
    source_names,
    weights_of,
)
from train.module import ComponentModule


class RecordData(LightningDataModule):
    """Reads the splits of the record that the module is trained on.

    Args:
        train: JSONL, CSV, TSV or Parquet to train on: a file, a list, or ``{file: weight}``, where
            a weight is how many times the file's rows are seen an epoch (0.5: every other time).
        dev: file or files that choose the best weights and calibrate. A number in (0, 1) holds back
            that share of the train files' rows; those that share a group (article, name), premise,
            reference, topic, prompt, document or long line of text stay on one side.
        test: file or files for ``test`` and ``predict``.
        dev_rows: judge only this many seeded rows of each dev file; null for all.
        kinds: use only texts of these kinds, e.g. ``[uninformative]``; null for all.
        batch_size: rows (pairs, claims, texts) a training batch and device; null for the module's
            own number, e.g. 32 for pairs.
        eval_batch_size: rows an evaluation batch and device; null likewise.

    Attributes:
        paths: the files of each split; those of train for dev when it is held back from them.
        parts: what each file gives to a split.
        records: the records of a split, file after file.
        sources: the name of its source for each record of a split.
        items: the encoded records of a split.
        files: name, SHA-256 and rows of each file and split.
        nearness: field to how near dev's rows stand to the nearest of train, after a fit's setup.
    """

    def __init__(
        self,
        train: Train,
        dev: Dev,
        test: Paths | None = None,
        dev_rows: PositiveInt | None = None,
        kinds: list[str] | None = None,
        batch_size: PositiveInt | None = None,
        eval_batch_size: PositiveInt | None = None,
    ):
        super().__init__()
        self.save_hyperparameters()
        self.dev_rows, self.kinds = dev_rows, kinds
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
        self._sides: Sides | None = None
        self._train_files: list[list[Record]] = []
        self.nearness: dict[str, dict[str, float]] = {}

    @property
    def module(self) -> ComponentModule:
        return self.trainer.lightning_module

    @property
    def predict_split(self) -> str:
        """``test`` where it is given, else ``dev``."""
        return "test" if self.paths["test"] else "dev"

    def setup(self, stage: str) -> None:
        self.batch_size = self.batch_size or self.module.batch_size
        self.eval_batch_size = self.eval_batch_size or self.module.eval_batch_size
        needed = {"fit": ["train", "dev"], "validate": ["dev"], "test": ["test"]}
        missing = [
            split for split in needed.get(stage, [self.predict_split]) if split not in self.records
        ]
        kind = (stage == "predict" and self.module.unjudged_type) or self.module.record_type
        for split in missing:
            self._read(split, kind)
        if "train" in missing:
            check_labels(self.records["train"], self.paths["train"])
        if {"train", "dev"} <= set(missing) and self.trainer.is_global_zero:
            self._tell_nearness()
        for split in missing:
            try:
                self.items[split] = self.module.encode(self.records[split], split == "train")
            except BadRow as error:
                raise UserError(f"{self._rows(split)[error.row]}: {error}") from None

    def _read(self, split: str, kind: type[Record]) -> None:
        paths = self.paths[split]
        if not paths:
            raise UserError(f"no {split} data: give --data.{split} PATH")
        drawn = self.hold_back and split != "test"
        # A fit reads the files once: what train leaves is dev's.
        whole = (drawn and self._train_files) or [read_records(path, kind) for path in paths]
        self._train_files = whole if drawn and split == "train" else []
        names = source_names(paths, whole)
        if drawn and self._sides is None:
            self._sides = hold_back(whole, run_seed(), self.hold_back)
        own = [self._side(split, place) if drawn else None for place in range(len(paths))]
        parts = [
            self._part(split, path, rows, name, kept)
            for path, rows, name, kept in zip(paths, whole, names, own, strict=True)
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
        self.sources[split] = [name for part in parts for name in row_sources(part)]

    def _side(self, split: str, place: int) -> list[bool]:
        dev, away = self._sides.dev[place], self._sides.away[place]
        return dev if split == "dev" else [not (d or a) for d, a in zip(dev, away, strict=True)]

    def _tell_nearness(self) -> None:
        train, dev = self.records["train"], self.records["dev"]
        if self.hold_back:
            print(f"--data.dev {self.hold_back}: {self._sides.said}")
        elif shared := shared_rows(dev, train):
            print(
                f"warning: {shared:,} of {len(dev):,} dev rows share a group, a text or a document "
                "with training; hold back a share (--data.dev 0.15) or take them out"
            )
        texts = {name: [getattr(row, name) for row in dev] for name in fields_of(dev[0])}
        self.nearness = {
            name: nearness(held, [getattr(row, name) for row in train])
            for name, held in texts.items()
        }
        if self.nearness:
            print(f"dev's nearest training row (cosine): {shown_nearness(self.nearness)}")

    def _part(
        self,
        split: str,
        path: str,
        rows: list[Record],
        source: str,
        kept: list[bool] | None = None,
    ) -> Part:
        numbers = {id(row): number for number, row in enumerate(rows, 1)}
        chosen = rows if self.kinds is None else self._of_kinds(rows, path)
        if kept is not None:
            chosen = [row for row in chosen if kept[numbers[id(row)] - 1]]
        if split == "dev" and self.dev_rows and len(chosen) > self.dev_rows:
            generator = np.random.default_rng(run_seed())
            drawn = generator.choice(len(chosen), self.dev_rows, replace=False)
            chosen = [chosen[index] for index in sorted(drawn)]
        weight = self.weights[path] if split == "train" else 1.0
        return Part(path, weight, chosen, [numbers[id(row)] for row in chosen], source)

    def _of_kinds(self, rows: list[Record], path: str) -> list[Record]:
        chosen = [row for row in rows if getattr(row, "kind", None) in self.kinds]
        if not chosen:
            there = ", ".join(sorted({str(getattr(row, "kind", None)) for row in rows}))
            raise UserError(
                f"{path}: no text of kind {', '.join(self.kinds)}; the file has: {there}; change "
                "--data.kinds"
            )
        return chosen

    def evaluation(self) -> dict[str, object]:
        """The options besides files by which dev was chosen and batched, for component.json."""
        options = {"dev": self.hold_back, "dev_rows": self.dev_rows, "kinds": self.kinds}
        options["eval_batch_size"] = self.eval_batch_size
        return {name: value for name, value in options.items() if value is not None}

    def places(self, split: str, indices: list[int]) -> list[str]:
        """``file:row`` of items, for messages; a file's first record is row 1."""
        where = self._rows(split)
        return [where[self.items[split][index].row] for index in indices]

    def _rows(self, split: str) -> list[str]:
        return [f"{part.path}:{number}" for part in self.parts[split] for number in part.numbers]

    def train_dataloader(self) -> TrainBatches:
        rank, world = self.trainer.global_rank, self.trainer.world_size
        items, start, mixture = self.items["train"], 0, []
        if not any(item.weight for item in items):
            raise UserError(
                f"{', '.join(self.paths['train'])}: weight: all rows of training have 0, so that "
                "nothing would be learnt; give some a weight above 0"
            )
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


# Their names when there was a class a record: configurations and model cards that say so still run.
PairData = LssData = GenerationData = PreferenceData = RecordData
