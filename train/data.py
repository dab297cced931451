"""The data module: splits of data files and their batches.

The batch order depends on seed and epoch only, and step k covers the same rows with one process or
several. Resume and DDP rely on this. Records are encoded by the ``Encoder`` of the module.
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
from components.ties import keys_of, tied_records
from records import UserError, read_records, write_jsonl
from records.types import Record
from train.certificate import read_probes
from train.checks import BadRow, check_labels
from train.encoder import Encoder, Item, Split

Train = dict[str, float] | list[str] | str
Dev = float | list[str] | str

# Item indices and weight of each file.
Mixture = Sequence[tuple[Sequence[int], float]]

# Largest weight of a file: the order of an epoch is held in memory.
_MAX_WEIGHT = 1_000_000
# Items are batched by length within windows of a quarter of the epoch, between these bounds (in
# batches). Wider windows pad less but repeat the same batches in every epoch.
_MIN_WINDOW, _MAX_WINDOW = 50, 200


def run_seed() -> int:
    """The seed set by ``seed_everything``."""
    return int(os.environ.get("PL_GLOBAL_SEED", 0))


@dataclass(frozen=True)
class Part:
    """The rows of a split from one file, with their 1-based ``numbers`` in the file."""

    path: str
    weight: float
    rows: list[Record]
    numbers: list[int]
    source: str


def _weights_of(train: Train) -> dict[str, float]:
    if not isinstance(train, Mapping):
        paths = [train] if isinstance(train, str) else list(train)
        if len(set(paths)) < len(paths):
            raise UserError("--data.train: duplicate file; use a weight instead, e.g. {FILE: 2}")
        train = dict.fromkeys(paths, 1.0)
    for path, weight in train.items():
        if not 0 < weight <= _MAX_WEIGHT:  # also rejects NaN
            valid = f"a number in (0, {_MAX_WEIGHT:,}]"
            raise UserError(f"--data.train: weight of {path}: expected {valid}, got {weight}")
    return {path: float(weight) for path, weight in train.items()}


def hold_back(
    files: Sequence[Sequence[Record]], seed: int, share: float
) -> tuple[list[list[str | None]], str]:
    """Hold back connected components of rows that share a key, across all files.

    Args:
        files: the records of each file.
        seed: seed of the random split.
        share: expected share of components to hold back.

    Returns:
        The split of each row of each file (``train``, ``dev``, or ``None`` for an excluded row that
        shares a key with a held-back row), and a summary.
    """
    tied = tied_records(files, min(share, 1 - share))
    dev_sets = {name: is_in_dev(name, seed, share) for name in set(tied.names)}
    dev = [dev_sets[name] for name in tied.names]
    excluded = tied.crossing(dev).tolist()
    summary = (
        f"held back {sum(dev):,} of {len(dev):,} rows; rows that share a group, text or document "
        f"stay together ({len(dev_sets):,} sets)"
    )
    if sum(excluded):
        summary += f"; excluded {sum(excluded):,} rows that share one with dev"
    if tied.common:
        summary += f"; ignored {tied.common:,} lines or documents shared by too many rows"
    pairs = zip(dev, excluded, strict=True)
    sides = iter("dev" if is_dev else None if skip else "train" for is_dev, skip in pairs)
    return [[next(sides) for _ in rows] for rows in files], summary


def _working_share(files: Sequence[Sequence[Record]]) -> str:
    for share in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        sides, _ = hold_back(files, run_seed(), share)
        if {"train", "dev"} <= {side for row in sides for side in row}:
            return f"--data.dev {share}, or a file"
    return "a file (no share divides these rows)"


def is_in_dev(name: str, seed: int, share: float) -> bool:
    """Whether a component is dev, by a hash of seed and name, independent of other components."""
    digest = hashlib.sha256(f"{seed}\n{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def shared_rows(dev: Sequence[Record], train: Sequence[Record]) -> int:
    """Number of dev rows that share a group, text, document or long line with training."""
    train_keys = set(chain.from_iterable(map(keys_of, train)))
    return sum(not train_keys.isdisjoint(keys_of(record)) for record in dev)


def source_names(paths: Sequence[str], rows: Sequence[Sequence[Record]]) -> list[str]:
    """One unique name per file: the ``source`` common to all its rows, else its stem.

    If a file has several sources, :func:`row_sources` uses the source of each row.
    """
    stems = [_safe_name(Path(path).stem) for path in paths]
    folders = [_safe_name(f"{Path(p).parent.name}_{Path(p).stem}") for p in paths]
    names = []
    for stem, records in zip(stems, rows, strict=True):
        declared = {getattr(record, "source", None) for record in records}
        shared_name = declared.pop() if len(declared) == 1 else None
        names.append(_safe_name(shared_name or stem))
    numbered = [f"{name}_{number}" for number, name in enumerate(names, 1)]
    for replacements in (stems, folders, numbered):
        counts = Counter(names)
        names = [b if counts[a] > 1 else a for a, b in zip(names, replacements, strict=True)]
    return names


def row_sources(part: Part) -> list[str]:
    """The source of each row: its ``source`` if the file has several, else the file's name."""
    declared = [getattr(row, "source", None) for row in part.rows]
    if len(set(declared)) < 2:
        return [part.source] * len(declared)
    return [_safe_name(name) if name else part.source for name in declared]


