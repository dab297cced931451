"""Resuming: a killed run that is started again ends in the same weights as an unbroken one.

Three things make it so: the order of batches is a function of seed and epoch (``train/data.py``),
the randomness of a step is a function of seed and step, and ``last.ckpt`` is never written between
a step and the validation that belongs to it, which Lightning would then leave out.
"""

import csv
import io
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from train.data import run_seed

LAST, BEST = "last.ckpt", "best.ckpt"


def is_first() -> bool:
    """Whether this is the process that writes, before there is a trainer that would know it.

    A launcher says so in the environment; Lightning's own, on the first process of another machine,
    only by ``NODE_RANK``.
    """
    return rank_zero_only.rank == 0 and os.environ.get("NODE_RANK", "0") == "0"


class WholeFiles(TorchCheckpointIO):
    """Checkpoints that are the old one or the new one, whatever happens while they are written.

    Lightning's own are written into the system's temporary folder, which may be small, and copied
    from there: a full disk, or a kill, then leaves neither.
    """

    def save_checkpoint(
        self, checkpoint: Mapping, path: str | Path, storage_options: object = None
    ) -> None:
        """Write a checkpoint beside its place and rename it."""
        whole = io.BytesIO()  # torch.save turns what a disk refuses into another error
        torch.save(checkpoint, whole)
        with atomic_bytes(path) as file:
            file.write(whole.getbuffer())


class Patience(EarlyStopping):
    """Early stopping by the patience that is given now; Lightning's own takes the checkpoint's."""

    @property
    def state_key(self) -> str:
        """The name that checkpoints know it by, which is Lightning's own."""
        return super().state_key.replace(type(self).__qualname__, EarlyStopping.__qualname__, 1)

    def load_state_dict(self, state_dict: dict) -> None:
        """Take what was counted so far, but not the patience."""
        super().load_state_dict(state_dict | {"patience": self.patience})

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End at once where patience was over already: the run was killed before its export."""
        trainer.should_stop = trainer.should_stop or self.wait_count >= self.patience


class Best(ModelCheckpoint):
    """Keeps the best weights, also of a run that goes on in another folder, or whose folder moved.

    Lightning's own then forgets what was best so far, and a worse one takes its place.

    Args:
        given: the checkpoint that the run goes on from; the best weights so far are beside it.
        options: of Lightning's own.
    """

    def __init__(self, given: Path | None, **options: Any):
        super().__init__(**options)
        self._given = given

    @property
    def state_key(self) -> str:
        """The name that checkpoints know it by, which is Lightning's own."""
        own = type(self).__qualname__
        return super().state_key.replace(own, ModelCheckpoint.__qualname__, 1)

    def load_state_dict(self, state_dict: dict) -> None:
        """Take the best so far along, and its weights, if there was a validation."""
        known = state_dict["best_model_path"]
        super().load_state_dict(state_dict | (self._taken(state_dict) if known else {}))

    def _taken(self, state: dict) -> dict:
        there, here = self._given.with_name(BEST), Path(self.dirpath) / BEST
        if not there.is_file():
            print(f"{there}: not there; the best weights are sought from here on", file=sys.stderr)
            if is_first():
                here.unlink(missing_ok=True)  # of another run
            return {"dirpath": None, "best_model_path": ""}
        if is_first() and there.resolve() != here.resolve():
            with open(there, "rb") as source, atomic_bytes(here) as target:
                shutil.copyfileobj(source, target)
        path = str(here)
        scores = {path: state["best_model_score"]}
        paths = dict.fromkeys(("best_model_path", "kth_best_model_path"), path)
        return {"dirpath": self.dirpath, "best_k_models": scores, **paths}


class LastValidation(Callback):
    """Validates after the last step too, wherever the interval stands: it may be the best one."""

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: object, batch: dict, idx: int
    ) -> None:
        """Ask Lightning to stop here, where it would in any case; it then validates first."""
        steps = 0 <= trainer.max_steps <= trainer.global_step
        epochs = 0 <= (trainer.max_epochs or -1) <= trainer.current_epoch + 1
        if steps or (epochs and trainer.is_last_batch):
            trainer.should_stop = True


