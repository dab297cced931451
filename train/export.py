"""Export of checkpoint folders.

``fit`` exports the best weights. Without any step (``--trainer.max_steps 0``) it exports the base
model with a new head, the control of an experiment. Measures are computed over fixed batches, in
fp32, or in the training's precision for causal models; ``python -m eval component`` evaluates the
folder.
"""

import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger, WandbLogger
from lightning.pytorch.strategies import FSDPStrategy
from tqdm import tqdm

from cli.printable import printable
from components.base import describe_base
from components.certificate import Acceptance
from components.checkpoint import (
    Component,
    library_versions,
    replace_folder,
    write_component,
)
from components.code import describe_code
from components.measures import Measures
from records import UserError
from records.writing import report_write_errors
from train.card import Training, write_card
from train.certificate import acceptances
from train.checks import check_finite
from train.data import FixedBatches, RecordData, run_seed
from train.module import ComponentModule
from train.resume import KeepSteps


def evaluate(module: ComponentModule, batches: FixedBatches) -> list:
    """Outputs of all items in order, from fixed batches as in ``eval``."""
    outputs: dict[int, object] = {}
    module.eval()
    with torch.inference_mode():
        for batch in tqdm(batches, "dev", unit="batch", disable=None):
            batch = module.transfer_batch_to_device(batch, module.device, 0)
            outputs.update(zip(batch["indices"], module.model_step(batch)[1], strict=True))
    return [outputs[index] for index in range(len(outputs))]


def certificate_of(module: ComponentModule, data: RecordData) -> list[Acceptance]:
    """Which statements of ``--data.probes`` a relation model accepts; empty without the option."""
    probes = module.encoder.splits.get("probes")
    if probes is None:
        return []
    judged = module.judged(probes.items, evaluate(module, data.batches("probes")))
    return acceptances(probes, *judged)


def measured_values(measures: Measures) -> dict[str, float]:
    """The measures that have a value."""
    return {name: m["value"] for name, m in measures.items() if m["value"] is not None}


def format_measures(measures: Measures) -> str:
    """Measures on one line, as all commands print them."""
    values = measured_values(measures)
    return printable("  ".join(f"{name} {value:.4f}" for name, value in values.items()))