def _safe_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)


def items_per_epoch(size: int, weight: float) -> int:
    """Number of items of a file per epoch: ``weight`` times its size, rounded."""
    return int(weight) * size + round((weight - int(weight)) * size)


def epoch_order(
    mixture: Mixture, seed: int, epoch: int, generator: np.random.Generator
) -> np.ndarray:
    """The items of one epoch of a mixture, shuffled and evenly mixed.

    A weight of 2.5 means two and a half passes over the file. The partial pass, determined by
    ``seed`` and ``epoch``, advances with every epoch, so two epochs at 0.5 cover the file once.
    Passes are sequential, so an item and its repetition are far apart.

    Returns:
        Indices of items, shape (items per epoch,).
    """
    orders, places = [], []
    for number, (indices, weight) in enumerate(mixture):
        passes = [generator.permutation(len(indices)) for _ in range(int(weight))]
        remainder = items_per_epoch(len(indices), weight) - int(weight) * len(indices)
        if remainder:
            fixed = np.random.default_rng([seed, number, 1]).permutation(len(indices))
            window = (epoch * remainder + np.arange(remainder)) % len(indices)
            passes.append(generator.permutation(fixed[window]))
        if passes:
            order = np.concatenate(passes)
            orders.append(np.asarray(indices)[order])
            places.append((np.arange(len(order)) + 0.5) / len(order))
    return np.concatenate(orders)[np.argsort(np.concatenate(places), kind="stable")]


@dataclass(eq=False)
class TrainBatches:
    """Shuffled batches of similar length, whose order depends on seed and epoch only.

    Lightning calls ``set_epoch`` through ``sampler`` and stores ``state_dict`` in checkpoints, so
    that a run resumed within an epoch continues with the next batch.

    Every batch of ``batch_size * world`` items is distributed over the processes. If the last batch
    is too small, a process without items gets one item with ``counted`` false.
    """

    encoder: Encoder
    items: Sequence[Item]
    batch_size: int
    mixture: Mixture
    rank: int = 0
    world: int = 1

    def __post_init__(self):
        self.epoch, self.done = 0, 0
        self._resume: dict[str, int] | None = None
        self.sampler = self  # Lightning calls ``sampler.set_epoch``

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration."""
        self.epoch = epoch

    def plan(self, epoch: int) -> list[list[int]]:
        """All batches of an epoch as item indices; each batch covers all processes."""
        generator = np.random.default_rng([run_seed(), epoch])
        order = epoch_order(self.mixture, run_seed(), epoch, generator)
        global_size = self.batch_size * self.world
        size = max(_MIN_WINDOW, min(_MAX_WINDOW, len(self) // 4)) * global_size
        batches: list[list[int]] = []
        for start in range(0, len(order), size):
            window = order[start : start + size].tolist()
            lengths = [self.items[index].length for index in window]
            for batch in batches_by_length(lengths, global_size):
                batches.append([window[position] for position in batch])
        return [batches[index] for index in generator.permutation(len(batches))]

    def __len__(self) -> int:
        # A window is a multiple of the batch size, so the order does not matter.
        total = sum(items_per_epoch(len(indices), weight) for indices, weight in self.mixture)
        return -(-total // (self.batch_size * self.world))

    def __iter__(self) -> Iterator[dict]:
        resume, self._resume = self._resume, None
        start = resume["done"] if resume and resume["epoch"] == self.epoch else 0
        for number, batch in enumerate(self.plan(self.epoch)):
            if number >= start:
                self.done = number + 1
                share = batch[self.rank :: self.world]
                indices = share or batch[:1]
                collated = self.encoder.collate([self.items[index] for index in indices], indices)
                yield {**collated, "counted": bool(share)}

    def state_dict(self) -> dict[str, int]:
        """The epoch and the number of batches yielded."""
        return {"epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Skip the batches counted in ``state`` in the next iteration."""
        self._resume = dict(state)


