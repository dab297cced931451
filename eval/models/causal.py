"""Causal language models: log-likelihood of texts, and sampling.

A checkpoint is a LoRA adapter on the base model named in its ``component.json``. A base model can
be used without an adapter; the prompt is then the topic itself.
"""

import random
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from jinja2 import TemplateError
from peft import PeftModel
from transformers import AutoTokenizer, DynamicCache, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from components.base import LOAD_ERRORS, load_causal, load_tokenizer
from components.checkpoint import Component, read_component
from components.encoding import batches_by_length, encode_completion, fill_prompt, pad
from components.precision import is_bfloat16_fast
from eval.models.chat import Message, last_whole_sentence, one_text
from eval.models.device import pack_linears, pick_device, present
from eval.models.draws import draw_token, log_probability, text_draws
from records import UserError
from records.errors import first_line

# Upper bound of the tokens per batch of logits: 2048 x 49 152 float32 are 400 MB.
_TOKENS_PER_BATCH = 2048

Dtype = Literal["auto", "float32", "bfloat16"]


def pick_dtype(dtype: Dtype, device: torch.device) -> torch.dtype:
    """Resolve ``auto``: bfloat16 where it is faster than float32."""
    if dtype != "auto":
        return getattr(torch, dtype)
    return torch.bfloat16 if is_bfloat16_fast(device.type) else torch.float32


class Likelihood(NamedTuple):
    """Likelihood of a completion.

    Attributes:
        nll: negative log-likelihood in nats, summed over the completion and its end token.
        tokens: number of these tokens.
        truncated: the text exceeded the model's context; the values cover its beginning.
    """

    nll: float
    tokens: int
    truncated: bool


