"""Interface of language models that answer prompts.

Backends: ``eval.models.openai_server.OpenAIServer`` (any OpenAI-compatible server),
``eval.models.local.LocalModel`` (transformers), and custom classes with the signature of
:class:`Writer`. Refusals and empty answers have ``failed`` set; callers count and never use them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from components.identity import identity
from components.sentences import last_whole_sentence
from eval.models.cache import ANSWERS, TextCache, answer_key
from records import UserError
from records.stage_outputs import class_path_of
from records.writing import replace_lone_surrogates

# ``role`` is system, user or assistant; ``content`` the text.
Message = dict[str, str]
# A text truncated at max_new_tokens is trimmed to its last complete sentence, or fails.
WhenCut = Literal["trim", "fail"]

# Reasoning that the server did not remove.
_REASONING = re.compile(r"^.*(?:</think(?:ing)?>|\[/THINK\])", re.DOTALL)
_REASONING_START = re.compile(r"<think(?:ing)?>|\[THINK\]")
# `failed` of an answer that is not whole.
CUT = "cut at max_new_tokens"
# `failed` of an answer that lacks the requested token probabilities.
NO_TOKENS = "the server gives no token probabilities"
# Rounding can raise a log-probability slightly above 0.
_ROUNDING = 1e-3


class Token(NamedTuple):
    """A token of an answer.

    Attributes:
        text: as in the answer, including spaces.
        logprob: natural log-probability given the preceding tokens, before temperature and top_p.
    """

    text: str
    logprob: float


class Answer(NamedTuple):
    """One text of a model.

    Attributes:
        text: stripped; may be empty if failed.
        failed: the reason of a failure; ``None`` for a usable answer.
        tokens: all generated tokens if requested, including the whitespace, reasoning and truncated
            end that ``text`` does not have.
        cut: whether ``text`` was trimmed because it reached ``max_new_tokens``.
    """

    text: str
    failed: str | None = None
    tokens: tuple[Token, ...] | None = None
    cut: bool = False


class Writer(Protocol):
    """A language model that answers prompts.

    Cache keys, journals and manifests contain its :func:`~components.identity.identity`.
    """

    def answer(
        self,
        prompts: Sequence[Sequence[Message]],
        *,
        n: int = 1,
        temperature: float = 1.0,
        top_p: float = 0.95,
        max_new_tokens: int = 256,
        seed: int = 0,
    ) -> list[list[Answer]]:
        """Return ``n`` answers per prompt, in the order of the prompts."""


@dataclass(frozen=True)
class Sampling:
    """Sampling settings; ``temperature`` 0 is greedy, ``logprobs`` also requests the tokens."""

    temperature: float
    top_p: float
    max_new_tokens: int
    logprobs: bool = False


class Request(NamedTuple):
    """One text to generate.

    Attributes:
        messages: the prompt.
        seed: of this text, derived from the call's seed and the text's index.
    """

    messages: Sequence[Message]
    seed: int


@dataclass
class Usage:
    """Usage of a model. Cached answers count with the tokens of their original request.

    Attributes:
        calls: texts generated in this process.
        cached: texts read from the cache.
        failed: failed texts, generated or cached.
        prompt_tokens, completion_tokens: as counted by the server or the tokenizer.
    """

    calls: int = 0
    cached: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def since(self, before: Usage) -> dict[str, int]:
        """Return the usage after ``before``; ``answers`` are generated and cached texts."""
        names = ("failed", "prompt_tokens", "completion_tokens")
        answers = self.calls + self.cached - before.calls - before.cached
        rest = {name: getattr(self, name) - getattr(before, name) for name in names}
        return {"answers": answers, **rest}


# Called with a request's index, its answer, and the prompt and completion tokens.
Keep = Callable[[int, Answer, int, int], None]


class CachedWriter(ABC):
    """Base class of the backends: each text is requested once and cached immediately.

    Args:
        cache: SQLite file of answers; several models and processes can share it.
        when_cut: handling of a text that reached ``max_new_tokens``.
        prices: ``[prompt, completion]`` per million tokens, in any currency.
    """

    def __init__(
        self, cache: Path | str | None, when_cut: WhenCut, prices: tuple[float, float] | None = None
    ):
        self.when_cut = when_cut
        self.cache_path = cache
        self.prices = prices
        self.usage = Usage()

    @abstractmethod
    def _ask(self, requests: Sequence[Request], sampling: Sampling, keep: Keep) -> None:
        """Generate the texts in any order; call ``keep`` for each as soon as it is complete."""

    def release(self) -> None:  # noqa: B027 (nothing to free for a server)
        """Free the model's memory; the next call may take longer."""

    def keep_answers_in(self, folder: Path) -> None:
        """Cache the answers in this folder unless ``cache`` is set."""
        if self.cache_path is None:
            self.cache_path = folder / ANSWERS

    @cached_property
    def _cache(self) -> TextCache | None:
        return None if self.cache_path is None else TextCache(self.cache_path)

    def answer(
        self,
        prompts: Sequence[Sequence[Message]],
        *,
        n: int = 1,
        temperature: float = 1.0,
        top_p: float = 0.95,
        max_new_tokens: int = 256,
        seed: int = 0,
        logprobs: bool = False,
    ) -> list[list[Answer]]:
        """Return ``n`` answers per prompt, in the order of the prompts.

        A text depends on its prompt, the settings, the seed and its index, not on other prompts. At
        temperature 0 the seed and index have no effect, and a prompt is requested once.

        Args:
            prompts: lists of messages.
            n: answers per prompt.
            temperature: 0 is greedy decoding.
            top_p: probability mass of the nucleus.
            max_new_tokens: per answer.
            seed: of the sampling.
            logprobs: return the ``tokens`` of each answer; an answer without them is ``failed``.
        """
        sampling = Sampling(temperature, top_p, max_new_tokens, logprobs)
        requests, keys_by_prompt = self._requests(prompts, n, sampling, seed)
        answers = self._answers(requests, sampling)
        return [[answers[key] for key in keys] for keys in keys_by_prompt]

    def _requests(
        self, prompts: Sequence[Sequence[Message]], n: int, sampling: Sampling, seed: int
    ) -> tuple[dict[bytes, Request], list[list[bytes]]]:
        keys_by_prompt: list[list[bytes]] = []
        requests: dict[bytes, Request] = {}
        for messages in prompts:
            keys = []
            for index in range(n if sampling.temperature else 1):
                request_seed = text_seed(seed, index) if sampling.temperature else 0
                keys.append(self._key(messages, sampling, request_seed))
                requests.setdefault(keys[-1], Request(messages, request_seed))
            keys_by_prompt.append(keys if sampling.temperature else keys * n)
        return requests, keys_by_prompt

    def _answers(self, requests: dict[bytes, Request], sampling: Sampling) -> dict[bytes, Answer]:
        cached = self._cache.get(list(requests)) if self._cache else {}
        todo = [key for key in requests if key not in cached]
        answers = {}
        for key, row in cached.items():
            answers[key] = _from_cache(row)
            self._count("cached", answers[key], row["prompt_tokens"], row["completion_tokens"])

        def keep(place: int, answer: Answer, prompt_tokens: int, completion_tokens: int) -> None:
            if place not in range(len(todo)) or todo[place] in answers:
                raise UserError(
                    f"{class_path_of(self)}: unexpected answer for request {place}: "
                    f"{answer!r:.80}; call keep exactly once per request, with its index"
                )
            answers[todo[place]] = answer
            self._count("calls", answer, prompt_tokens, completion_tokens)
            # Not cached: the server may be configured to return probabilities before the next run.
            if self._cache and answer.failed != NO_TOKENS:
                used = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
                self._cache.put({todo[place]: answer._asdict() | used})

        if todo:
            self._ask([requests[key] for key in todo], sampling, keep)
        if left := sum(key not in answers for key in todo):
            raise UserError(
                f"{class_path_of(self)}: no answer for {left} of {len(todo)} requests; call keep "
                "for each, with the reason of a failure in `failed`"
            )
        return answers

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Return the cost in the currency of ``prices``; ``None`` without prices."""
        if self.prices is None:
            return None
        return (prompt_tokens * self.prices[0] + completion_tokens * self.prices[1]) / 1e6

    def _count(self, kind: str, answer: Answer, prompt: int, completion: int) -> None:
        setattr(self.usage, kind, getattr(self.usage, kind) + 1)
        self.usage.failed += answer.failed is not None
        self.usage.prompt_tokens += prompt
        self.usage.completion_tokens += completion

    def _key(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> bytes:
        settings = asdict(sampling)
        if not sampling.temperature:
            settings.pop("top_p")
        whole = [identity(self), settings, seed]
        engine = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).digest()
        return answer_key(engine, [text for m in messages for text in (m["role"], m["content"])])


def as_answer(text: str | None, cut: bool, when_cut: WhenCut) -> Answer:
    """Convert generated text to an answer: strip reasoning and trim or fail truncated text.

    Args:
        text: raw output.
        cut: whether it was truncated at ``max_new_tokens``.
        when_cut: handling of truncated text.
    """
    # A server can cut a surrogate pair in half, which cannot be encoded.
    text = replace_lone_surrogates(text or "")
    text = _REASONING.sub("", text, count=1).strip()
    if _REASONING_START.match(text):
        return Answer("", "cut while it was thinking")
    if not text:
        return Answer("", "empty")
    if cut and when_cut == "fail":
        return Answer(text, CUT)
    return Answer(last_whole_sentence(text), cut=True) if cut else Answer(text)


def one_text(messages: Sequence[Message]) -> str:
    """Join the contents of messages with blank lines, for models without a chat template."""
    return "\n\n".join(message["content"] for message in messages)


def with_tokens(answer: Answer, tokens: Sequence[Token]) -> Answer:
    """Add tokens to an answer; it fails if there are none or a log-probability is invalid."""
    if answer.failed is not None:
        return answer
    if not tokens or not all(_is_logprob(token.logprob) for token in tokens):
        return Answer(answer.text, NO_TOKENS)
    return answer._replace(tokens=tuple(tokens))


def _is_logprob(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value <= _ROUNDING


def _from_cache(row: dict[str, Any]) -> Answer:
    token_rows = row.get("tokens")
    tokens = None if token_rows is None else tuple(Token(*token) for token in token_rows)
    return Answer(row["text"], row["failed"], tokens, row.get("cut", False))


def text_seed(seed: int, index: int) -> int:
    """Derive the seed of one text; 31 bits, which every server accepts."""
    digest = hashlib.sha256(f"{seed}\0{index}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