@dataclass(eq=False)
class Export(Callback):
    """Writes the checkpoint folder when the fit ends, and one folder per step of ``steps``.

    An existing checkpoint in ``to`` is replaced. ``best`` has the best weights, if a validation
    took place; ``arguments`` of ``python -m train`` go into the model card, ``run_key`` into
    ``component.json``.
    """

    to: Path
    best: Path
    arguments: Sequence[str]
    steps: KeepSteps
    run_key: str

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if trainer.is_global_zero:  # fail before training, not after it
            with report_write_errors(self.to):
                self.to.parent.mkdir(parents=True, exist_ok=True)
                TemporaryFile(dir=self.to.parent).close()
        if getattr(trainer.strategy, "_state_dict_type", "full") != "full":
            raise UserError("--trainer.strategy: set state_dict_type: full for the export")

    def on_fit_end(self, trainer: Trainer, pl_module: ComponentModule) -> None:
        self.steps.keep(trainer)  # without a step, no other hook is called
        if trainer.is_global_zero:
            self._export(trainer, pl_module)
        trainer.strategy.barrier("export")

    def _export(self, trainer: Trainer, module: ComponentModule) -> None:
        if isinstance(trainer.strategy, FSDPStrategy):
            # Replace the shards by a full model; its weights are loaded next.
            if trainer.global_step and not self.best.is_file():
                raise UserError(
                    f"no {self.best.name} to export: training ended before the first validation; "
                    "lower --trainer.val_check_interval"
                )
            module.model = None
            module.configure_model()
        weights = describe_step(trainer.global_step)
        if self.best.is_file():
            load_weights(module, self.best)
            weights = f"those with the best `{module.monitor}`"
        measures = self._evaluate_and_write(trainer, module, self.to, weights)
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger):
                values = {f"dev/{name}": value for name, value in measured_values(measures).items()}
                logger.experiment.summary.update(values)
        print(f"dev: {format_measures(measures)}\ncheckpoint: {self.to}")
        self._export_steps(trainer, module)

    def _export_steps(self, trainer: Trainer, module: ComponentModule) -> None:
        unreached = []
        for step in self.steps.steps:
            (_, folder), path = export_folders(self.to, [step]), self.steps.path(step)
            if path.is_file():
                load_weights(module, path)
                measures = self._evaluate_and_write(trainer, module, folder, describe_step(step))
                print(f"step {step}, dev: {format_measures(measures)}\ncheckpoint: {folder}")
            else:
                # Remove the folder of an earlier run.
                shutil.rmtree(folder, ignore_errors=True)
                unreached.append(str(step))
        if unreached:
            message = f"training ended at step {trainer.global_step}, before {', '.join(unreached)}"
            print(f"--export_steps: {message}", file=sys.stderr)

    def _evaluate_and_write(
        self, trainer: Trainer, module: ComponentModule, to: Path, weights: str
    ) -> Measures:
        """Evaluate and calibrate on dev, and write the folder; ``weights`` is text for the card."""
        data = trainer.datamodule
        precision = nullcontext()
        if module.architecture == "causal_lora":  # whose base may be too large for fp32
            precision = trainer.precision_plugin.forward_context()
        else:
            module.float()  # evaluation is in fp32, also after bf16-true
        module.to(trainer.strategy.root_device)
        dev = module.encoder.splits["dev"]
        with precision:
            outputs = evaluate(module, data.batches("dev"))
        check_finite(outputs, trainer.precision)
        dev_split = dev.records, dev.items, outputs
        module.cpu()
        module.temperature, module.shift = 1.0, 0.0
        before = module.probabilities_of(*dev_split)
        module.calibrate(*dev_split)
        measures = module.report(*dev_split, dev.sources)
        logs = [Path(log.log_dir) for log in trainer.loggers if isinstance(log, CSVLogger)]
        training = dict(
            command=self.arguments,
            weights=weights,
            curves=logs[0] / "metrics.csv" if logs and trainer.global_step else None,
            measures=measures,
            before=before,
            after=module.probabilities_of(*dev_split),
            certificate=certificate_of(module, data),
        )
        evaluated_with = {name: getattr(module, name) for name in module.judged_with}
        write_checkpoint(
            module,
            to,
            training,
            temperature=module.temperature,
            data=[file for file in data.files if file.split in {"train", "dev"}],
            metrics=measured_values(measures),
            evaluation=data.evaluation()
            | {k: v for k, v in evaluated_with.items() if v is not None},
            seed=run_seed(),
            run=self.run_key,
        )
        return measures


def export_folders(to: Path, steps: Iterable[int]) -> list[Path]:
    """The checkpoint folder of a run, and those of the steps that it exports."""
    return [to, *(to.with_name(f"{to.name}_step_{step}") for step in steps)]


def describe_step(step: int) -> str:
    return f"those of step {step}" if step else "those before the first step"


def load_weights(module: ComponentModule, path: Path) -> None:
    """Put the weights of a Lightning checkpoint into a module."""
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    module.load_state_dict(state, strict=module.strict_loading)


def write_checkpoint(module: ComponentModule, to: Path, training: dict, **fields: Any) -> None:
    """Write weights, tokenizer, card and ``component.json``.

    Args:
        module: the trained model.
        to: the checkpoint folder.
        training: fields of ``Training`` for the card, except those of ``module``.
        fields: further fields of ``Component``.
    """
    about = {"intended": module.intended, "limits": module.limits, "monitor": module.monitor}
    component = Component(
        component=module.component,
        architecture=module.architecture,
        max_length=module.max_length,
        base=describe_base(module.base, module.revision),
        versions=library_versions(),
        code=describe_code([type(module).__module__]),
        **module.describe(),
        **fields,
    )
    with replace_folder(to) as folder:
        module.save_pretrained(folder)
        module.tokenizer.save_pretrained(folder)
        write_component(
            folder, component, write_card(folder, to, component, Training(**about, **training))
        )
