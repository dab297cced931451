"""Models by name (hub id, folder or ``package:…``): identity and loading of weights."""

from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, PretrainedConfig, PreTrainedModel
from transformers.utils import logging
from transformers.utils.hub import cached_file, extract_commit_hash

from components.base import (
    LOAD_ERRORS,
    PACKAGE,
    describe_base,
    load_pretrained,
    resolve_base,
    skip_unread_tokens,
    use_cache_if_offline,
)
from components.checkpoint import require_matching_weights
from eval.models.device import pack_linears, present
from eval.models.engine import Dtype
from records import UserError, sha256_file, sha256_text
from records.errors import first_line
from records.reading import load_json

# Files of a model folder that determine its answers.
_FILES = ("*.safetensors", "*.gguf", "*.json", "*.jinja", "*.txt", "*.model")
# Model types whose positions start after the padding token's index.
_SHIFTED = ("roberta", "camembert", "data2vec-text", "ibert", "longformer", "mpnet", "xmod")


def named(model: str, revision: str | None = None) -> dict[str, str | None]:
    """Describe a model reproducibly: a folder by its content hash, a hub model by its commit.

    Args:
        model: its name.
        revision: branch, tag or commit of a hub model.

    Returns:
        ``id``, and ``sha256`` of a folder or ``revision`` (the commit) of a hub model. ``base`` is
        the same of the model that a folder with a PEFT adapter adapts.
    """
    if model.startswith(PACKAGE):
        return describe_base(model)
    if Path(model).exists():
        identity = {"id": Path(model).name, "sha256": _digest(Path(model))}
        base = adapted_base(model)
        return identity | {"base": named(*base)} if base else identity
    use_cache_if_offline()
    try:
        config = cached_file(model, "config.json", revision=revision)
    except (OSError, ValueError) as error:
        reason = first_line(error)
        raise UserError(f"{model}: no such model, locally or on the hub ({reason})") from None
    return {"id": model, "revision": extract_commit_hash(config, None)}


def adapted_base(model: str) -> tuple[str, str | None] | None:
    """Return name and revision of the model that a folder's PEFT adapter adapts, if it has one."""
    path = Path(model) / "adapter_config.json"
    if not path.is_file() or (Path(model) / "component.json").is_file():  # which names the base
        return None
    config = load_json(path)
    base = config.get("base_model_name_or_path")
    if not base:
        raise UserError(f"{path}: has no base_model_name_or_path; merge the adapter into its base")
    try:
        resolve_base(base)
    except UserError as error:
        raise UserError(
            f"{model}: the base of its adapter is missing ({error}); restore it, set "
            f"base_model_name_or_path in {path.name}, or merge the adapter into its base"
        ) from None
    return base, config.get("revision")


def positions(config: PretrainedConfig) -> int:
    """Return an encoder's input length with special tokens; 512 if not in its configuration."""
    places = getattr(config, "max_position_embeddings", None) or 512
    shifted = any(kind in config.model_type for kind in _SHIFTED)
    return places - (config.pad_token_id + 1 if shifted else 0)


def check_length(model: str, max_length: int, config: PretrainedConfig) -> None:
    """Raise an error if ``max_length`` exceeds the model's input length."""
    if max_length > (most := positions(config)):
        raise UserError(f"max_length: {model} takes at most {most} tokens, got {max_length}")


def load_whole(
    auto: type,
    model: str,
    device: torch.device,
    optional: str | None = None,
    dtype: Dtype = "float32",
    revision: str | None = None,
) -> PreTrainedModel:
    """Load a model for inference, with all weights from safetensors files.

    For a hub model without safetensors, transformers uses the hub bot's conversion pull request,
    unless a revision is set.

    Args:
        auto: the ``transformers`` auto class.
        model: its name.
        device: device of the model.
        optional: substring of the names of unused weights that may be missing.
        dtype: of the weights.
        revision: of a hub model.
    """
    present(device)
    logging.disable_progress_bar()  # loading weights takes about a second
    try:
        loaded, info = load_pretrained(
            auto,
            model,
            revision,
            dtype=getattr(torch, dtype),
            # PyTorch's fused attention in bfloat16 takes up to 1.5 times as long on a CPU
            attn_implementation="eager" if (device.type, dtype) == ("cpu", "bfloat16") else None,
        )
    except LOAD_ERRORS as error:
        reason = first_line(error)
        if "use_safetensors" in reason:  # transformers suggests pickles
            reason = "it has no safetensors; use a revision or a folder that has them"
        raise UserError(f"{model}: weights cannot be loaded ({reason})") from None
    missing = [name for name in info["missing_keys"] if optional is None or optional not in name]
    require_matching_weights(model, missing, ())
    if auto is AutoModelForSequenceClassification:
        skip_unread_tokens(loaded)
    loaded.eval().to(device)
    if device.type == "cpu":
        pack_linears(loaded)
    return loaded


def _digest(path: Path) -> str:
    if path.is_file():
        return sha256_file(path)
    files = sorted({file for pattern in _FILES for file in path.glob(pattern)})
    return sha256_text("".join(f"{file.name}:{sha256_file(file)}\n" for file in files))
