"""What several processes must agree on: outputs, a gradient's norm, names of weights."""

from __future__ import annotations

import math
import os
import re

import torch
from lightning import Trainer
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch.strategies import FSDPStrategy
from torch import Tensor
from torch.distributed import all_gather_object

# What FSDP and activation checkpointing put into the names of parameters.
_WRAPPERS = re.compile(r"_fsdp_wrapped_module\.|_checkpoint_wrapped_module\.")


def is_first() -> bool:
    """Whether this is the process that writes, before there is a trainer that would know it.

    A launcher says so in the environment; Lightning's own, on the first process of another machine,
    only by ``NODE_RANK``.
    """
    return rank_zero_only.rank == 0 and os.environ.get("NODE_RANK", "0") == "0"


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