@dataclass(eq=False)
class Resume(Checkpoint):
    """Writes ``last.ckpt`` and makes each step's randomness its own.

    Args:
        folder: the run's folder.
        every_n_steps: steps between two ``last.ckpt``; one is also written after each validation.
        fingerprint: identifies configuration and data; ``--ckpt_path last`` only resumes its own.
        fresh: nothing is resumed; what an earlier run of the same name left is removed.
    """

    folder: Path
    every_n_steps: int
    fingerprint: str
    fresh: bool
    _gradients_left = False

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        for torn in self.folder.rglob(".*.ckpt.*"):  # a process was killed while it wrote them
            torn.unlink()
        for name in (LAST, BEST) if self.fresh else ():
            (self.folder / name).unlink(missing_ok=True)

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: dict, batch_idx: int
    ) -> None:
        batches = trainer.current_epoch * trainer.num_training_batches + batch_idx
        own = (run_seed() << 40) + batches * trainer.world_size + trainer.global_rank
        torch.manual_seed(own % 2**64)  # a seed may have 32 bits, and the generator takes 64

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: object, batch: dict, idx: int
    ) -> None:
        # Accumulated gradients are not in a checkpoint: save only where there are none. An epoch's
        # last batch is a step, however many are before it.
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
        checkpoint["fingerprint"] = self.fingerprint

    def _save(self, trainer: Trainer) -> None:
        trainer.save_checkpoint(self.folder / LAST, weights_only=False)


def _validation_follows(trainer: Trainer, batch_idx: int) -> bool:
    every = trainer.check_val_every_n_epoch
    if every is not None and (trainer.current_epoch + 1) % every:
        return False
    if trainer.val_check_batch is None or not trainer.enable_validation:
        return False
    if trainer.should_stop:
        return True
    done = batch_idx if every is not None else trainer.fit_loop.total_batch_idx
    return (done + 1) % trainer.val_check_batch == 0


@dataclass(eq=False)
class KeepSteps(Callback):
    """Writes ``STEP.ckpt``, weights alone, for several steps; ``Export`` makes folders of them.

    A series of one adversary over its training (``eval experiment optimise``) needs the component
    as it was at each step. It stands before ``Resume``, so that ``last.ckpt`` of a step is never
    there without its weights.

    Args:
        folder: where they go.
        steps: those to keep, ascending; 0 is the start.
        fresh: nothing is resumed; what an earlier run of the same name left is removed.
    """

    folder: Path
    steps: Sequence[int]
    fresh: bool
    _last: int | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse steps that training does not reach."""
        most = trainer.max_steps
        if 0 <= most < max(self.steps, default=0):
            raise UserError(
                f"--export_steps {self.steps[-1]}: training has {most}; give steps up to that, or "
                "a larger --trainer.max_steps"
            )

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.fresh and trainer.is_global_zero:
            for path in self.folder.glob("*.ckpt"):
                path.unlink()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep the start, or the step that training goes on from."""
        here = trainer.global_step
        passed = [s for s in self.steps if s < here and not self.path(s).is_file()]
        if passed:
            raise UserError(
                f"--export_steps {passed[0]}: the run is at step {here} and did not keep that one; "
                "start anew, without --ckpt_path"
            )
        self.keep(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: object, batch: dict, idx: int
    ) -> None:
        self.keep(trainer)

    def keep(self, trainer: Trainer) -> None:
        """Write the weights if this step is one of those to keep and has not been written."""
        step = trainer.global_step
        if step in self.steps and step != self._last:
            trainer.save_checkpoint(self.path(step), weights_only=True)
            self._last = step

    def path(self, step: int) -> Path:
        """Where a step's weights are."""
        return self.folder / f"{step}.ckpt"

    def kept(self) -> dict[int, Path]:
        """The steps that training came to, each with its weights."""
        return {step: self.path(step) for step in self.steps if self.path(step).is_file()}


def read_state(path: Path) -> dict:
    """Step and fingerprint of a Lightning checkpoint, without reading its weights.

    ``whole`` is whether training can go on from it: it holds more than weights.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        return {
            "step": state["global_step"],
            "fingerprint": state.get("fingerprint"),
            "whole": "optimizer_states" in state,
        }
    except (RuntimeError, UnpicklingError, EOFError, LookupError, TypeError):
        raise UserError(
            f"--ckpt_path {path}: no checkpoint of a fit; give a .ckpt file that `fit` wrote"
        ) from None


def curves_logger(runs: Path, name: str, step: int) -> CSVLogger:
    """``metrics.csv`` in the run's folder; a resumed run keeps the rows before ``step``."""
    path = runs / name / "metrics.csv"
    rows = []
    if path.is_file():
        with open(path, encoding="utf-8", newline="") as file:
            whole = [line for line in file if line.endswith("\n")]  # a full disk tears the last one
        rows = [row for row in csv.DictReader(whole) if int(row["step"]) < step]
    logger = CSVLogger(runs, name=name, version="", flush_logs_every_n_steps=1)
    for row in rows:
        # "3" was an integer and "3.0" a float, and so they are written again.
        values = {k: int(v) if v.isdigit() else float(v) for k, v in row.items() if v}
        logger.experiment.log_metrics(values, step=values.pop("step"))
    if rows:
        logger.save()  # all at once: the logger took the file away, and a kill must not be between
    return logger
