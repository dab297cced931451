"""What several processes must agree on: outputs, a gradient's norm, names, whole weights."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from lightning import Trainer
from lightning.pytorch.strategies import FSDPStrategy
from torch import Tensor
from torch.distributed import all_gather_object

from records import UserError

if TYPE_CHECKING:
    from train.module import ComponentModule

# What FSDP and activation checkpointing put into the names of parameters.
_WRAPPERS = re.compile(r"_fsdp_wrapped_module\.|_checkpoint_wrapped_module\.")
_UNDECAYED = re.compile(r"bias$|(norm|\bln_\w+)\.weight$", re.IGNORECASE)


def gather(found: dict[int, object], world: int) -> dict[int, object]:
    """What all processes found, by ascending index; the same on each of them.

    Args:
        found: this process's values by index; an index that two processes judged has one value.
        world: number of processes.
    """
    parts: list = [found]
    if world > 1:
        parts = [None] * world
        all_gather_object(parts, found)
    merged = {index: value for part in parts for index, value in part.items()}
    return {index: merged[index] for index in sorted(merged)}


def plain_name(name: str) -> str:
    """A parameter's name without the wrappers of a strategy."""
    return _WRAPPERS.sub("", name)


def decays(name: str) -> bool:
    """Whether weight decay applies: not to biases and norms.

    By name, since a sharded weight matrix is a flat vector.
    """
    return not _UNDECAYED.search(plain_name(name))


def clip_by_norm(trainer: Trainer, optimizer: torch.optim.Optimizer, limit: float | None) -> Tensor:
    """Scale the gradients down to a norm of ``limit``.

    FSDP clips by itself: a process holds only a part of each gradient.

    Returns:
        The norm before, shape ().
    """
    limit = limit or math.inf
    if isinstance(trainer.strategy, FSDPStrategy):
        return trainer.strategy.model.clip_grad_norm_(limit)
    parameters = trainer.precision_plugin.main_params(optimizer)
    return torch.nn.utils.clip_grad_norm_(parameters, limit)


def check_full_state(trainer: Trainer) -> None:
    """Refuse to train what could not be exported.

    Raises:
        UserError: FSDP would write sharded checkpoints.
    """
    if getattr(trainer.strategy, "_state_dict_type", "full") != "full":
        raise UserError(
            "--trainer.strategy: the export needs whole weights; set state_dict_type: full"
        )


def unshard(trainer: Trainer, module: ComponentModule, best: Path) -> None:
    """Under FSDP, put a whole model in the place of this process's shards.

    Its weights are the base's; ``best.ckpt``, a full state dict, is loaded into it next.

    Raises:
        UserError: steps were taken but no validation wrote ``best.ckpt``.
    """
    if not isinstance(trainer.strategy, FSDPStrategy):
        return
    if trainer.global_step and not best.is_file():
        raise UserError(
            f"no {best.name} to export: give a --trainer.val_check_interval within the training"
        )
    module.model = None
    module.configure_model()
