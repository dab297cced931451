"""A local encoder-decoder as a language model, or as a model for (question, context) pairs.

An instruction-tuned one such as Flan-T5 can be used as any ``writer``: 2308.12157 prompts Flan-T5
XL for LSS (section 5.2, Table 2). QuestEval and QAFactEval use others with a ``template``.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import torch
from tqdm import tqdm
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel, PreTrainedTokenizerBase

from components.base import load_tokenizer
from components.encoding import Pair, batches_by_length, fill_prompt, padded_prompts
from components.subsequence import LssDecoder
from eval.models.chat import (
    NO_TOKENS,
    Answer,
    CachedWriter,
    Keep,
    Request,
    Sampling,
    Token,
    WhenCut,
    as_answer,
    one_text,
)
from eval.models.device import pick_device
from eval.models.hub import load_whole
from records import UserError

_CONTEXT = "{context}"


class Written(NamedTuple):
    """A text, and the probability that its first token is that of the watched word."""

    text: str
    watched: float


class LocalSeq2Seq(CachedWriter):
    """An encoder-decoder of the hub with greedy or beam search, loaded at the first request.

    The messages' contents are joined with blank lines. A temperature above 0 raises an error, and
    requests for token log-probabilities fail.

    Args:
        model: a hub id, a folder or ``package:…``; safetensors only.
        num_beams: beams; 1 is greedy search.
        max_length: longest prompt in tokens, 2048 by default; longer prompts fail. T5 has no
            positional limit but was not trained on longer prompts.
        batch_size: texts generated together.
        device: ``auto``, ``cpu``, ``cuda``, …
        when_cut: a text that reaches ``max_new_tokens`` is trimmed to its last complete sentence
            (``trim``) or fails (``fail``).
        cache: SQLite file of answers; null: a file in the folder of the run.
        template: prompt of :meth:`write` with ``{context}`` and optionally ``{asked}``.
        watch: a word; :meth:`write` returns the probability that its first token begins the text.
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
        template: str | None = None,
        watch: str | None = None,
    ):
        super().__init__(cache, when_cut)
        if template is not None and _CONTEXT not in template:
            raise UserError(f"template: {template!r} has no {_CONTEXT}")
        if min(num_beams, max_length, batch_size) < 1:
            raise UserError("num_beams, max_length, batch_size: expected at least 1")
        self.model = model
        self.num_beams = num_beams
        self.max_length = max_length
        self.batch_size = batch_size
        self.template = template
        self.watch = watch
        self.device = pick_device(device)

    def write(self, pairs: Sequence[Pair], max_new_tokens: int = 64) -> list[Written | None]:
        """Return one text per (question, context) pair; ``None`` if the prompt is too long."""
        if self.template is None:
            raise UserError(f"{self.model}: template: not set; set the prompt for its input")
        prompts = [[{"role": "user", "content": text} for text in pair] for pair in pairs]
        answers = self.answer(prompts, temperature=0.0, max_new_tokens=max_new_tokens)
        return [
            None if answer.failed else Written(answer.text, math.exp(answer.tokens[0].logprob))
            for (answer,) in answers
        ]

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
                watched = self._watched(features)
                written = decoder.generate(self._model, features, [""] * len(batch_ids))
                for place, ids, logprob in zip(batch_ids, written, watched, strict=True):
                    answer = self._read(ids, sampling.logprobs, logprob)
                    keep(place, answer, len(rows[place]), len(ids))
                bar.update(len(batch_ids))

    def _encode(self, request: Request) -> list[int]:
        prompt = one_text(request.messages)
        if self.template is not None:
            question, context = (message["content"] for message in request.messages)
            prompt = fill_prompt(self.template, asked=question, context=context)
        return self._tokenizer(prompt, verbose=False)["input_ids"]

    def _watched(self, features: dict[str, torch.Tensor]) -> list[float]:
        """Log-probabilities of the watched word's first token; -inf without one."""
        ids = features["input_ids"]
        if self.watch is None:
            return [-math.inf] * len(ids)
        first = self._tokenizer(self.watch, add_special_tokens=False)["input_ids"][0]
        start = torch.full_like(ids[:, :1], self._model.config.decoder_start_token_id)
        logits = self._model(**features, decoder_input_ids=start).logits[:, 0]
        return logits.double().log_softmax(-1)[:, first].tolist()

    def _read(self, ids: Sequence[int], logprobs: bool, watched: float) -> Answer:
        if logprobs:
            return Answer("", NO_TOKENS)
        text = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        if self.template is not None:
            return Answer(text.strip(), tokens=(Token(self.watch or "", watched),))
        return as_answer(text, self._tokenizer.eos_token_id not in ids, self.when_cut)