class FixedBatches:
    """Fixed evaluation batches, longest first.

    Each process takes every ``world``-th batch. A sharded model requires equally many batches per
    process, so the first batches are repeated at the end if needed, with the same outputs.
    """

    def __init__(
        self,
        encoder: Encoder,
        items: Sequence[Item],
        batch_size: int,
        rank: int = 0,
        world: int = 1,
    ):
        self.encoder, self.items = encoder, items
        all_batches = list(batches_by_length([item.length for item in items], batch_size))
        steps = -(-len(all_batches) // world)
        numbers = ((step * world + rank) % len(all_batches) for step in range(steps))
        self.batches = [all_batches[number] for number in numbers]

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[dict]:
        for batch in self.batches:
            yield self.encoder.collate([self.items[index] for index in batch], batch)


class RecordData(LightningDataModule):
    """Reads the splits of the module's record type.

    Args:
        train: training data (JSONL, CSV, TSV or Parquet): a file, a list of files, or
            ``{file: weight}``; a weight is the number of passes over the file per epoch (0.5: every
            second epoch).
        dev: file or files for selecting the best weights and for calibration. A number in (0, 1)
            holds back this share of the train rows; rows that share a group (article, name),
            premise, reference, topic, prompt, document or long line stay in one split. The rows
            that are held back are written to ``held_out.jsonl`` in the folder of the run.
        dev_rows: evaluate only this many seeded random rows per dev file; null: all.
        kinds: use only texts of these kinds, e.g. ``[uninformative]``; null: all.
        batch_size: rows (pairs, claims, texts) per training batch and device; null: the module's
            default, e.g. 32 for pairs.
        eval_batch_size: rows per evaluation batch and device; null: the module's default.
        labels: the meaning of numbers as relation labels in files that do not state it, e.g.
            ``{0: contradiction, 1: entailment, 2: neutral}``.
        format: name of a shipped format, or a YAML file that declares the files' columns
            (docs/records.md).
        fields: names of the fields in files of another shape, e.g. ``{premise: context, hypothesis:
            answer}``.
        probes: statements with known truth (``data_builders probes``); the card of a relation model
            says which of them it accepts.

    Attributes:
        paths: the files of each split; dev has those of train if it is held back from them.
        parts: the parts of each split, one per file.
        files: name, SHA-256 and number of rows of each file and split.
    """

    def __init__(
        self,
        train: Train,
        dev: Dev,
        dev_rows: PositiveInt | None = None,
        kinds: list[str] | None = None,
        batch_size: PositiveInt | None = None,
        eval_batch_size: PositiveInt | None = None,
        labels: dict[int, str] | None = None,
        format: str | None = None,
        fields: dict[str, str] | None = None,
        probes: str | None = None,
    ):
        super().__init__()
        self.save_hyperparameters()
        self.dev_rows, self.kinds, self.labels = dev_rows, kinds, labels
        self.format, self.fields, self.probes = format, fields, probes
        self.weights = _weights_of(train)
        self.hold_back = float(dev) if isinstance(dev, (int, float)) else None
        if self.hold_back is not None and not 0 < self.hold_back < 1:
            raise UserError(f"--data.dev: expected files or a number in (0, 1), got {dev}")
        dev_paths = self.weights if self.hold_back else dev
        self.paths = {
            split: [paths] if isinstance(paths, str) else list(paths or [])
            for split, paths in (("train", self.weights), ("dev", dev_paths))
        }
        self.batch_size, self.eval_batch_size = batch_size, eval_batch_size
        self.parts: dict[str, list[Part]] = {}
        self.files: list[DataFile] = []
        self._sides: tuple[list[list[str | None]], str] | None = None
        self._train_files: list[list[Record]] = []

    @property
    def encoder(self) -> Encoder:
        return self.trainer.lightning_module.encoder

    def setup(self, stage: str) -> None:
        self.batch_size = self.batch_size or self.encoder.batch_size
        self.eval_batch_size = self.eval_batch_size or self.encoder.eval_batch_size
        missing = [split for split in ("train", "dev") if split not in self.encoder.splits]
        for split in missing:
            self._read(split)
        if "train" in missing:
            check_labels(self.encoder.splits["train"].records, self.paths["train"])
            if self.trainer.is_global_zero:
                self._report_shared()
        if self.probes is not None and "probes" not in self.encoder.splits:
            self.encoder.splits["probes"] = read_probes(self.probes, self.encoder)
            missing.append("probes")
        for split in missing:
            rows = self.encoder.splits[split]
            try:
                rows.items.extend(self.encoder.encode(rows.records, split == "train"))
            except BadRow as error:
                raise UserError(f"{rows.places[error.row]}: {error}") from None

    def _read(self, split: str) -> None:
        paths = self.paths[split]
        if not paths:
            raise UserError(f"no {split} data: set --data.{split} PATH")
        # A fit reads the files only once for train and dev.
        file_rows = (self.hold_back and self._train_files) or [
            self._read_file(path) for path in paths
        ]
        self._train_files = file_rows if self.hold_back and split == "train" else []
        if self.hold_back and self._sides is None:
            self._sides = hold_back(file_rows, run_seed(), self.hold_back)
        sides = self._sides[0] if self.hold_back else [[split] * len(rows) for rows in file_rows]
        arguments = zip(paths, file_rows, source_names(paths, file_rows), sides, strict=True)
        parts = [self._part(split, *file) for file in arguments]
        used = [part for part in parts if part.rows]
        if not used:
            raise UserError(
                f"--data.dev {self.hold_back}: no row of {', '.join(paths)} left for {split}; rows "
                "that share a group, text or document stay together, so that dev has nothing that "
                f"was trained on; set {_working_share(file_rows)}"
            )
        self.files += [describe_data(split, part.path, len(part.rows)) for part in used]
        self.parts[split] = parts
        self.encoder.splits[split] = Split(
            paths,
            records=[row for part in parts for row in part.rows],
            sources=[name for part in parts for name in row_sources(part)],
            places=[f"{part.path}:{number}" for part in parts for number in part.numbers],
        )

    def _read_file(self, path: str) -> list[Record]:
        skipped: Counter[str] = Counter()
        kind, options = self.encoder.record_type, {"labels": self.labels, "format": self.format}
        rows = read_records(path, kind, self.fields, skipped, **options)
        for reason, n in skipped.items():
            if self.trainer.is_global_zero:
                print(f"{path}: skipped {n:,} x {reason}")
        return rows

    def _report_shared(self) -> None:
        train, dev = (self.encoder.splits[split].records for split in ("train", "dev"))
        if self.hold_back:
            path = Path(self.trainer.default_root_dir) / "held_out.jsonl"
            write_jsonl(path, dev)
            print(f"--data.dev {self.hold_back}: {self._sides[1]}; dev rows: {path}")
        elif shared := shared_rows(dev, train):
            print(
                f"warning: {shared:,} of {len(dev):,} dev rows share a group, text or document "
                "with training; remove them or hold back a share (--data.dev 0.15)"
            )

    def _part(
        self, split: str, path: str, rows: list[Record], source: str, sides: Sequence[str | None]
    ) -> Part:
        numbered = list(enumerate(rows, 1))
        if self.kinds is not None:
            numbered = [(n, row) for n, row in numbered if getattr(row, "kind", None) in self.kinds]
            if not numbered:
                kinds = ", ".join(sorted({str(getattr(row, "kind", None)) for row in rows}))
                raise UserError(
                    f"{path}: expected texts of kind {', '.join(self.kinds)}, got {kinds}; "
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
        """The options other than files that determine the dev batches, for component.json."""
        options = {"dev": self.hold_back, "dev_rows": self.dev_rows, "kinds": self.kinds}
        options["eval_batch_size"] = self.eval_batch_size
        return {name: value for name, value in options.items() if value is not None}

    def train_dataloader(self) -> TrainBatches:
        items, start, mixture = self.encoder.splits["train"].items, 0, []
        if not any(item.weight for item in items):
            paths = ", ".join(self.paths["train"])
            raise UserError(f"{paths}: field 'weight': is 0 in all rows; set some weights above 0")
        rows = np.asarray([item.row for item in items])
        for part in self.parts["train"]:
            end = start + len(part.rows)
            indices = np.flatnonzero((rows >= start) & (rows < end))
            if len(indices) and not items_per_epoch(len(indices), part.weight):
                raise UserError(
                    f"--data.train: weight {part.weight} of {part.path} ({len(indices)} rows) "
                    "gives 0 rows per epoch; raise it or remove the file"
                )
            mixture.append((indices, part.weight))
            start = end
        world = self.trainer.global_rank, self.trainer.world_size
        return TrainBatches(self.encoder, items, self.batch_size, mixture, *world)

    def batches(self, split: str, rank: int = 0, world: int = 1) -> FixedBatches:
        """The evaluation batches of a split for one process."""
        return FixedBatches(
            self.encoder, self.encoder.splits[split].items, self.eval_batch_size, rank, world
        )

    def val_dataloader(self) -> FixedBatches:
        return self.batches("dev", self.trainer.global_rank, self.trainer.world_size)
