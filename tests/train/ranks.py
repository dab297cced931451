"""The gradients of every module's loss, in this process or as one of several.

``python -m tests.train.ranks FOLDER`` with ``LOCAL_RANK`` set is one of three processes; rank 0
writes ``FOLDER/NAME.pt``. Steps are taken at a rate of 0, so that all are of the same weights.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from lightning import LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import Callback

from train.adversary import Adversary
from train.data import RecordData
from train.lss_seq2seq import LssSeq2Seq
from train.lss_tagger import LssTagger
from train.preference import Preference
from train.relation import Relation
from train.unli import Unli

MODULES = {
    "unli": Unli,
    "relation": Relation,
    "lss_tagger": LssTagger,
    "lss_seq2seq": LssSeq2Seq,
    "adversary": Adversary,
    "preference": Preference,
}


class Gradients(Callback):
    """Keeps the gradients that reach the optimiser, of every step, and the loss that is logged."""

    def __init__(self) -> None:
        self.steps: list[dict[str, torch.Tensor]] = []

    def on_before_optimizer_step(self, trainer, pl_module, optimizer) -> None:
        named = pl_module.named_parameters()
        step = {name: p.grad.clone() for name, p in named if p.grad is not None}
        self.steps.append(step | {"loss": trainer.callback_metrics["train/loss"].clone()})


def gradients(name: str, folder: Path, world: int = 1) -> list[dict[str, torch.Tensor]]:
    """The gradients of two steps, of six rows and of the two that are left.

    Args:
        name: of the module.
        folder: holds ``NAME.jsonl`` with eight rows, and ``options.json``.
        world: number of processes.
    """
    seed_everything(1)
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))[name]
    module: LightningModule = MODULES[name](max_length=60, lr=0.0, **options)
    file = str(folder / f"{name}.jsonl")
    kept = Gradients()
    Trainer(
        accelerator="cpu",
        devices=world,
        strategy="ddp" if world > 1 else "auto",
        max_epochs=1,
        limit_val_batches=0,
        num_sanity_val_steps=0,
        callbacks=[kept],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    ).fit(module, RecordData(train=file, dev=file, batch_size=6 // world))
    return kept.steps


if __name__ == "__main__":
    to = Path(sys.argv[1])
    for each in MODULES:
        steps = gradients(each, to, world=3)
        if torch.distributed.get_rank() == 0:
            torch.save(steps, to / f"{each}.pt")
