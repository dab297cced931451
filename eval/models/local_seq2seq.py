"""A local instruction-tuned encoder-decoder such as Flan-T5 as a language model.

Can be used as any ``writer``: 2308.12157 prompts Flan-T5 XL for LSS (section 5.2, Table 2).
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel, PreTrainedTokenizerBase

from components.base import load_tokenizer
from components.encoding import batches_by_length, padded_prompts
from components.subsequence import LssDecoder
from eval.models.chat import (
    NO_TOKENS,
    Answer,
    CachedWriter,
    Keep,
    Request,
    Sampling,
    WhenCut,
    as_answer,
    one_text,
)
from eval.models.device import pick_device
from eval.models.hub import load_whole, named
from records import UserError


class LocalSeq2Seq(CachedWriter):
    """An encoder-decoder of the hub with greedy or beam search, loaded at the first request.

    The messages' contents are joined with blank lines. A temperature above 0 raises an error, and
    requests for token log-probabilities fail.

    Args:
        model: a hub id, a folder or ``package:…``; safetensors only.
        num_beams: beams; 1 is greedy search.
        max_length: longest prompt in tokens; longer prompts fail. T5 has no positional limit but
            was not trained on longer prompts.
        batch_size: texts generated together.
        device: ``auto``, ``cpu``, ``cuda``, …
        when_cut: a text that reaches ``max_new_tokens`` is trimmed to its last complete sentence
            (``trim``) or fails (``fail``).
        cache: SQLite file of answers.
    """

    def __init__(
        self,
        model: str,
        num_beams: int = 1,
        max_length: int = 2048,
        batch_size: int = 8,
        device: str = "auto",
        when_cut: WhenCut = "trim",
        cache: Path | None = None,
    ):
        super().__init__(cache, when_cut)
        if min(num_beams, max_length, batch_size) < 1:
            raise UserError("num_beams, max_length, batch_size: expected at least 1")
        self.model = model
        self.num_beams = num_beams
        self.max_length = max_length
        self.batch_size = batch_size
        self.device = pick_device(device)

    @cached_property
    def identity(self) -> dict[str, Any]:
        return {
            "backend": "transformers seq2seq",
            "model": named(self.model),
            "num_beams": self.num_beams,
            "max_length": self.max_length,
            "when_cut": self.when_cut,
        }

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        return load_tokenizer(self.model)

    @cached_property
    def _model(self) -> PreTrainedModel:
        return load_whole(AutoModelForSeq2SeqLM, self.model, self.device)

    @torch.inference_mode()
    def _ask(self, requests: Sequence[Request], sampling: Sampling, keep: Keep) -> None:
        if sampling.temperature:
            raise UserError(f"{self.model}: sampling is not supported; set temperature to 0")
        decoder = LssDecoder(self._tokenizer, self.num_beams, sampling.max_new_tokens, False)
        rows = [self._encode(request) for request in requests]
        fits = [place for place, row in enumerate(rows) if len(row) <= self.max_length]
        for place in set(range(len(rows))) - set(fits):
            keep(place, Answer("", "prompt too long for the model"), len(rows[place]), 0)
        name, lengths = self.model.rpartition("/")[2], [len(rows[place]) for place in fits]
        with tqdm(total=len(fits), desc=name, unit="text", disable=None) as bar:
            for batch in batches_by_length(lengths, self.batch_size):
                batch_ids = [fits[index] for index in batch]
                prompts = [rows[place] for place in batch_ids]
                features = padded_prompts(prompts, self._tokenizer.pad_token_id, self.device)
                written = decoder.generate(self._model, features, [""] * len(batch_ids))
                for place, ids in zip(batch_ids, written, strict=True):
                    answer = self._read(ids, bool(sampling.logprobs))
                    keep(place, answer, len(rows[place]), len(ids))
                bar.update(len(batch_ids))

    def _encode(self, request: Request) -> list[int]:
        return self._tokenizer(one_text(request.messages), verbose=False)["input_ids"]

    def _read(self, ids: Sequence[int], logprobs: bool) -> Answer:
        if logprobs:
            return Answer("", NO_TOKENS)
        cut = self._tokenizer.eos_token_id not in ids
        text = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return as_answer(text, cut, self.when_cut)
