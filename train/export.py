"""Export: the best weights as the checkpoint folder that ``eval`` reads.

``fit`` ends here, also when no step was taken (``--trainer.max_steps 0``): what is exported is then
the base model with a fresh head, the control of every experiment.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger, WandbLogger
from lightning.pytorch.strategies import FSDPStrategy
from tqdm import tqdm

from cli.printable import printable
from components.base import describe_base
from components.checkpoint import Component, library_versions, new_folder, write_component
from components.measures import Measures
from records import UserError
from records.writing import writing
from train.batches import FixedBatches, run_seed
from train.card import Training, write_card
from train.data import RecordData
from train.module import ComponentModule
from train.steps import KeepSteps


def evaluate(module: ComponentModule, batches: FixedBatches) -> list:
    """Outputs of all items in their order; fp32, fixed batches, the same as ``eval`` does."""
    found: dict[int, object] = {}
    module.eval()
    with torch.inference_mode():
        for batch in tqdm(batches, "dev", unit="batch", disable=None):
            batch = module.transfer_batch_to_device(batch, module.device, 0)
            _, outputs = module.model_step(batch)
            found.update(zip(batch["indices"], outputs, strict=True))
    return [found[index] for index in range(len(found))]


def shown(found: Measures) -> str:
    """Measures on one line, as every command of this door prints them."""
    values = {name: m["value"] for name, m in found.items() if m["value"] is not None}
    return printable("  ".join(f"{name} {value:.4f}" for name, value in values.items()))


class Export(Callback):
    """Writes the checkpoint folder when the fit ends, and beside it one for each step that is kept.

    Args:
        to: the folder; replaced whole when it holds a checkpoint already.
        best: Lightning checkpoint with the best weights; absent when no validation took place.
        arguments: what the user typed after ``python -m train``, for the model card.
        steps: what keeps the weights of single steps.
    """

    def __init__(self, to: Path, best: Path, arguments: Sequence[str], steps: KeepSteps):
        self.to, self.best, self.arguments, self.steps = to, best, arguments, steps

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        for to in (self.to, *map(self._place, self.steps.steps)):
            there = to.exists() and (not to.is_dir() or any(to.iterdir()))
            if there and not (to / "component.json").is_file():
                raise UserError(
                    f"{to}: exists and is no checkpoint; give another folder as --export_to"
                )
        if trainer.is_global_zero:  # before the hours that it takes
            with writing(self.to):
                self.to.parent.mkdir(parents=True, exist_ok=True)
                TemporaryFile(dir=self.to.parent).close()
        check_full_state(trainer)

    def on_fit_end(self, trainer: Trainer, pl_module: ComponentModule) -> None:
        self.steps.keep(trainer)  # of a fit without a step nothing else was called
        if trainer.is_global_zero:
            self._export(trainer, pl_module)
        trainer.strategy.barrier("export")

    def _export(self, trainer: Trainer, module: ComponentModule) -> None:
        unshard(trainer, module, self.best)
        weights = _of_step(trainer.global_step)
        if self.best.is_file():
            load_weights(module, self.best)
            weights = f"those with the best `{module.monitor}`"
        found = self._judge_and_write(trainer, module, self.to, weights)
        _summarise(trainer, found)
        print(f"dev: {shown(found)}\ncheckpoint: {self.to}")
        self._export_steps(trainer, module)

    def _export_steps(self, trainer: Trainer, module: ComponentModule) -> None:
        kept = self.steps.kept()
        for step, path in kept.items():
            load_weights(module, path)
            found = self._judge_and_write(trainer, module, self._place(step), _of_step(step))
            print(f"step {step}, dev: {shown(found)}\ncheckpoint: {self._place(step)}")
        late = [step for step in self.steps.steps if step not in kept]
        for step in late:
            # What an earlier run left there would pass for this one's.
            shutil.rmtree(self._place(step), ignore_errors=True)
        if late:
            said = (
                f"training ended at step {trainer.global_step}, before {', '.join(map(str, late))}"
            )
            print(f"--export_steps: {said}", file=sys.stderr)

    def _place(self, step: int) -> Path:
        return self.to.with_name(f"{self.to.name}_step_{step}")

    def _judge_and_write(
        self, trainer: Trainer, module: ComponentModule, to: Path, weights: str
    ) -> Measures:
        """Judge the module's weights on dev, fit what dev fits, and write the folder.

        Args:
            weights: which they are, for the card.
        """
        data = trainer.datamodule
        if module.strict_loading:  # all that is exported; an adapter's base may be too large
            module.float()  # as whoever loads the folder judges, also after bf16-true
        module.to(trainer.strategy.root_device)
        judged = data.records["dev"], data.items["dev"], evaluate(module, data.batches("dev"))
        module.cpu()
        module.temperature, module.shift = 1.0, 0.0
        before = module.probabilities_of(*judged)
        module.calibrate(*judged)
        found = module.report(*judged, data.sources["dev"])
        training = Training(
            intended=module.intended,
            limits=module.limits,
            command=self.arguments,
            monitor=module.monitor,
            weights=weights,
            curves=_curves(trainer),
            measures=found,
            rows=Counter(data.sources["dev"]),
            before=before,
            after=module.probabilities_of(*judged),
        )
        component = _component(module, data, found)
        with new_folder(to) as folder:
            module.save_pretrained(folder)
            module.tokenizer.save_pretrained(folder)
            write_component(folder, component, write_card(folder, to, component, training))
        return found


def _of_step(step: int) -> str:
    return f"those of step {step}" if step else "those before the first step"


def load_weights(module: ComponentModule, path: Path) -> None:
    """Put the weights of a Lightning checkpoint into a module."""
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    module.load_state_dict(state, strict=module.strict_loading)


def check_full_state(trainer: Trainer) -> None:
    """Refuse to train what could not be exported."""
    if getattr(trainer.strategy, "_state_dict_type", "full") != "full":
        raise UserError(
            "--trainer.strategy: the export needs whole weights; set state_dict_type: full"
        )


def unshard(trainer: Trainer, module: ComponentModule, best: Path) -> None:
    """Under FSDP, put a whole model in the place of this process's shards.

    Its weights are the base's; ``best.ckpt``, a full state dict, is loaded into it next.
    """
    if not isinstance(trainer.strategy, FSDPStrategy):
        return
    if trainer.global_step and not best.is_file():
        raise UserError(
            f"no {best.name} to export: give a --trainer.val_check_interval within the training"
        )
    module.model = None
    module.configure_model()


def _component(module: ComponentModule, data: RecordData, found: Measures) -> Component:
    used = {name: getattr(module, name) for name in module.judged_with}
    return Component(
        component=module.component,
        architecture=module.architecture,
        max_length=module.max_length,
        temperature=module.temperature,
        base=describe_base(module.base, module.revision),
        data=[file for file in data.files if file.split in {"train", "dev"}],
        metrics={name: m["value"] for name, m in found.items() if m["value"] is not None},
        evaluation=data.evaluation() | {k: v for k, v in used.items() if v is not None},
        nearness=data.nearness,
        seed=run_seed(),
        versions=library_versions(),
        **module.describe(),
    )


def _curves(trainer: Trainer) -> Path | None:
    folders = [Path(log.log_dir) for log in trainer.loggers if isinstance(log, CSVLogger)]
    return folders[0] / "metrics.csv" if folders and trainer.global_step else None


def _summarise(trainer: Trainer, found: Measures) -> None:
    values = {f"dev/{name}": m["value"] for name, m in found.items() if m["value"] is not None}
    for logger in trainer.loggers:
        if isinstance(logger, WandbLogger):
            logger.experiment.summary.update(values)
