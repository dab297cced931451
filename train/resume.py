"""Resuming: an interrupted and resumed run ends with the same weights as an uninterrupted run.

The batch order depends on seed and epoch only (``train/data.py``), and the random state of a step
on seed and step only. ``last.ckpt`` is never written between a step and its validation, because
Lightning would skip that validation when it resumes.
"""

import csv
import io
import os
import shutil
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from lightning import LightningModule, Trainer
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch.callbacks import Callback, Checkpoint, EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.plugins.io import TorchCheckpointIO

from records import UserError
from records.writing import atomic_bytes
from train.continuing import TrainingRun
from train.data import run_seed

LAST, BEST = "last.ckpt", "best.ckpt"
LEAST_VALIDATIONS = 5  # in a training of at least as many epochs


def is_first() -> bool:
    """Whether this is the global rank-0 process, before the trainer exists.

    On another node, Lightning's launcher sets only ``NODE_RANK`` for the local rank 0.
    """
    return rank_zero_only.rank == 0 and os.environ.get("NODE_RANK", "0") == "0"


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes checkpoints atomically, so that a kill or a full disk keeps the previous one.

    Lightning writes to the system's temporary folder and copies, which is not atomic.
    """

    def save_checkpoint(
        self, checkpoint: Mapping, path: str | Path, storage_options: object = None
    ) -> None:
        buffer = io.BytesIO()  # torch.save would hide the OSError of a full disk
        torch.save(checkpoint, buffer)
        with atomic_bytes(path) as file:
            file.write(buffer.getbuffer())


class Patience(EarlyStopping):
    """Early stopping with the configured patience, not the one stored in the checkpoint."""

    def load_state_dict(self, state_dict: dict) -> None:
        """Restore the state except the patience."""
        super().load_state_dict(state_dict | {"patience": self.patience})

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop at once if the run was killed between early stopping and export."""
        trainer.should_stop = trainer.should_stop or self.wait_count >= self.patience


class Best(ModelCheckpoint):
    """Keeps the best weights, also if a run resumes in another folder.

    Lightning would forget the best score and overwrite the best weights with worse ones. The best
    weights of ``resumed_from`` are in the same folder.
    """

    def __init__(self, resumed_from: Path | None, **options: Any):
        super().__init__(**options)
        self._resumed_from = resumed_from

    def load_state_dict(self, state_dict: dict) -> None:
        """Restore the best score and weights, if any validation took place."""
        has_best = state_dict["best_model_path"]
        super().load_state_dict(state_dict | (self._copy_best(state_dict) if has_best else {}))

    def _copy_best(self, state: dict) -> dict:
        old_path, new_path = self._resumed_from.with_name(BEST), Path(self.dirpath) / BEST
        if not old_path.is_file():
            print(f"{old_path}: not found; tracking the best weights from here", file=sys.stderr)
            if is_first():
                new_path.unlink(missing_ok=True)  # from another run
            return {"dirpath": None, "best_model_path": ""}
        if is_first() and old_path.resolve() != new_path.resolve():
            with open(old_path, "rb") as source, atomic_bytes(new_path) as target:
                shutil.copyfileobj(source, target)
        path = str(new_path)
        scores = {path: state["best_model_score"]}
        paths = dict.fromkeys(("best_model_path", "kth_best_model_path"), path)
        return {"dirpath": self.dirpath, "best_k_models": scores, **paths}


class Validations(Callback):
    """Validates after the last step too, and often enough if few rows are read many times."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Shorten the interval of a training of several epochs."""
        batches = int(trainer.estimated_stepping_batches) * trainer.accumulate_grad_batches
        has_interval = trainer.val_check_batch is not None
        if has_interval and batches >= LEAST_VALIDATIONS * trainer.num_training_batches:
            interval = batches // LEAST_VALIDATIONS
            if interval < trainer.val_check_batch * (trainer.check_val_every_n_epoch or 1):
                trainer.check_val_every_n_epoch, trainer.val_check_batch = None, interval
                print(f"several epochs: validates every {interval} batches")

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: object, batch: dict, idx: int
    ) -> None:
        """Set ``should_stop`` at the last step, which makes Lightning validate first."""
        is_last_step = 0 <= trainer.max_steps <= trainer.global_step
        is_last_epoch = 0 <= (trainer.max_epochs or -1) <= trainer.current_epoch + 1
        if is_last_step or (is_last_epoch and trainer.is_last_batch):
            trainer.should_stop = True


