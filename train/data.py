"""The data module: which rows of which files make a split, and which batches they make.

The order of batches is a pure function of seed and epoch, and step k covers the same rows whether
one process takes a batch whole or several take their share of it. Kill, resume and DDP rest on
that. How a record is encoded is the component's business (``ComponentModule.encode``).
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from jsonargparse.typing import PositiveInt
from lightning import LightningDataModule

from components.checkpoint import DataFile, describe_data
from components.encoding import batches_by_length
from components.nearness import format_nearness, summarize_nearness, text_fields
from components.ties import keys_of, tied_records
from records import UserError, read_records
from records.types import Record
from train.checks import BadRow, check_labels
from train.module import ComponentModule, Item

Train = dict[str, float] | list[str] | str
Dev = float | list[str] | str
Paths = list[str] | str
# Item indices and weight of each file.
Mixture = Sequence[tuple[Sequence[int], float]]

# The largest weight of a file; the order of an epoch is in memory.
_MOST = 1_000_000
# Batches are made of similar lengths within a window of so many, so that they stay mixed: a quarter
# of the epoch between these bounds. Wider windows pad less and repeat the same batches every epoch.
_NARROW, _WIDE = 50, 200


def run_seed() -> int:
    """The seed that ``seed_everything`` set; Lightning's samplers read it in the same way."""
    return int(os.environ.get("PL_GLOBAL_SEED", 0))


@dataclass(frozen=True)
class Part:
    """The rows that one file gives to a split.

    Attributes:
        path: the file.
        weight: how many times its rows are seen an epoch.
        rows: the records.
        numbers: 1-based place of each row in its file.
        source: name under which they are judged.
    """

    path: str
    weight: float
    rows: list[Record]
    numbers: list[int]
    source: str


def _weights_of(train: Train) -> dict[str, float]:
    if not isinstance(train, Mapping):
        paths = [train] if isinstance(train, str) else list(train)
        if len(set(paths)) < len(paths):
            raise UserError("--data.train names a file twice; say how often as a weight: {FILE: 2}")
        train = dict.fromkeys(paths, 1.0)
    for path, weight in train.items():
        if not 0 < weight <= _MOST:  # NaN is nowhere
            raise UserError(
                f"--data.train: the weight of {path} must be positive and at most {_MOST:,}, "
                f"not {weight}"
            )
    return {path: float(weight) for path, weight in train.items()}


def hold_back(
    files: Sequence[Sequence[Record]], seed: int, share: float
) -> tuple[list[list[str | None]], str]:
    """Hold back whole components of rows that share something, across all files.

    Args:
        files: the records of each file.
        seed: of the draw.
        share: of the components to hold back, up to chance.

    Returns:
        The split of each row of each file, ``train`` or ``dev``, or ``None`` where it is in
        neither, since it shares something with one that is held back; and a summary.
    """
    tied = tied_records(files, min(share, 1 - share))
    held = {name: in_dev(name, seed, share) for name in set(tied.names)}
    dev = [held[name] for name in tied.names]
    away = tied.crossing(dev).tolist()
    said = (
        f"{sum(dev):,} of {len(dev):,} rows are held back, whole sets of rows that share a group, "
        f"a text or a document ({len(held):,} sets)"
    )
    if sum(away):
        said += f"; {sum(away):,} more are left out, which share something with them"
    if tied.common:
        said += f"; {tied.common:,} lines or documents are passed over, which too many rows share"
    sides = iter("dev" if d else None if a else "train" for d, a in zip(dev, away, strict=True))
    return [[next(sides) for _ in rows] for rows in files], said


