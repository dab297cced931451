"""Models by name (hub id, folder or ``package:…``): loading of weights, input lengths."""

import torch
from transformers import AutoModelForSequenceClassification, PretrainedConfig, PreTrainedModel
from transformers.utils import logging

from components.base import LOAD_ERRORS, load_pretrained, skip_unread_tokens
from components.checkpoint import require_matching_weights
from eval.models.device import pack_linears, present
from eval.models.engine import Dtype
from records import UserError
from records.errors import first_line

# Model types whose positions start after the padding token's index.
_SHIFTED = ("roberta", "camembert", "data2vec-text", "ibert", "longformer", "mpnet", "xmod")


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
