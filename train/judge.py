"""Checkpoint folders for ``validate``, ``test`` and ``predict``: judged as ``fit`` judged them.

``component.json`` says which module a folder needs and every setting that decides its outputs.
Weights are loaded strictly, measures are computed in fp32 over the same fixed batches as on export,
so the same rows give the same measures within ``TOLERANCE``.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import torch
from peft import LoraConfig, set_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel

from components.base import UNLOADABLE, describe_base, load_classifier, load_tokenizer
from components.checkpoint import Component, DataFile, read_component, require_whole
from components.measures import Measures
from records import UserError
from records.errors import first_line
from train.adversary import CausalLora
from train.module import ComponentModule

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


def given_folder(arguments: Sequence[str]) -> Path | None:
    """The checkpoint folder among the arguments of a command, if ``--ckpt_path`` names one."""
    found = None
    for place, argument in enumerate(arguments):
        if argument == "--ckpt_path" and place + 1 < len(arguments):
            found = arguments[place + 1]
        elif argument.startswith("--ckpt_path="):
            found = argument.partition("=")[2]
    if found and found not in {"best", "last"} and not Path(found).exists():
        raise UserError(
            f"--ckpt_path {found}: no such file; give a checkpoint folder, or `best`, `last` or a "
            ".ckpt file of a fit"
        )
    return Path(found) if found and Path(found).is_dir() else None


def kind_of(folder: Path, component: Component) -> str:
    """Class path of the module that a checkpoint needs."""
    key = component.component, component.architecture
    for known in ((*key, component.style), key):
        if known in KINDS:
            return KINDS[known]
    raise UserError(
        f"{folder}: component.json says {key[0]} as {key[1]}, which cannot be judged here; known "
        f"are {', '.join(sorted({f'{name} as {kind}' for name, kind, *_ in KINDS}))}"
    )


def module_class(path: str) -> type[ComponentModule]:
    """The module class of a class path."""
    package, _, name = path.rpartition(".")
    return getattr(import_module(package), name)


def settings_of(component: Component, module: type[ComponentModule]) -> dict[str, object]:
    """What ``component.json`` states of the arguments of a module."""
    own = [vars(kind)["__init__"] for kind in module.__mro__ if "__init__" in vars(kind)]
    arguments = {name for init in own for name in inspect.signature(init).parameters}
    stated = {name: getattr(component, name) for name in _SETTINGS if name in arguments}
    used = {name: v for name, v in component.evaluation.items() if name in module.judged_with}
    return stated | used


def complete(folder: Path, given: Sequence[str]) -> list[str]:
    """The options that a folder implies around those that the user gave.

    The user's options come later and win, but a ``--config`` does not change the seed, which
    decides the dev rows.
    """
    component = read_component(folder)
    path = kind_of(folder, component)
    module = module_class(path)
    options = {"name": folder.resolve().name, "trainer.precision": "32-true", "model": path}
    options |= {f"model.{name}": v for name, v in settings_of(component, module).items()}
    options |= {"data": "train.data.RecordData", "data.train": [], "data.dev": []}
    options |= {
        f"data.{name}": value
        for name, value in component.evaluation.items()
        if name not in module.judged_with
    }
    implied = [
        f"--{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in options.items()
    ]
    own_seed = any(argument.startswith("--seed_everything") for argument in given)
    fixed = component.seed is not None and not own_seed
    return [*implied, *given, *([f"--seed_everything={component.seed}"] if fixed else [])]


def differences(component: Component, class_path: str, given: dict[str, object]) -> list[str]:
    """Settings that the user gave otherwise than ``component.json`` states them."""
    stated = settings_of(component, module_class(class_path))
    return [
        f"{name} is {json.dumps(value)}, not {json.dumps(given[name])}"
        for name, value in stated.items()
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
        else:
            module.model = _load_model(module, folder, component)
    except (*UNLOADABLE, RuntimeError) as error:
        reason = first_line(error)
        raise UserError(f"{folder}: cannot be loaded ({reason}); export it again") from None


def _load_model(module: ComponentModule, folder: Path, component: Component) -> PreTrainedModel:
    if component.architecture == "seq2seq":
        model, info = AutoModelForSeq2SeqLM.from_pretrained(
            folder,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
        wrong_shape = {entry[0] for entry in info["mismatched_keys"]}
        require_whole(folder, info["missing_keys"] | wrong_shape, info["unexpected_keys"])
        return model
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
    state = load_file(folder / "adapter_model.safetensors")
    found = set_peft_model_state_dict(module.model, state, adapter_name="default")
    # Of the base model's weights the adapter has none.
    missing = [name for name in found.missing_keys if ".default." in name]
    require_whole(folder, missing, found.unexpected_keys)


def compare(component: Component, files: Sequence[DataFile], found: Measures) -> str | None:
    """How measures stand to those of ``component.json``; ``None`` when they are of other data.

    Args:
        component: of the folder.
        files: what was judged now.
        found: the measures now.
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
    values = {name: m["value"] for name, m in found.items() if m["value"] is not None}
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
