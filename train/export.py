"""Checkpoint folders: the best weights are exported when a fit ends, and judged again as then.

``fit`` ends here, also when no step was taken (``--trainer.max_steps 0``): what is exported is then
the base model with a fresh head, the control of every experiment.

For ``validate``, ``test`` and ``predict``, ``component.json`` says which module a folder needs and
every setting that decides its outputs. Weights are loaded strictly, measures are computed in fp32
over the same fixed batches as on export, so the same rows give the same measures within
``TOLERANCE``.
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
    """Outputs of all items in their order; fp32, fixed batches, the same as ``eval`` does."""
    outputs: dict[int, object] = {}
    module.eval()
    with torch.inference_mode():
        for batch in tqdm(batches, "dev", unit="batch", disable=None):
            batch = module.transfer_batch_to_device(batch, module.device, 0)
            outputs.update(zip(batch["indices"], module.model_step(batch)[1], strict=True))
    return [outputs[index] for index in range(len(outputs))]


def values_of(measures: Measures) -> dict[str, float]:
    """The measures that have a value."""
    return {name: m["value"] for name, m in measures.items() if m["value"] is not None}


def shown(measures: Measures) -> str:
    """Measures on one line, as every command prints them."""
    return printable("  ".join(f"{n} {value:.4f}" for n, value in values_of(measures).items()))


@dataclass(eq=False)
class Export(Callback):
    """Writes the checkpoint folder when the fit ends, and beside it one for each step that is kept.

    Args:
        to: the folder; replaced whole when it holds a checkpoint already.
        best: Lightning checkpoint with the best weights; absent when no validation took place.
        arguments: what the user typed after ``python -m train``, for the model card.
        steps: what keeps the weights of single steps.
    """

    to: Path
    best: Path
    arguments: Sequence[str]
    steps: KeepSteps

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        for to in (self.to, *map(self._place, self.steps.steps)):
            there = to.exists() and (not to.is_dir() or any(to.iterdir()))
            if there and not (to / "component.json").is_file():
                raise UserError(
                    f"{to}: exists and is no checkpoint; give another folder as --export_to"
                )
        if trainer.is_global_zero:  # before the hours that it takes
            with report_write_errors(self.to):
                self.to.parent.mkdir(parents=True, exist_ok=True)
                TemporaryFile(dir=self.to.parent).close()
        if getattr(trainer.strategy, "_state_dict_type", "full") != "full":
            raise UserError(
                "--trainer.strategy: the export needs whole weights; set state_dict_type: full"
            )

    def on_fit_end(self, trainer: Trainer, pl_module: ComponentModule) -> None:
        self.steps.keep(trainer)  # of a fit without a step nothing else was called
        if trainer.is_global_zero:
            self._export(trainer, pl_module)
        trainer.strategy.barrier("export")

    def _export(self, trainer: Trainer, module: ComponentModule) -> None:
        if isinstance(trainer.strategy, FSDPStrategy):
            # A whole model in the place of this process's shards; its weights are loaded next.
            if trainer.global_step and not self.best.is_file():
                raise UserError(
                    f"no {self.best.name} to export: give a --trainer.val_check_interval within "
                    "the training"
                )
            module.model = None
            module.configure_model()
        weights = _of_step(trainer.global_step)
        if self.best.is_file():
            load_weights(module, self.best)
            weights = f"those with the best `{module.monitor}`"
        measures = self._judge_and_write(trainer, module, self.to, weights)
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger):
                values = {f"dev/{name}": value for name, value in values_of(measures).items()}
                logger.experiment.summary.update(values)
        print(f"dev: {shown(measures)}\ncheckpoint: {self.to}")
        self._export_steps(trainer, module)

    def _export_steps(self, trainer: Trainer, module: ComponentModule) -> None:
        late = []
        for step in self.steps.steps:
            to, path = self._place(step), self.steps.path(step)
            if path.is_file():
                load_weights(module, path)
                measures = self._judge_and_write(trainer, module, to, _of_step(step))
                print(f"step {step}, dev: {shown(measures)}\ncheckpoint: {to}")
            else:
                # What an earlier run left there would pass for this one's.
                shutil.rmtree(to, ignore_errors=True)
                late.append(str(step))
        if late:
            message = f"training ended at step {trainer.global_step}, before {', '.join(late)}"
            print(f"--export_steps: {message}", file=sys.stderr)

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
        measures = module.report(*judged, data.sources["dev"])
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
            after=module.probabilities_of(*judged),
        )
        component = _component(module, data, measures)
        with replace_folder(to) as folder:
            module.save_pretrained(folder)
            module.tokenizer.save_pretrained(folder)
            write_component(folder, component, write_card(folder, to, component, training))
        return measures


def _of_step(step: int) -> str:
    return f"those of step {step}" if step else "those before the first step"


def load_weights(module: ComponentModule, path: Path) -> None:
    """Put the weights of a Lightning checkpoint into a module."""
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    module.load_state_dict(state, strict=module.strict_loading)


def _component(module: ComponentModule, data: RecordData, measures: Measures) -> Component:
    used = {name: getattr(module, name) for name in module.judged_with}
    return Component(
        component=module.component,
        architecture=module.architecture,
        max_length=module.max_length,
        temperature=module.temperature,
        base=describe_base(module.base, module.revision),
        data=[file for file in data.files if file.split in {"train", "dev"}],
        metrics=values_of(measures),
        evaluation=data.evaluation() | {k: v for k, v in used.items() if v is not None},
        nearness=data.nearness,
        seed=run_seed(),
        versions=library_versions(),
        **module.describe(),
    )


# Judging a checkpoint folder

# Component and architecture (and style, where it decides) → module.
KINDS = {
    ("unli", "sequence_classifier"): "train.unli.Unli",
    ("relation", "sequence_classifier"): "train.relation.Relation",
    ("lss", "token_classifier"): "train.lss_tagger.LssTagger",
    ("lss", "seq2seq"): "train.lss_seq2seq.LssSeq2Seq",
    ("lss_star", "seq2seq"): "train.lss_seq2seq.LssSeq2Seq",
    ("adversary", "causal_lora"): "train.adversary.Adversary",
    ("adversary", "causal_lora", "preference"): "train.preference.Preference",
}

# How far equal measures may lie apart, absolutely or by share. Logits of the same weights differ in
# the last digits of fp32 (about 1e-6) between kernels, which the processor, the number of threads
# and even where weights lie in memory choose; every command prints measures to this digit.
TOLERANCE = 1e-4

# What identifies a checkpoint or reports on it; every other field of component.json is a setting.
_NO_SETTINGS = {
    "schema_version", "component", "architecture", "labels", "base", "data", "metrics",
    "metrics_split", "evaluation", "nearness", "seed", "versions",
}  # fmt: skip
_SETTINGS = [name for name in Component.model_fields if name not in _NO_SETTINGS]


def kind_of(folder: Path, component: Component) -> str:
    """Class path of the module that a checkpoint needs."""
    key = component.component, component.architecture
    kind = KINDS.get((*key, component.style), KINDS.get(key))
    if kind is None:
        raise UserError(
            f"{folder}: component.json says {key[0]} as {key[1]}, which cannot be judged here; "
            f"known are {', '.join(sorted({f'{name} as {kind}' for name, kind, *_ in KINDS}))}"
        )
    return kind


def _settings_of(component: Component, class_path: str) -> dict[str, object]:
    package, _, name = class_path.rpartition(".")
    module = getattr(import_module(package), name)
    inits = [vars(kind)["__init__"] for kind in module.__mro__ if "__init__" in vars(kind)]
    arguments = {name for init in inits for name in inspect.signature(init).parameters}
    stated = {name: getattr(component, name) for name in _SETTINGS if name in arguments}
    return stated | {n: v for n, v in component.evaluation.items() if n in module.judged_with}


def complete(folder: Path, given: Sequence[str]) -> list[str]:
    """The options that a folder implies around those that the user gave.

    The user's options come later and win, but a ``--config`` does not change the seed, which
    decides the dev rows.
    """
    component = read_component(folder)
    path = kind_of(folder, component)
    settings = _settings_of(component, path)
    options = {"name": folder.resolve().name, "trainer.precision": "32-true", "model": path}
    options |= {f"model.{name}": value for name, value in settings.items()}
    options |= {"data": "train.data.RecordData", "data.train": [], "data.dev": []}
    chosen = {n: v for n, v in component.evaluation.items() if n not in settings}
    options |= {f"data.{name}": value for name, value in chosen.items()}
    implied = [
        f"--{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in options.items()
    ]
    own_seed = any(argument.startswith("--seed_everything") for argument in given)
    fixed = component.seed is not None and not own_seed
    return [*implied, *given, *([f"--seed_everything={component.seed}"] if fixed else [])]


def differences(component: Component, class_path: str, given: dict[str, object]) -> list[str]:
    """Settings that the user gave otherwise than ``component.json`` states them."""
    return [
        f"{name} is {json.dumps(value)}, not {json.dumps(given[name])}"
        for name, value in _settings_of(component, class_path).items()
        if name in given and given[name] != value
    ]


def load(module: ComponentModule, folder: Path) -> None:
    """Make a module the component of a folder: its settings, calibration, tokenizer and weights."""
    component = read_component(folder)
    for name in _SETTINGS:
        value = getattr(component, name)
        # A threshold that was never tuned is not stated; the module's own default holds.
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
            module.model = _load_classifier(module, folder, component)
    except (*LOAD_ERRORS, RuntimeError) as error:
        reason = first_line(error)
        raise UserError(f"{folder}: cannot be loaded ({reason}); export it again") from None


def _load_classifier(
    module: ComponentModule, folder: Path, component: Component
) -> PreTrainedModel:
    ours, theirs = module.describe()["labels"], component.labels
    if len(ours) != len(theirs):
        raise UserError(
            f"{folder}: labels {theirs} where {type(module).__name__} has {ours}; it can be used "
            "by `python -m eval` but not judged here"
        )
    # A single output may have any name; several are put into the module's order.
    labels = theirs if len(theirs) == 1 else ours
    tokens = component.architecture == "token_classifier"
    return load_classifier(str(folder), labels, tokens=tokens, strict=True)


def _load_adapter(module: CausalLora, folder: Path, component: Component) -> None:
    module.base, module.revision = component.base["id"], component.base.get("revision")
    weights = component.base.get("sha256")
    if weights and describe_base(module.base, module.revision)["sha256"] != weights:
        raise UserError(
            f"{folder}: the weights of {module.base} are not those it was trained on; install "
            f"version {component.base.get('package_version')} of the package"
        )
    module.lora = LoraConfig.from_pretrained(folder)
    module.configure_model()
    load_adapter(module.model, folder, "default")


def compare(component: Component, files: Sequence[DataFile], measures: Measures) -> str | None:
    """How measures stand to those of ``component.json``; ``None`` when they are of other data.

    Args:
        component: of the folder.
        files: what was judged now.
        measures: the measures now.
    """
    theirs = [file for file in component.data if file.split == component.metrics_split]
    hashes, ours = sorted(file.sha256 for file in theirs), sorted(file.sha256 for file in files)
    if not theirs or hashes != ours:
        return None
    rows, judged = sum(file.rows for file in theirs), sum(file.rows for file in files)
    if rows != judged:
        return (
            f"component.json has the measures of {rows} rows of the same files, these are of "
            f"{judged}; give the options of its training as --config"
        )
    values = values_of(measures)
    other = [
        f"{name} {component.metrics.get(name)} there, {values.get(name)} here"
        for name in sorted({*values, *component.metrics})
        if not _same(component.metrics.get(name), values.get(name))
    ]
    if not other:
        return f"these are the measures of component.json (within {TOLERANCE})"
    return f"component.json has other measures of the same rows: {'; '.join(other[:3])}"


def _same(theirs: float | None, ours: float | None) -> bool:
    if theirs is None or ours is None:
        return theirs is ours
    return math.isclose(theirs, ours, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
