"""PEFT adapters of checkpoint folders: loading and merging."""

from pathlib import Path

from peft import LoraConfig, PeftModel, get_peft_model, set_peft_model_state_dict
from safetensors.torch import load_file
from transformers import PreTrainedModel

from components.checkpoint import require_matching_weights
from records import UserError


def load_adapter(model: PeftModel, folder: Path, name: str) -> None:
    """Load the adapter weights of a folder into the adapter ``name`` of a model."""
    state = load_file(folder / "adapter_model.safetensors")
    try:
        result = set_peft_model_state_dict(model, state, adapter_name=name)
    except KeyError as error:  # raised by PEFT for a head without weights
        raise UserError(
            f"{folder}: its adapter lacks {error}; export the checkpoint again"
        ) from None
    # The keys of the base model are always missing.
    missing = [key for key in result.missing_keys if f".{name}." in key]
    require_matching_weights(folder, missing, result.unexpected_keys)


def merge_adapter(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Merge the LoRA adapter of a folder into its base model."""
    adapted = get_peft_model(model, LoraConfig.from_pretrained(folder))
    load_adapter(adapted, folder, "default")
    return adapted.merge_and_unload()
