"""Export: the best weights as the checkpoint folder that ``eval`` reads.

``fit`` ends here, also when no step was taken (``--trainer.max_steps 0``): what is exported is then
the base model with a fresh head, the control of every experiment.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from components.base import describe_base
from components.checkpoint import Component, library_versions, model_card, write_component
from records import UserError
from train.data import FixedBatches, run_seed
from train.module import ComponentModule


def evaluate(module: ComponentModule, batches: FixedBatches) -> list:
    """Outputs of all items in their order; fp32, fixed batches, the same as ``eval`` does."""
    found: dict[int, object] = {}
    module.eval()
    with torch.inference_mode():
        for batch in batches:
            batch = module.transfer_batch_to_device(batch, module.device, 0)
            _, outputs = module.model_step(batch)
            found.update(zip(batch["indices"], outputs, strict=True))
    return [found[index] for index in range(len(found))]


class Export(Callback):
    """Writes the checkpoint folder when the fit ends.

    Args:
        to: the folder; replaced whole when it holds a checkpoint already.
        best: Lightning checkpoint with the best weights; absent when no validation took place.
        command: what the user typed, for the model card.
    """

    def __init__(self, to: Path, best: Path, command: str):
        self.to, self.best, self.command = to, best, command

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        there = self.to.exists() and (not self.to.is_dir() or any(self.to.iterdir()))
        if there and not (self.to / "component.json").is_file():
            raise UserError(
                f"{self.to}: exists and is no checkpoint; give another folder as --export_to"
            )

    def on_fit_end(self, trainer: Trainer, pl_module: ComponentModule) -> None:
        if not trainer.is_global_zero:
            return
        module, data = pl_module, trainer.datamodule
        if self.best.is_file():
            state = torch.load(self.best, map_location="cpu", weights_only=True)["state_dict"]
            module.load_state_dict(state, strict=module.strict_loading)
        module.to(trainer.strategy.root_device)
        records, items = data.records["dev"], data.items["dev"]
        outputs = evaluate(module, data.batches("dev"))
        module.cpu()
        module.calibrate(records, items, outputs)
        found = module.measures(records, items, outputs)
        metrics = {name: m["value"] for name, m in found.items() if m["value"] is not None}
        component = Component(
            component=module.component,
            architecture=module.architecture,
            max_length=module.max_length,
            temperature=module.temperature,
            base=describe_base(module.base, module.revision),
            data=[file for file in data.files if file.split in {"train", "dev"}],
            metrics=metrics,
            seed=run_seed(),
            versions=library_versions(),
            **module.describe(),
        )
        self._write(module, component)
        shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        print(f"dev: {shown}\ncheckpoint: {self.to}")

    def _write(self, module: ComponentModule, component: Component) -> None:
        """Write beside the folder's place and rename, so that it is the old one or the new one."""
        partial = self.to.with_name(f".{self.to.name}.partial")
        old = self.to.with_name(f".{self.to.name}.old")
        for left_over in (partial, old):
            shutil.rmtree(left_over, ignore_errors=True)
        partial.mkdir(parents=True)
        module.save_pretrained(partial)
        module.tokenizer.save_pretrained(partial)
        for file in partial.iterdir():
            file.chmod(0o644)  # safetensors writes for the owner alone
        card = model_card(component, self.to.name, module.intended, self.command)
        write_component(partial, component, card)
        if self.to.exists():
            os.replace(self.to, old)
        os.replace(partial, self.to)
        shutil.rmtree(old, ignore_errors=True)
