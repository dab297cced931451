"""Models by name: a hub id, a folder or ``package:…``. What they are, and their weights whole."""

from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, PretrainedConfig, PreTrainedModel
from transformers.utils.hub import cached_file, extract_commit_hash

from components.base import LOAD_ERRORS, PACKAGE, describe_base, resolve_base, skip_unread_tokens
from components.checkpoint import require_matching_weights
from eval.models.engine import Dtype, pack_linears, present
from records import UserError, sha256_file, sha256_text
from records.errors import first_line

# What decides a model's answers in its folder.
_FILES = ("*.safetensors", "*.gguf", "*.json", "*.jinja", "*.txt", "*.model")
# Kinds of encoders whose first position is the one after the padding token's.
_SHIFTED = ("roberta", "camembert", "data2vec-text", "ibert", "longformer", "mpnet", "xmod")


def named(model: str, revision: str | None = None) -> dict[str, str | None]:
    """A model as others can find it; a folder by its content, because its path differs.

    Args:
        model: its name.
        revision: branch, tag or commit of a hub model.

    Returns:
        ``id``, and what fixes the weights: ``sha256``, or of a hub model the commit as
        ``revision``.
    """
    if model.startswith(PACKAGE):
        return describe_base(model)
    if Path(model).exists():
        return {"id": Path(model).name, "sha256": _digest(Path(model))}
    try:
        config = cached_file(model, "config.json", revision=revision)
    except (OSError, ValueError) as error:
        reason = first_line(error)
        raise UserError(f"{model}: no such model, here or on the hub ({reason})") from None
    return {"id": model, "revision": extract_commit_hash(config, None)}


def positions(config: PretrainedConfig) -> int:
    """Tokens that an encoder has places for, special ones included; 512 where it does not say."""
    places = getattr(config, "max_position_embeddings", None) or 512
    shifted = any(kind in config.model_type for kind in _SHIFTED)
    return places - (config.pad_token_id + 1 if shifted else 0)


def check_length(model: str, max_length: int, config: PretrainedConfig) -> None:
    """See that a model has places for so many tokens."""
    if max_length > (most := positions(config)):
        raise UserError(f"max_length: {max_length}; {model} takes {most} tokens at most")


def load_whole(
    auto: type,
    model: str,
    device: torch.device,
    optional: str | None = None,
    dtype: Dtype = "float32",
    revision: str | None = None,
) -> PreTrainedModel:
    """A model ready to judge, with all its weights from safetensors files.

    Of a hub model that has none, the hub's own conversion is taken (a pull request of its bot),
    unless a revision is given.

    Args:
        auto: the class of ``transformers`` that loads it.
        model: its name.
        device: where it computes.
        optional: part of the names of weights that may be missing, because nothing uses them.
        dtype: of the weights.
        revision: of a hub model.
    """
    present(device)
    try:
        loaded, info = auto.from_pretrained(
            resolve_base(model),
            revision=revision,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=getattr(torch, dtype),
            # PyTorch's fused attention in bfloat16 takes up to 1.5 times as long on a CPU
            attn_implementation="eager" if (device.type, dtype) == ("cpu", "bfloat16") else None,
            output_loading_info=True,
        )
    except LOAD_ERRORS as error:
        reason = first_line(error)
        if "use_safetensors" in reason:  # the advice is to read pickles
            reason = "it has no safetensors; give a revision or a folder that does"
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