class CausalLM:
    """A base model, with a checkpoint's adapter merged into it if there is one.

    Args:
        checkpoint: folder of an adversary component, or a base model: a hub id, a folder or
            ``package:…``.
        prompt: template with ``{topic}``; ``None`` uses the checkpoint's template.
        batch_size: texts that are scored or sampled together.
        device: ``auto``, ``cpu``, ``cuda``, …
        dtype: precision; ``auto`` is bfloat16 where it is faster than float32.
    """

    def __init__(
        self,
        checkpoint: str | Path,
        prompt: str | None = None,
        batch_size: int = 32,
        device: str = "auto",
        dtype: Dtype = "auto",
    ):
        logging.disable_progress_bar()  # loading weights takes about a second
        if batch_size < 1:
            raise UserError(f"batch_size: expected at least 1, got {batch_size}")
        self.checkpoint = checkpoint
        self.component: Component | None = None
        if (Path(checkpoint) / "component.json").exists():
            self.component = read_component(checkpoint, "adversary")
        template = prompt or (self.component.prompt_template if self.component else "{topic}")
        if not template:
            raise UserError(f"{checkpoint}: component.json has no prompt_template; set --prompt")
        self.template = template
        self.chat = self.component.chat if self.component else False
        self.batch_size = batch_size
        self.device = pick_device(device)
        self.dtype = pick_dtype(dtype, self.device)

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        if self.component is None:
            return load_tokenizer(str(self.checkpoint))
        return AutoTokenizer.from_pretrained(self.checkpoint, trust_remote_code=False)

    @cached_property
    def _model(self) -> PreTrainedModel:
        device = present(self.device)
        model = self._load().eval().to(device, self.dtype)
        if self.dtype == torch.float32 and self.device.type == "cpu":
            pack_linears(model)
        return model

    def release(self) -> None:
        """Free the model's memory; the next call loads the model again."""
        vars(self).pop("_model", None)

    def _load(self) -> PreTrainedModel:
        if self.component is None:
            try:
                return load_causal(str(self.checkpoint), dtype=self.dtype)
            except LOAD_ERRORS as error:
                raise UserError(
                    f"{self.checkpoint}: cannot be loaded ({first_line(error)})"
                ) from None
        base = self.component.base
        # Merged in float32: small updates would be lost in bfloat16.
        try:
            model = load_causal(base["id"], base.get("revision"), torch.float32)
        except LOAD_ERRORS as error:
            raise UserError(
                f"{self.checkpoint}: its base {base['id']} cannot be loaded ({first_line(error)})"
            ) from None
        try:
            return PeftModel.from_pretrained(model, self.checkpoint).merge_and_unload()
        except (*LOAD_ERRORS, RuntimeError) as error:
            reason = first_line(error)
            raise UserError(
                f"{self.checkpoint}: adapter does not fit base {base['id']} ({reason})"
            ) from None

    def prompt_for(self, topic: str) -> str:
        """The prompt template with the topic filled in."""
        return fill_prompt(self.template, topic=topic)

    @torch.inference_mode()
    def log_likelihoods(
        self, texts: Sequence[tuple[str, str]], released_loss: bool = False
    ) -> list[Likelihood]:
        """Score (prompt, completion) texts, over the completion tokens only.

        Texts are truncated at the model's context length, not at the training length.

        Args:
            texts: prompts and completions.
            released_loss: over prompt and completion, without the end token (``train.adversary``).

        Returns:
            One likelihood per text, in nats.
        """
        encoded = [encode_completion(self._tokenizer, *text, self.chat) for text in texts]
        if released_loss:
            encoded = [(ids[:-1], 0) for ids, _ in encoded]
        # After an empty prompt nothing predicts the first token, so it is not scored.
        encoded = [(ids, max(1, head)) for ids, head in encoded]
        rows = [ids[: self.positions] for ids, _ in encoded]
        likelihoods: list[Likelihood] = [Likelihood(0.0, 0, True)] * len(texts)
        fits = [i for i, (_, head) in enumerate(encoded) if head < self.positions]
        for batch in batches_by_length([len(rows[i]) for i in fits], self.batch_size):
            members = [fits[index] for index in batch]
            step = max(1, _TOKENS_PER_BATCH // len(rows[members[0]]))
            for start in range(0, len(members), step):
                part = members[start : start + step]
                heads = [encoded[i][1] for i in part]
                sums = self._nll([rows[i] for i in part], heads)
                for i, head, nll in zip(part, heads, sums, strict=True):
                    cut = len(encoded[i][0]) > len(rows[i])
                    likelihoods[i] = Likelihood(nll, len(rows[i]) - head, cut)
        return likelihoods

    def _nll(self, rows: Sequence[list[int]], heads: Sequence[int]) -> list[float]:
        ids = pad(rows, self._tokenizer.eos_token_id).to(self.device)  # (rows, longest)
        mask = pad([[1] * len(row) for row in rows], 0).to(self.device)
        keep = ids.shape[1] - min(heads) + 1  # logits that predict a completion token
        logits = self._model(input_ids=ids, attention_mask=mask, logits_to_keep=keep).logits
        first = ids.shape[1] - logits.shape[1]
        # Flattened: with a transposed vocabulary of 49k float32 sums lose 5e-5 nats per token.
        nll = torch.nn.functional.cross_entropy(
            logits[:, :-1].float().flatten(0, 1), ids[:, first + 1 :].flatten(), reduction="none"
        ).view(len(rows), -1)  # (rows, keep - 1), of the tokens at first + 1 and after
        nll = nll.double()
        return [
            float(nll[place, head - first - 1 : len(row) - first - 1].sum())
            for place, (row, head) in enumerate(zip(rows, heads, strict=True))
        ]

    def sample(
        self,
        topics: Sequence[str],
        n: int = 1,
        temperature: float = 1.0,
        top_p: float = 0.95,
        max_new_tokens: int = 256,
        seed: int = 0,
    ) -> list[list[str]]:
        """Sample ``n`` texts per topic.

        The random numbers of a text depend only on the seed, the topic and the text's index. Its
        logits depend on the batch by rounding at most: prompts are padded to multiples of 16, and a
        batch has two rows or more. On a CPU with common head sizes texts are the same in every
        batch. Elsewhere (GPU kernels that round by batch size) they are the same for the same
        topics: batches are formed in a fixed order, so that a resumed run forms the remaining ones.

        Args:
            topics: values of ``{topic}`` in the prompt template.
            temperature: 0 is greedy decoding.
            top_p: probability mass of the nucleus (Holtzman et al. 2020).
            max_new_tokens: a text that reaches it is truncated after its last complete sentence.

        Returns:
            The texts, stripped: ``len(topics)`` lists of ``n``.
        """
        prompts = [
            encode_completion(self._tokenizer, self.prompt_for(topic), None, self.chat)[0]
            for topic in topics
        ]
        rows = [(place, index) for place in range(len(topics)) for index in range(n)]
        draws = [text_draws(seed, topics[place], index) for place, index in rows]
        texts = [[""] * n for _ in topics]
        written = self.write(
            [prompts[place] for place, _ in rows], draws, temperature, top_p, max_new_tokens
        )
        for row, tokens, _ in written:
            place, index = rows[row]
            texts[place][index] = self._text(tokens)
        return texts

    def encode_messages(self, messages: Sequence[Message], chat: bool | None = None) -> list[int]:
        """Encode a prompt of messages as token ids.

        Args:
            messages: with ``role`` and ``content``.
            chat: apply the tokenizer's chat template; ``None``: if it has one. Otherwise the
                contents are joined.
        """
        if not (self._tokenizer.chat_template if chat is None else chat):
            return encode_completion(self._tokenizer, one_text(messages), None, False)[0]
        try:
            ids = self._tokenizer.apply_chat_template(
                list(messages), add_generation_prompt=True, tokenize=True, return_dict=False
            )
        except (TemplateError, ValueError) as error:
            reason = first_line(error)
            raise UserError(
                f"{self.checkpoint}: the chat template rejects the prompt ({reason}); change the "
                "roles of the prompt's messages, or set --writer.chat false"
            ) from None
        return list(ids)

    @cached_property
    def positions(self) -> int:
        """Context length in tokens, prompt and text together."""
        return getattr(self._model.config, "max_position_embeddings", 2048)

    def write(
        self,
        prompts: Sequence[Sequence[int]],
        draws: Sequence[random.Random],
        temperature: float,
        top_p: float,
        max_new_tokens: int,
    ) -> Iterator[tuple[int, list[int], list[float]]]:
        """Continue each prompt once.

        Args:
            prompts: token ids.
            draws: one random number generator per prompt.

        Yields:
            The prompt's index, the generated tokens and their natural log-probabilities (before
            temperature and top_p), in batches, shortest prompts first. A complete text ends with an
            end token (see :meth:`ended`).
        """
        order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
        # Widths of at most a factor of 2 in a batch: attention covers the widest prompt.
        for _, group in groupby(order, lambda row: padded_width(len(prompts[row])).bit_length()):
            members = list(group)
            for start in range(0, len(members), self.batch_size):
                batch = members[start : start + self.batch_size]
                batch_prompts = [tuple(prompts[place]) for place in batch]
                batch_draws = [draws[place] for place in batch]
                written = self._write(
                    batch_prompts, batch_draws, temperature, top_p, max_new_tokens
                )
                yield from zip(batch, *written, strict=True)

    def ended(self, tokens: Sequence[int]) -> bool:
        """Whether a text ends with an end token, not at ``max_new_tokens``."""
        return bool(tokens) and tokens[-1] in self._ends

    def decode(self, tokens: Sequence[int]) -> str:
        """Decode tokens without special tokens, stripped."""
        return self._tokenizer.decode(tokens, skip_special_tokens=True).strip()

    def token_texts(self, tokens: Sequence[int]) -> list[str]:
        """Decode tokens one by one, without the end token; joined, they are the text.

        Special tokens are empty; partial characters are replacement characters. Each token is
        decoded after its predecessor because many tokenizers drop a leading space.
        """
        kept = list(tokens[: -1 if self.ended(tokens) else None])
        texts = []
        for place in range(len(kept)):
            before = kept[max(0, place - 1) : place]
            head = self._tokenizer.decode(before, skip_special_tokens=True)
            both = self._tokenizer.decode(
                before + kept[place : place + 1], skip_special_tokens=True
            )
            texts.append(both[len(head) :])
        return texts

    def _left_padded(self, prompts: Sequence[Sequence[int]], width: int) -> dict[str, torch.Tensor]:
        gaps = [width - len(prompt) for prompt in prompts]
        pairs = list(zip(gaps, prompts, strict=True))
        rows = {
            "input_ids": [[0] * gap + list(ids) for gap, ids in pairs],  # masked: any id will do
            "attention_mask": [[0] * gap + [1] * len(ids) for gap, ids in pairs],
            "position_ids": [[0] * gap + list(range(len(ids))) for gap, ids in pairs],
        }
        return {name: torch.tensor(values, device=self.device) for name, values in rows.items()}

    def _prefill(self, prompts: Sequence[tuple[int, ...]]) -> tuple[DynamicCache, torch.Tensor]:
        """Process each distinct prompt once, in batches of one padded width.

        Returns:
            The cache of all prompts, left-padded to the widest, and the logits of their next
            tokens, of shape (prompts, vocabulary).
        """
        caches, logits, rows = [], [], {}
        distinct = sorted(set(prompts), key=lambda prompt: (len(prompt), prompt))
        for width, group in groupby(distinct, key=lambda prompt: padded_width(len(prompt))):
            members = list(group)
            first = sum(len(part) for part in logits)
            rows |= {prompt: first + at for at, prompt in enumerate(members)}
            cache = DynamicCache()
            inputs = self._left_padded(members * 2 if len(members) == 1 else members, width)
            output = self._model(**inputs, past_key_values=cache, use_cache=True, logits_to_keep=1)
            caches.append(cache)
            logits.append(output.logits[:, -1])
        index = torch.tensor([rows[prompt] for prompt in prompts], device=self.device)
        merged = DynamicCache()
        for number, layers in enumerate(zip(*(cache.layers for cache in caches), strict=True)):
            keys, values = [layer.keys for layer in layers], [layer.values for layer in layers]
            merged.update(
                _stack_left_padded(keys)[index], _stack_left_padded(values)[index], number
            )
        return merged, torch.cat(logits)[index]

    @torch.inference_mode()
    def _write(
        self,
        prompts: Sequence[tuple[int, ...]],
        draws: Sequence[random.Random],
        temperature: float,
        top_p: float,
        max_new_tokens: int,
    ) -> tuple[list[list[int]], list[list[float]]]:
        written: list[list[int]] = [[] for _ in draws]
        logprobs: list[list[float]] = [[] for _ in draws]
        alive = list(range(len(draws)))
        # A single row would use another kernel with different rounding, so it is duplicated.
        rows = alive * 2 if len(alive) == 1 else alive  # the texts in the cache
        cache, logits = self._prefill([prompts[row] for row in rows])
        inputs = self._left_padded([prompts[row] for row in rows], cache.get_seq_length())
        mask, positions = inputs["attention_mask"], inputs["position_ids"][:, -1:]
        for _ in range(max_new_tokens):
            scores = dict(zip(rows, logits.float().cpu().numpy(), strict=True))
            for row in alive:
                token = draw_token(scores[row], draws[row].random(), temperature, top_p)
                written[row].append(token)
                logprobs[row].append(log_probability(scores[row], token))
            alive = [row for row in alive if not self.ended(written[row])]
            if not alive:
                break
            # Complete texts leave together: each time, the cache is copied.
            if len(alive) <= 0.9 * len(set(rows)):
                kept = [rows.index(row) for row in (alive * 2 if len(alive) == 1 else alive)]
                cache.batch_select_indices(torch.tensor(kept, device=self.device))
                mask, positions = mask[kept], positions[kept]
                rows = [rows[at] for at in kept]
            mask = torch.nn.functional.pad(mask, (0, 1), value=1)
            positions = positions + 1
            logits = self._model(
                input_ids=mask.new_tensor([[written[row][-1]] for row in rows]),
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
            ).logits[:, -1]
        return written, logprobs

    @cached_property
    def _ends(self) -> set[int]:
        ends = self._model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        return {self._tokenizer.eos_token_id, *(end for end in ends if end is not None)}

    def _text(self, tokens: list[int]) -> str:
        text = self.decode(tokens)
        return text if self.ended(tokens) else last_whole_sentence(text)


def padded_width(length: int) -> int:
    """Width in tokens to which a prompt is padded.

    The next multiple of 16; from 128 tokens on, of a power of two that is an eighth to a quarter of
    the length. It depends only on the prompt, so that prompts of one width are processed together
    and vector operations round a text's sums equally in every batch.
    """
    step = max(16, 2 ** (length.bit_length() - 3))
    return -(-length // step) * step


def _stack_left_padded(states: Sequence[torch.Tensor]) -> torch.Tensor:
    width = max(part.shape[2] for part in states)  # (rows, heads, width, size)
    gaps = [(0, 0, width - part.shape[2], 0) for part in states]
    return torch.cat([torch.nn.functional.pad(p, g) for p, g in zip(states, gaps, strict=True)])