def in_dev(name: str, seed: int, share: float) -> bool:
    """Whether what hangs together under a name is dev; the same answer whatever else is there."""
    digest = hashlib.sha256(f"{seed}\n{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def shared_rows(held: Sequence[Record], train: Sequence[Record]) -> int:
    """How many held-out rows share a group, a text, a document or a long line with training."""
    seen = set(chain.from_iterable(map(keys_of, train)))
    return sum(not seen.isdisjoint(keys_of(record)) for record in held)


def source_names(paths: Sequence[str], rows: Sequence[Sequence[Record]]) -> list[str]:
    """One name a file: its rows' ``source`` where they all agree, else its stem; all different.

    Rows of a file that do not agree are judged by their own (:func:`row_sources`).

    Args:
        paths: the files.
        rows: all records of each.
    """
    plain = [_spelled(Path(path).stem) for path in paths]
    folders = [_spelled(f"{Path(p).parent.name}_{Path(p).stem}") for p in paths]
    names = []
    for stem, records in zip(plain, rows, strict=True):
        declared = {getattr(record, "source", None) for record in records}
        agreed = declared.pop() if len(declared) == 1 else None
        names.append(_spelled(agreed or stem))
    numbered = [f"{name}_{number}" for number, name in enumerate(names, 1)]
    for finer in (plain, folders, numbered):
        seen = Counter(names)
        names = [b if seen[a] > 1 else a for a, b in zip(names, finer, strict=True)]
    return names


def row_sources(part: Part) -> list[str]:
    """The name of the source of each row: its own where a file holds several, else the file's."""
    own = [getattr(row, "source", None) for row in part.rows]
    if len(set(own)) < 2:
        return [part.source] * len(own)
    return [_spelled(name) if name else part.source for name in own]


def _spelled(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)


def seen_an_epoch(size: int, weight: float) -> int:
    """How many items of a file an epoch has: ``weight`` times its size, rounded."""
    return int(weight) * size + round((weight - int(weight)) * size)


def epoch_order(
    mixture: Mixture, seed: int, epoch: int, generator: np.random.Generator
) -> np.ndarray:
    """The items of one epoch of a mixture, shuffled and evenly mixed.

    A weight of 2.5 is two passes over the file and half a one. The part of a pass moves on with
    every epoch, so that two epochs at 0.5 see the whole file once. Passes follow each other: a
    repeated item does not stand beside its copy.

    Args:
        mixture: item indices and weight of each file.
        seed, epoch: decide which part of a file a fraction takes.
        generator: shuffles each pass.

    Returns:
        Indices of items, shape (items an epoch,).
    """
    orders, places = [], []
    for number, (indices, weight) in enumerate(mixture):
        passes = [generator.permutation(len(indices)) for _ in range(int(weight))]
        rest = seen_an_epoch(len(indices), weight) - int(weight) * len(indices)
        if rest:
            fixed = np.random.default_rng([seed, number, 1]).permutation(len(indices))
            turn = (epoch * rest + np.arange(rest)) % len(indices)
            passes.append(generator.permutation(fixed[turn]))
        if passes:
            order = np.concatenate(passes)
            orders.append(np.asarray(indices)[order])
            places.append((np.arange(len(order)) + 0.5) / len(order))
    return np.concatenate(orders)[np.argsort(np.concatenate(places), kind="stable")]


@dataclass(eq=False)
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
        mixture: item indices and weight of each file.
        rank, world: this process and how many there are.
    """

    module: ComponentModule
    items: Sequence[Item]
    batch_size: int
    mixture: Mixture
    rank: int = 0
    world: int = 1

    def __post_init__(self):
        self.epoch, self.done = 0, 0
        self._resume: dict[str, int] | None = None
        self.sampler = self  # of a loader's sampler Lightning calls ``set_epoch``

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order comes next."""
        self.epoch = epoch

    def plan(self, epoch: int) -> list[list[int]]:
        """All batches of an epoch, each for all processes together, as indices of items."""
        generator = np.random.default_rng([run_seed(), epoch])
        order = epoch_order(self.mixture, run_seed(), epoch, generator)
        together = self.batch_size * self.world
        size = max(_NARROW, min(_WIDE, len(self) // 4)) * together
        batches: list[list[int]] = []
        for start in range(0, len(order), size):
            window = order[start : start + size].tolist()
            lengths = [self.items[index].length for index in window]
            for batch in batches_by_length(lengths, together):
                batches.append([window[place] for place in batch])
        return [batches[index] for index in generator.permutation(len(batches))]

    def __len__(self) -> int:
        # Whole windows are whole batches, so the order does not matter.
        total = sum(seen_an_epoch(len(indices), weight) for indices, weight in self.mixture)
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
        whole = list(batches_by_length([item.length for item in items], batch_size))
        rounds = -(-len(whole) // world)
        self.batches = [whole[(turn * world + rank) % len(whole)] for turn in range(rounds)]

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[dict]:
        for batch in self.batches:
            yield self.module.collate([self.items[index] for index in batch], batch)


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
        self.weights = _weights_of(train)
        self.hold_back = float(dev) if isinstance(dev, (int, float)) else None
        if self.hold_back is not None and not 0 < self.hold_back < 1:
            raise UserError(f"--data.dev {dev}: a share to hold back lies between 0 and 1")
        dev_paths = self.weights if self.hold_back else dev
        self.paths = {
            split: [paths] if isinstance(paths, str) else list(paths or [])
            for split, paths in (("train", self.weights), ("dev", dev_paths), ("test", test))
        }
        self.batch_size, self.eval_batch_size = batch_size, eval_batch_size
        self.parts: dict[str, list[Part]] = {}
        self.records: dict[str, list[Record]] = {}
        self.sources: dict[str, list[str]] = {}
        self.items: dict[str, list[Item]] = {}
        self.files: list[DataFile] = []
        self._held: tuple[list[list[str | None]], str] | None = None
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
            if self.trainer.is_global_zero:
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
        if drawn and self._held is None:
            self._held = hold_back(whole, run_seed(), self.hold_back)
        sides = self._held[0] if drawn else [[split] * len(rows) for rows in whole]
        files = zip(paths, whole, source_names(paths, whole), sides, strict=True)
        parts = [self._part(split, *file) for file in files]
        used = [part for part in parts if part.rows]
        if not used:
            raise UserError(
                f"--data.dev {self.hold_back}: no row is left for {split}, since whole groups of "
                f"{', '.join(paths)} are held back; give another share or a file as --data.dev"
            )
        self.files += [describe_data(split, part.path, len(part.rows)) for part in used]
        self.parts[split] = parts
        self.records[split] = [row for part in parts for row in part.rows]
        self.sources[split] = [name for part in parts for name in row_sources(part)]

    def _tell_nearness(self) -> None:
        train, dev = self.records["train"], self.records["dev"]
        if self.hold_back:
            print(f"--data.dev {self.hold_back}: {self._held[1]}")
        elif shared := shared_rows(dev, train):
            print(
                f"warning: {shared:,} of {len(dev):,} dev rows share a group, a text or a document "
                "with training; hold back a share (--data.dev 0.15) or take them out"
            )
        self.nearness = {
            name: summarize_nearness(
                *([getattr(row, name) for row in rows] for rows in (dev, train))
            )
            for name in text_fields(dev[0])
        }
        if self.nearness:
            print(f"dev's nearest training row (cosine): {format_nearness(self.nearness)}")

    def _part(
        self, split: str, path: str, rows: list[Record], source: str, sides: Sequence[str | None]
    ) -> Part:
        numbered = list(enumerate(rows, 1))
        if self.kinds is not None:
            numbered = [(n, row) for n, row in numbered if getattr(row, "kind", None) in self.kinds]
            if not numbered:
                there = ", ".join(sorted({str(getattr(row, "kind", None)) for row in rows}))
                raise UserError(
                    f"{path}: no text of kind {', '.join(self.kinds)}; the file has: {there}; "
                    "change --data.kinds"
                )
        numbered = [(n, row) for n, row in numbered if sides[n - 1] == split]
        if split == "dev" and self.dev_rows and len(numbered) > self.dev_rows:
            generator = np.random.default_rng(run_seed())
            drawn = generator.choice(len(numbered), self.dev_rows, replace=False)
            numbered = [numbered[index] for index in sorted(drawn)]
        weight = self.weights[path] if split == "train" else 1.0
        return Part(path, weight, [row for _, row in numbered], [n for n, _ in numbered], source)

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
        world = self.trainer.global_rank, self.trainer.world_size
        return TrainBatches(self.module, items, self.batch_size, mixture, *world)

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
