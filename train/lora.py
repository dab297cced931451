"""LoRA: train a small adapter of a frozen base model (Hu et al. 2022, 2106.09685)."""

import json
from pathlib import Path
from typing import Any

from jsonargparse.typing import ClosedUnitInterval, NonNegativeFloat, PositiveInt
from peft import LoraConfig, PeftModel, get_peft_model
from torch.nn import Module, Parameter
from transformers import PreTrainedModel

from records import UserError, write_json
from records.errors import first_line
from train.module import ComponentModule, plain_name


class LoraModule(ComponentModule):
    """A component whose base model is trained whole or, with ``r``, by a LoRA adapter.

    Only the adapter and the classification head are trained and exported then. The checkpoint
    folder is loaded like any other; the base model is resolved by its name in ``component.json``.

    Args:
        r: rank of the adapter; null: train all weights.
        alpha: scale of the adapter; the update is multiplied by alpha / r.
        dropout: dropout rate before the adapter.
        target_modules: names of the layers to adapt, or ``all-linear`` for all linear layers except
            the output layer.
        half: export the weights in fp16, which takes half the space.

    Attributes:
        task_type: PEFT's name of the task.
    """

    task_type: str

    def __init__(
        self,
        base: str,
        max_length: PositiveInt,
        lr: NonNegativeFloat,
        monitor: str,
        r: PositiveInt | None = None,
        alpha: PositiveInt = 16,
        dropout: ClosedUnitInterval = 0.0,
        target_modules: str | list[str] = "all-linear",
        half: bool = False,
        **shared: Any,
    ):
        super().__init__(base, max_length, lr, monitor, **shared)
        self.half = half
        self.lora: LoraConfig | None = None
        if r is not None:
            self.lora = LoraConfig(
                r=r,
                lora_alpha=alpha,
                lora_dropout=dropout,
                target_modules=target_modules,
                task_type=self.task_type,
            )
            # Checkpoints contain only the adapter, not the frozen weights.
            self.strict_loading = False

    def adapted(self, base: PreTrainedModel) -> Module:
        """Add the adapter to the base model, if one is trained."""
        if self.lora is None:
            return base
        if self.task_type != "CAUSAL_LM":
            self.lora.modules_to_save = _head_of(base)
        model = self._with_adapter(base)
        # The configured name, not a local path.
        model.peft_config["default"].base_model_name_or_path = self.base
        model.peft_config["default"].revision = self.revision
        return model

    def _with_adapter(self, base: PreTrainedModel) -> PeftModel:
        names = self.lora.target_modules
        names_of_weight: dict[Parameter, list[str]] = {}
        for name, weight in base.named_parameters(remove_duplicate=False):
            names_of_weight.setdefault(weight, []).append(name.removesuffix(".weight"))
        try:
            model = get_peft_model(base, self.lora)
        except ValueError as error:
            raise UserError(f"--model.target_modules: {first_line(error)}") from None
        # PEFT raises no error if only some names match.
        adapted = [f".{layer}" for layer in model.base_model.targeted_module_names]
        requested = [] if isinstance(names, str) else sorted(names)
        unmatched = [n for n in requested if not any(layer.endswith(f".{n}") for layer in adapted)]
        if unmatched:
            raise UserError(f"--model.target_modules: no layer is named {', '.join(unmatched)}")
        # Merging an adapter into a tied weight would change both layers.
        for tied in names_of_weight.values():
            if len(tied) > 1 and not {*tied}.isdisjoint(model.base_model.targeted_module_names):
                raise UserError(
                    f"--model.target_modules: {' and '.join(tied)} of {self.base} share their "
                    "weight and cannot be adapted; remove them"
                )
        return model

    def _trained(self) -> set[str]:
        named = self.named_parameters()
        return {plain_name(name) for name, weight in named if weight.requires_grad}

    def on_save_checkpoint(self, checkpoint: dict) -> None:
        if self.lora is not None:
            state, trained = checkpoint["state_dict"], self._trained()
            checkpoint["state_dict"] = {name: state[name] for name in state if name in trained}

    def on_load_checkpoint(self, checkpoint: dict) -> None:
        """Raise an error for weights of another model, which non-strict loading would ignore."""
        if self.lora is None:
            return
        if differing := sorted(self._trained() ^ set(checkpoint["state_dict"])):
            raise UserError(
                f"--ckpt_path: its weights do not match --model: {differing[0]} and "
                f"{len(differing) - 1} more differ; use the options of its training"
            )

    def save_pretrained(self, folder: Path) -> None:
        state = self.model.state_dict()
        if self.half:
            state = {name: weight.half() for name, weight in state.items()}
        if self.lora is None:
            self.model.save_pretrained(folder, state_dict=state)
            return
        # save_embedding_layers "auto" would query the hub.
        self.model.save_pretrained(
            folder, selected_adapters=["default"], save_embedding_layers=False, state_dict=state
        )
        # PEFT writes layer names in set order, which differs between runs.
        path = folder / "adapter_config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(config["target_modules"], list):
            config["target_modules"].sort()
        write_json(path, config)
        if self.task_type != "CAUSAL_LM":  # the classes, and the class of the model
            model = self.model.get_base_model()
            model.config.architectures = [type(model).__name__]
            model.config.save_pretrained(folder)


def _head_of(model: PreTrainedModel) -> list[str]:
    """Modules that are exported whole: the head, and the pooler, which some base models lack."""
    names = [name for name, part in model.named_modules() if any(True for _ in part.parameters())]
    heads = {name for name in names if "." not in name and name != model.base_model_prefix}
    return sorted(heads - {""} | {"pooler" for name in names if name.endswith("pooler")})