@dataclass(eq=False)
class Resume(Checkpoint):
    """Saves ``last.ckpt`` every ``every_n_steps`` and after each validation, and seeds each step.

    Checkpoints hold ``run``. If ``fresh``, those of an earlier run are removed.
    """

    folder: Path
    every_n_steps: int
    run: TrainingRun
    fresh: bool
    _gradients_left = False

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        stale = list(self.folder.rglob(".*.ckpt.*"))  # from a killed process
        if self.fresh:
            stale += [self.folder / LAST, self.folder / BEST, *self.folder.glob("steps/*.ckpt")]
        for path in stale:
            path.unlink(missing_ok=True)

    def on_load_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict
    ) -> None:
        """Count the rows of this epoch in batches of this run, a multiple of those per step."""
        rows = _rows_per_batch(trainer)
        loop = checkpoint["loops"]["fit_loop"]
        progress = loop["epoch_loop.batch_progress"]
        batches = progress["current"]["ready"]
        done = batches * checkpoint.get("rows_per_batch", rows) // rows
        surplus = batches - done + done % trainer.accumulate_grad_batches
        if surplus and not progress["is_last_batch"]:
            progress["current"] = {n: count - surplus for n, count in progress["current"].items()}
            for loader in loop["state_dict"]["combined_loader"]:
                loader["done"] -= surplus
        checkpoint["lr_schedulers"] = []  # see on_train_start

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Advance the schedule of this run, which may be longer than that of the checkpoint."""
        scheduler = trainer.lr_scheduler_configs[0].scheduler
        for group, rate in zip(
            trainer.optimizers[0].param_groups, scheduler.get_last_lr(), strict=True
        ):
            group["lr"] = rate
        with warnings.catch_warnings(action="ignore"):  # a step without one of the optimizer
            for _ in range(trainer.global_step):
                scheduler.step()

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: dict, batch_idx: int
    ) -> None:
        batches = trainer.current_epoch * trainer.num_training_batches + batch_idx
        seed = (run_seed() << 40) + batches * trainer.world_size + trainer.global_rank
        torch.manual_seed(seed % 2**64)  # the generator takes 64 bits

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: object, batch: dict, idx: int
    ) -> None:
        # Checkpoints do not hold accumulated gradients, so save only after an optimizer step. The
        # last batch of an epoch always ends with one.
        between = (idx + 1) % trainer.accumulate_grad_batches != 0
        self._gradients_left = between and not trainer.is_last_batch
        due = trainer.global_step % self.every_n_steps == 0
        if due and not self._gradients_left and not _validation_follows(trainer, idx):
            self._save(trainer)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.state.fn == "fit" and not (trainer.sanity_checking or self._gradients_left):
            self._save(trainer)

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict
    ) -> None:
        checkpoint |= {"run": asdict(self.run), "rows_per_batch": _rows_per_batch(trainer)}

    def _save(self, trainer: Trainer) -> None:
        trainer.save_checkpoint(self.folder / LAST, weights_only=False)


def _rows_per_batch(trainer: Trainer) -> int:
    return (getattr(trainer.datamodule, "batch_size", None) or 1) * trainer.world_size


def _validation_follows(trainer: Trainer, batch_idx: int) -> bool:
    epoch_interval = trainer.check_val_every_n_epoch
    if epoch_interval is not None and (trainer.current_epoch + 1) % epoch_interval:
        return False
    if trainer.val_check_batch is None or not trainer.enable_validation:
        return False
    if trainer.should_stop:
        return True
    previous_batches = batch_idx if epoch_interval is not None else trainer.fit_loop.total_batch_idx
    return (previous_batches + 1) % trainer.val_check_batch == 0


@dataclass(eq=False)
class KeepSteps(Callback):
    """Writes ``STEP.ckpt`` (weights only) for the given steps; ``Export`` converts them to folders.

    ``eval experiment optimise`` compares these steps of one adversary. This callback must precede
    ``Resume``, so that ``last.ckpt`` of a step never exists without that step's weights. Step 0 is
    the initial weights.
    """

    folder: Path
    steps: Sequence[int]
    _last: int | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Raise an error for steps beyond the end of training."""
        max_steps = trainer.max_steps
        if 0 <= max_steps < max(self.steps, default=0):
            raise UserError(
                f"--export_steps {self.steps[-1]}: training ends at step {max_steps}; lower it or "
                "raise --trainer.max_steps"
            )

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save the first step, initial or resumed."""
        current_step = trainer.global_step
        earlier = [step for step in self.steps if step < current_step]
        missing = [step for step in earlier if not self.path(step).is_file()]
        if missing:
            raise UserError(
                f"--export_steps {missing[0]}: the run is at step {current_step} and did not save "
                "that step; restart without --ckpt_path"
            )
        self.keep(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: object, batch: dict, idx: int
    ) -> None:
        self.keep(trainer)

    def keep(self, trainer: Trainer) -> None:
        """Save the weights if this step is configured and not saved yet."""
        step = trainer.global_step
        if step in self.steps and step != self._last:
            trainer.save_checkpoint(self.path(step), weights_only=True)
            self._last = step

    def path(self, step: int) -> Path:
        """The checkpoint file of a step."""
        return self.folder / f"{step}.ckpt"

    def kept(self) -> dict[int, Path]:
        """The saved steps and their checkpoint files."""
        return {step: self.path(step) for step in self.steps if self.path(step).is_file()}


def read_state(path: Path) -> tuple[int, TrainingRun]:
    """Step and run of a Lightning checkpoint, read without loading its weights."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        step, run = state["global_step"], TrainingRun(**state.get("run", {}))
    except (FileNotFoundError, RuntimeError, UnpicklingError, EOFError, LookupError, TypeError):
        raise UserError(
            f"--ckpt_path {path}: not a training checkpoint; pass a .ckpt file of `fit`, or `last`"
        ) from None
    if "optimizer_states" not in state:
        raise UserError(f"--ckpt_path {path}: weights only; to resume, pass its {LAST}")
    return step, run


def curves_logger(runs: Path, name: str, step: int) -> CSVLogger:
    """Logger of ``metrics.csv`` in the run's folder; keeps the rows before ``step``."""
    path = runs / name / "metrics.csv"
    rows = []
    if path.is_file():
        with open(path, encoding="utf-8", newline="") as file:
            complete_lines = [
                line for line in file if line.endswith("\n")
            ]  # a full disk may truncate the last one
        rows = [row for row in csv.DictReader(complete_lines) if int(row["step"]) < step]
    logger = CSVLogger(runs, name=name, version="", flush_logs_every_n_steps=1)
    for row in rows:
        # Keep the types: "3" is an integer and "3.0" a float.
        values = {k: int(v) if v.isdigit() else float(v) for k, v in row.items() if v}
        logger.experiment.log_metrics(values, step=values.pop("step"))
    if rows:
        logger.save()  # at once, because the logger has deleted the file
    return logger
