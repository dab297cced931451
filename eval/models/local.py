"""A local transformers language model as a :class:`~eval.models.chat.Writer`."""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tqdm import tqdm

from components.identity import model_identity
from eval.models.causal import CausalLM, Dtype
from eval.models.chat import (
    Answer,
    CachedWriter,
    Keep,
    Request,
    Sampling,
    Token,
    WhenCut,
    as_answer,
    with_tokens,
)
from eval.models.draws import text_draws


class LocalModel(CachedWriter):
    """A base model or an adversary's checkpoint, loaded at the first request.

    Args:
        model: a hub id, a folder, ``package:…`` (safetensors or GGUF), or an adversary's
            checkpoint.
        chat: apply the tokenizer's chat template; null: if it has one, and for an adversary as in
            training. Otherwise the messages' contents are joined.
        batch_size: texts generated together; does not change the texts.
        device: ``auto``, ``cpu``, ``cuda``, …
        dtype: precision; ``auto`` is bfloat16 where it is faster than float32.
        when_cut: a text that reaches ``max_new_tokens`` is trimmed to its last complete sentence
            (``trim``) or fails (``fail``).
        cache: SQLite file of answers; null: a file in the folder of the run.
    """

    def __init__(
        self,
        model: str,
        chat: bool | None = None,
        batch_size: int = 16,
        device: str = "auto",
        dtype: Dtype = "auto",
        when_cut: WhenCut = "trim",
        cache: Path | None = None,
    ):
        super().__init__(cache, when_cut)
        self.model = model
        self._engine = CausalLM(model, "{topic}", batch_size, device, dtype)
        self.chat = self._engine.component.chat if self._engine.component and chat is None else chat

    @cached_property
    def identity(self) -> dict[str, Any]:
        return {
            "model": model_identity(self.model),
            "chat": self.chat,
            "dtype": str(self._engine.dtype).removeprefix("torch."),
            "when_cut": self.when_cut,
        }

    def release(self) -> None:
        self._engine.release()

    def _ask(self, requests: Sequence[Request], sampling: Sampling, keep: Keep) -> None:
        engine = self._engine
        prompts, fits = [], []
        for place, request in enumerate(requests):
            prompts.append(engine.encode_messages(request.messages, self.chat))
            if len(prompts[place]) + sampling.max_new_tokens > engine.positions:
                keep(place, Answer("", "prompt too long for the model"), len(prompts[place]), 0)
            else:
                fits.append(place)
        draws = [text_draws(r.seed, json.dumps(r.messages), 0) for r in requests]
        written = engine.write(
            [prompts[place] for place in fits],
            [draws[place] for place in fits],
            sampling.temperature,
            sampling.top_p,
            sampling.max_new_tokens,
        )
        name = self.model.rpartition("/")[2]
        for row, tokens, logprobs in tqdm(written, name, len(fits), unit="text", disable=None):
            answer = as_answer(engine.decode(tokens), not engine.ended(tokens), self.when_cut)
            if sampling.logprobs:
                texts = engine.token_texts(tokens)
                answer_tokens = [Token(*pair) for pair in zip(texts, logprobs, strict=False)]
                answer = with_tokens(answer, answer_tokens)
            keep(fits[row], answer, len(prompts[fits[row]]), len(tokens))
