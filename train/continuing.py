"""Which trainings continue a checkpoint, and which may replace it.

A run is known by the hash of the options and data files that it started with. Its checkpoints
continue with options that only change its length, batches, logging or the precision of its export,
and another run replaces them only with ``--overwrite``.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Self

from components.checkpoint import Component
from records import UserError, read_json, sha256_file, sha256_text

# Options that change the length of a run, its batches, its logging or the precision of its export.
_LENGTHENING = {
    "--trainer.max_steps", "--trainer.max_epochs", "--trainer.max_time",
    "--trainer.val_check_interval", "--trainer.check_val_every_n_epoch",
    "--trainer.accumulate_grad_batches", "--trainer.devices", "--trainer.num_nodes",
    "--trainer.accelerator", "--trainer.strategy", "--trainer.log_every_n_steps",
    "--trainer.logger", "--trainer.enable_progress_bar",
    "--trainer.enable_model_summary",
    "--data.batch_size", "--data.eval_batch_size", "--model.half",
    "--grpo.max_steps", "--grpo.save_steps", "--grpo.save_total_limit", "--grpo.logging_steps",
    "--grpo.report_to", "--grpo.per_device_train_batch_size",
    "--grpo.gradient_accumulation_steps",
}  # fmt: skip


@dataclass(frozen=True)
class TrainingRun:
    """A training run.

    Attributes:
        key: hash of the options and data files that it started with.
        options: the present options by name, and the hashes of the data files.
        started: the time of its first step, under which loggers find it.
    """

    key: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    started: str = field(
        default_factory=lambda: f"{datetime.now():%Y%m%d_%H%M%S_%f}", compare=False
    )

    @classmethod
    def start(cls, options: Mapping, paths: Iterable[str | Path]) -> Self:
        """A new run with these nested options and files of data and weights."""
        flat: dict[str, object] = {}
        for name, value in json.loads(json.dumps(options, default=_qualified_name)).items():
            if isinstance(value, dict):
                value |= value.pop("init_args", None) or {}
                flat |= {f"--{name}.{key}": part for key, part in value.items()}
            else:
                flat[f"--{name}"] = value
        flat |= {f"content of {path}": sha256_file(path) for path in paths if Path(path).is_file()}
        return cls(sha256_text(json.dumps(flat, sort_keys=True)), flat)

    def differences(self, stored: "TrainingRun") -> list[str]:
        """The names of options and files that differ, those that may differ last."""
        names = stored.options | self.options
        changed = [n for n in names if stored.options.get(n) != self.options.get(n)]
        return sorted(changed, key=_LENGTHENING.__contains__)

    def continues(self, stored: "TrainingRun") -> bool:
        """Whether all options of ``stored`` but length, batches and logging are the same."""
        return _LENGTHENING.issuperset(self.differences(stored))

    def resumed(self, stored: "TrainingRun", checkpoint: str | Path, step: int) -> "TrainingRun":
        """This run as the continuation of ``stored``; prints the step and the changed options."""
        for name in ("--trainer.max_steps", "--grpo.max_steps"):
            if 0 <= self.options.get(name, -1) < step:
                raise UserError(
                    f"{name}: {checkpoint} is at step {step}; raise it, or pass --overwrite to "
                    "restart"
                )
        names = ", ".join(self.differences(stored)) if stored.options else ""
        changed = f" with another {names}" if names else ""
        print(f"{checkpoint}: continues at step {step}{changed}")
        return replace(self, key=stored.key, started=stored.started)

    def refused(self, stored: "TrainingRun", checkpoint: Path) -> UserError:
        """The error for a checkpoint of ``stored``, which this run may not replace."""
        names = ", ".join(self.differences(stored)[:3]) or "its first steps"
        return UserError(
            f"{checkpoint}: from another run, which differs in {names}; only length, batches and "
            "logging may change; set another --name, or pass --overwrite to replace it"
        )

    def check_exports(self, folders: Iterable[Path], overwrite: bool) -> None:
        """Raise an error if a folder holds another run's checkpoint, or something else."""
        for folder in folders:
            path = folder / "component.json"
            if not path.is_file():
                if folder.exists() and any(folder.iterdir()):
                    raise UserError(f"{folder}: not a checkpoint; set another --export_to")
            elif not overwrite and read_json(path, Component).run != self.key:
                raise UserError(
                    f"{folder}: a checkpoint of another run; set another --export_to, or pass "
                    "--overwrite to replace it"
                )


def _qualified_name(value: object) -> str:
    name = getattr(value, "__qualname__", None)
    return str(value) if name is None else f"{value.__module__}.{name}"
