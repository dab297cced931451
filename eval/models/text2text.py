"""Sequence-to-sequence models from the hub with a prompt template and a long context."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel, PreTrainedTokenizerBase

from components.base import load_tokenizer
from components.encoding import Pair, batches_by_length, encode_grounded, padded_prompts
from components.subsequence import LssDecoder
from eval.models.engine import Engine
from eval.models.hub import load_whole, named
from records import UserError

_ASKED, _CONTEXT = "{asked}", "{context}"


class Written(NamedTuple):
    """A text, and the probability that its first token is that of the watched word."""

    text: str
    watched: float


class Text2Text(Engine):
    """Generates one text per (question, context) pair by greedy or beam search.

    Args:
        model: a hub id, a folder or ``package:…``; safetensors only.
        template: prompt with ``{context}`` and optionally ``{asked}``; long contexts are truncated.
        watch: a word; the probability that its first token begins the text is returned.
        num_beams: beams; 1 is greedy search.
        max_new_tokens: longest text in tokens.
        max_length: input length in tokens.
        batch_size: prompts per batch.
        cache: SQLite file for the texts; ``None`` disables the cache.
        device: ``auto``, ``cpu``, ``cuda``, …
    """

    def __init__(
        self,
        model: str,
        template: str,
        watch: str | None = None,
        num_beams: int = 1,
        max_new_tokens: int = 64,
        max_length: int = 512,
        batch_size: int = 32,
        cache: Path | None = None,
        device: str = "auto",
    ):
        super().__init__(batch_size, cache, device)
        if _CONTEXT not in template:
            raise UserError(f"template: {template!r} has no {_CONTEXT}")
        if min(num_beams, max_new_tokens, max_length) < 1:
            raise UserError("num_beams, max_new_tokens, max_length: expected at least 1")
        self.model = model
        self.template = template
        self.watch = watch
        self.num_beams = num_beams
        self.max_new_tokens = max_new_tokens
        self.max_length = max_length

    @cached_property
    def identity(self) -> dict[str, Any]:
        return {
            "engine": "text2text",
            "model": named(self.model),
            "template": self.template,
            "watch": self.watch,
            "num_beams": self.num_beams,
            "lengths": [self.max_length, self.max_new_tokens],
            "dtype": self.dtype,
        }

    def write(self, pairs: Sequence[Pair]) -> list[Written | None]:
        """Return one text per (question, context) pair; ``None`` if the question is too long."""
        texts: list[Written | None] = []
        for answer in self._judge(pairs):
            ids = answer[1:].astype(int).tolist()
            text = self._tokenizer.decode(ids, skip_special_tokens=True).strip()
            texts.append(Written(text, float(answer[0])) if len(answer) else None)
        return texts

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        return load_tokenizer(self.model)

    @cached_property
    def _model(self) -> PreTrainedModel:
        return load_whole(AutoModelForSeq2SeqLM, self.model, self.device)

    @cached_property
    def _decoder(self) -> LssDecoder:
        return LssDecoder(self._tokenizer, self.num_beams, self.max_new_tokens, constrained=False)

    @torch.inference_mode()
    def _forward(self, inputs: Sequence[Pair]) -> Iterator[dict[Pair, np.ndarray]]:
        template = self.template.replace(_ASKED, "{claim}").replace(_CONTEXT, "{reference}")
        rows = [
            encode_grounded(self._tokenizer, template, context, text, self.max_length)
            for text, context in inputs
        ]
        yield {pair: np.empty(0) for pair, row in zip(inputs, rows, strict=True) if row is None}
        fitting = [place for place, row in enumerate(rows) if row is not None]
        for batch in batches_by_length([len(rows[place]) for place in fitting], self.batch_size):
            batch_ids = [fitting[index] for index in batch]
            prompts = [rows[place] for place in batch_ids]
            features = padded_prompts(prompts, self._tokenizer.pad_token_id, self.device)
            watched = self._watched(features)
            written = self._decoder.generate(self._model, features, [""] * len(batch_ids))
            yield {
                inputs[place]: np.asarray([p, *ids])
                for place, p, ids in zip(batch_ids, watched, written, strict=True)
            }

    def _watched(self, features: dict[str, torch.Tensor]) -> list[float]:
        if self.watch is None:
            return [0.0] * len(features["input_ids"])
        first = self._tokenizer(self.watch, add_special_tokens=False)["input_ids"][0]
        start = torch.full_like(
            features["input_ids"][:, :1], self._model.config.decoder_start_token_id
        )
        logits = self._model(**features, decoder_input_ids=start).logits[:, 0]
        return logits.double().softmax(-1)[:, first].tolist()
