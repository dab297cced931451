"""Keeps what every step of a fit was taken with; tests name it as a callback by its class path."""

from __future__ import annotations

import torch
from lightning.pytorch.callbacks import Callback

STEPS: list[dict] = []


class Recorder(Callback):
    """Keeps what every step was taken with."""

    def on_before_optimizer_step(self, trainer, pl_module, optimizer) -> None:
        names = {id(weight): name for name, weight in pl_module.named_parameters()}
        groups = {group["weight_decay"]: group["params"] for group in optimizer.param_groups}
        STEPS.append(
            {
                "optimizer": type(optimizer).__name__,
                "rates": {group["lr"] for group in optimizer.param_groups},
                "decayed": {
                    d: {names[id(p)] for p in parameters} for d, parameters in groups.items()
                },
                "names": {n for n, w in pl_module.named_parameters() if w.requires_grad},
                "whole": norm(pl_module),
            }
        )

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        STEPS[-1]["clipped"] = norm(pl_module)
        grads = [weight.grad for weight in pl_module.parameters() if weight.grad is not None]
        STEPS[-1]["largest"] = max(grad.abs().max().item() for grad in grads)


def norm(module: torch.nn.Module) -> float:
    """The norm of the gradient."""
    grads = [weight.grad for weight in module.parameters() if weight.grad is not None]
    return torch.nn.utils.get_total_norm(grads).item()
