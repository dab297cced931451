"""Export and evaluation of checkpoint folders.

``fit`` exports the best weights. Without any step (``--trainer.max_steps 0``) it exports the base
model with a new head, the control of an experiment.

For ``validate``, ``test`` and ``predict``, ``component.json`` defines the module of a folder and
every setting that affects its outputs. Weights are loaded strictly, and measures are computed in
fp32 over the same fixed batches as on export, so they agree within ``TOLERANCE`` on the same rows.
"""

import inspect
import json
import math
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger, WandbLogger
from lightning.pytorch.strategies import FSDPStrategy
from peft import LoraConfig
from tqdm import tqdm
from transformers import PreTrainedModel

from cli.printable import printable
from components.base import (
    LOAD_ERRORS,
    describe_base,
    load_classifier,
    load_seq2seq,
    load_tokenizer,
)
from components.checkpoint import (
    Component,
    DataFile,
    library_versions,
    read_component,
    replace_folder,
    write_component,
)
from components.measures import Measures
from records import UserError
from records.errors import first_line
from records.writing import report_write_errors
from train.adversary import CausalLora, load_adapter
from train.card import Training, write_card
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
    took place; ``arguments`` of ``python -m train`` go into the model card.
    """

    to: Path
    best: Path
    arguments: Sequence[str]
    steps: KeepSteps

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        for folder in (self.to, *map(self._step_folder, self.steps.steps)):
            is_occupied = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
            if is_occupied and not (folder / "component.json").is_file():
                raise UserError(f"{folder}: not a checkpoint; set another --export_to")
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
            folder, path = self._step_folder(step), self.steps.path(step)
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

    def _step_folder(self, step: int) -> Path:
        return self.to.with_name(f"{self.to.name}_step_{step}")

    def _evaluate_and_write(
        self, trainer: Trainer, module: ComponentModule, to: Path, weights: str
    ) -> Measures:
        """Evaluate and calibrate on dev, and write the folder; ``weights`` is text for the card."""
        data = trainer.datamodule
        if module.strict_loading:  # an adapter's base may be too large for fp32
            module.float()  # evaluation is in fp32, also after bf16-true
        module.to(trainer.strategy.root_device)
        dev_split = data.records["dev"], data.items["dev"], evaluate(module, data.batches("dev"))
        module.cpu()
        module.temperature, module.shift = 1.0, 0.0
        before = module.probabilities_of(*dev_split)
        module.calibrate(*dev_split)
        measures = module.report(*dev_split, data.sources["dev"])
        logs = [Path(log.log_dir) for log in trainer.loggers if isinstance(log, CSVLogger)]
        training = Training(
            intended=module.intended,
            limits=module.limits,
            command=self.arguments,
            monitor=module.monitor,
            weights=weights,
            curves=logs[0] / "metrics.csv" if logs and trainer.global_step else None,
            measures=measures,
            rows=Counter(data.sources["dev"]),
            before=before,
            after=module.probabilities_of(*dev_split),
        )
        component = _component(module, data, measures)
        with replace_folder(to) as folder:
            module.save_pretrained(folder)
            module.tokenizer.save_pretrained(folder)
            write_component(folder, component, write_card(folder, to, component, training))
        return measures


def describe_step(step: int) -> str:
    return f"those of step {step}" if step else "those before the first step"


def load_weights(module: ComponentModule, path: Path) -> None:
    """Put the weights of a Lightning checkpoint into a module."""
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    module.load_state_dict(state, strict=module.strict_loading)


def _component(module: ComponentModule, data: RecordData, measures: Measures) -> Component:
    evaluated_with = {name: getattr(module, name) for name in module.judged_with}
    return Component(
        component=module.component,
        architecture=module.architecture,
        max_length=module.max_length,
        temperature=module.temperature,
        base=describe_base(module.base, module.revision),
        data=[file for file in data.files if file.split in {"train", "dev"}],
        metrics=measured_values(measures),
        evaluation=data.evaluation() | {k: v for k, v in evaluated_with.items() if v is not None},
        nearness=data.nearness,
        seed=run_seed(),
        versions=library_versions(),
        **module.describe(),
    )


# Evaluation of checkpoint folders

# (component, architecture[, style]) → module.
KINDS = {
    ("unli", "sequence_classifier"): "train.unli.Unli",
    ("relation", "sequence_classifier"): "train.relation.Relation",
    ("lss", "token_classifier"): "train.lss_tagger.LssTagger",
    ("lss", "seq2seq"): "train.lss_seq2seq.LssSeq2Seq",
    ("lss_star", "seq2seq"): "train.lss_seq2seq.LssSeq2Seq",
    ("adversary", "causal_lora", "info"): "train.adversary.Adversary",
    ("adversary", "causal_lora", "repetitive"): "train.adversary.Adversary",
    ("adversary", "causal_lora", "preference"): "train.preference.Preference",
}

# Absolute or relative tolerance of equal measures. fp32 logits of the same weights differ by about
# 1e-6 between kernels (processor, number of threads, memory alignment).
TOLERANCE = 1e-4

# Fields of component.json that are not settings.
_NO_SETTINGS = {
    "schema_version", "component", "architecture", "labels", "base", "data", "metrics",
    "metrics_split", "evaluation", "nearness", "seed", "versions",
}  # fmt: skip
_SETTINGS = [name for name in Component.model_fields if name not in _NO_SETTINGS]


def class_path_of(folder: Path, component: Component) -> str:
    """Class path of the module that a checkpoint needs."""
    key = component.component, component.architecture
    kind = KINDS.get((*key, component.style) if component.style else key)
    if kind is None:
        raise UserError(
            f"{folder}: component.json: {key[0]} as {key[1]} cannot be evaluated; expected one of "
            f"{', '.join(sorted({f'{name} as {kind}' for name, kind, *_ in KINDS}))}"
        )
    return kind


def _settings_of(component: Component, class_path: str) -> dict[str, object]:
    package, _, name = class_path.rpartition(".")
    module = getattr(import_module(package), name)
    inits = [vars(parent)["__init__"] for parent in module.__mro__ if "__init__" in vars(parent)]
    arguments = {name for init in inits for name in inspect.signature(init).parameters}
    recorded = {name: getattr(component, name) for name in _SETTINGS if name in arguments}
    return recorded | {n: v for n, v in component.evaluation.items() if n in module.judged_with}


def complete_options(folder: Path, user_options: Sequence[str]) -> list[str]:
    """Add the options that a folder implies to the user's options.

    The user's options override them, except that a ``--config`` does not change the seed, which
    determines the dev rows.
    """
    component = read_component(folder)
    path = class_path_of(folder, component)
    settings = _settings_of(component, path)
    options = {"name": folder.resolve().name, "trainer.precision": "32-true", "model": path}
    options |= {f"model.{name}": value for name, value in settings.items()}
    options |= {"data": "train.data.RecordData", "data.train": [], "data.dev": []}
    data_options = {n: v for n, v in component.evaluation.items() if n not in settings}
    options |= {f"data.{name}": value for name, value in data_options.items()}
    implied = [
        f"--{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in options.items()
    ]
    has_seed = any(argument.startswith("--seed_everything") for argument in user_options)
    fix_seed = component.seed is not None and not has_seed
    return [*implied, *user_options, *([f"--seed_everything={component.seed}"] if fix_seed else [])]


def changed_settings(component: Component, class_path: str, user_options: dict) -> list[str]:
    """User options that differ from the settings in ``component.json``."""
    return [
        f"{name} is {json.dumps(value)}, not {json.dumps(user_options[name])}"
        for name, value in _settings_of(component, class_path).items()
        if name in user_options and user_options[name] != value
    ]


def load(module: ComponentModule, folder: Path) -> None:
    """Load settings, calibration, tokenizer and weights of a folder into a module."""
    component = read_component(folder)
    for name in _SETTINGS:
        value = getattr(component, name)
        # Without a tuned threshold the module's default applies.
        if hasattr(module, name) and not (name == "keep_threshold" and value is None):
            setattr(module, name, value)
    module.calibrated = True
    try:
        module.tokenizer = load_tokenizer(str(folder))
        if isinstance(module, CausalLora):
            _load_adapter(module, folder, component)
        elif component.architecture == "seq2seq":
            module.model = load_seq2seq(str(folder))
        else:
            module.model = _load_model(module, folder, component)
    except (*LOAD_ERRORS, RuntimeError) as error:
        reason = first_line(error)
        raise UserError(f"{folder}: cannot be loaded ({reason}); export it again") from None


def _load_model(module: ComponentModule, folder: Path, component: Component) -> PreTrainedModel:
    ours, theirs = module.describe()["labels"], component.labels
    if len(ours) != len(theirs):
        raise UserError(
            f"{folder}: expected labels {ours} ({type(module).__name__}), got {theirs}; the folder "
            "can be used by `python -m eval` but not evaluated here"
        )
    # A single label may have any name; several are reordered to the module's labels.
    labels = theirs if len(theirs) == 1 else ours
    tokens = component.architecture == "token_classifier"
    return load_classifier(str(folder), labels, tokens=tokens, strict=True)


def _load_adapter(module: CausalLora, folder: Path, component: Component) -> None:
    module.base, module.revision = component.base["id"], component.base.get("revision")
    weights = component.base.get("sha256")
    if weights and describe_base(module.base, module.revision)["sha256"] != weights:
        raise UserError(
            f"{folder}: trained on other weights of {module.base}; install version "
            f"{component.base.get('package_version')} of the package"
        )
    module.lora = LoraConfig.from_pretrained(folder)
    module.configure_model()
    load_adapter(module.model, folder, "default")


def compare_measures(
    component: Component, files: Sequence[DataFile], measures: Measures
) -> str | None:
    """Compare measures to those of ``component.json``; ``None`` if the data files differ."""
    recorded = [file for file in component.data if file.split == component.metrics_split]
    if not recorded or sorted(f.sha256 for f in recorded) != sorted(f.sha256 for f in files):
        return None
    recorded_rows, rows = sum(file.rows for file in recorded), sum(file.rows for file in files)
    if recorded_rows != rows:
        return (
            f"component.json has measures of {recorded_rows} rows of the same files, this run of "
            f"{rows}; pass the --config of the training"
        )
    values = measured_values(measures)
    changed = [
        f"{name} {component.metrics.get(name)} in component.json, now {values.get(name)}"
        for name in sorted({*values, *component.metrics})
        if not _is_close(component.metrics.get(name), values.get(name))
    ]
    if not changed:
        return f"measures equal those of component.json (within {TOLERANCE})"
    return f"measures differ from component.json on the same rows: {'; '.join(changed[:3])}"


def _is_close(recorded: float | None, value: float | None) -> bool:
    if recorded is None or value is None:
        return recorded is value
    return math.isclose(recorded, value, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
