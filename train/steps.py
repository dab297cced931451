"""Weights of several steps of one training, kept while it runs and exported when it ends.

A series of one adversary over its training (``eval experiment optimise``) needs the component as it
was at each step. Where training is killed the steps that it had passed are there, and it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from records import UserError


class KeepSteps(Callback):
    """Writes ``steps/STEP.ckpt``, weights alone, into the run's folder.

    It stands before ``Resume``, so that ``last.ckpt`` of a step is never there without its weights.

    Args:
        folder: the run's folder.
        steps: those to keep; 0 is the start.
        fresh: nothing is resumed; what an earlier run of the same name left is removed.
    """

    def __init__(self, folder: Path, steps: Sequence[int], fresh: bool):
        if any(step < 0 for step in steps):
            raise UserError(f"--export_steps {min(steps)}: give steps from 0, the start, on")
        self.folder, self.steps, self.fresh = folder / "steps", sorted({*steps}), fresh
        self._last: int | None = None

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
        """Write the weights, if this step is one of those to keep and has not been written."""
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
