"""Language models that answer prompts: one small interface, whoever runs the model.

``eval.models.openai_server.OpenAIServer`` asks any OpenAI-compatible server and
``eval.models.local.LocalModel`` runs transformers here; anything else with the signature of
:class:`Writer` will do. An answer that is none (a refusal, nothing at all) says so in ``failed``
and is for the caller to count, never to use.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from eval.models.cache import ANSWERS, TextCache, answer_key
from records import UserError
from records.stage_outputs import class_path_of
from records.writing import replace_lone_surrogates

# ``role`` is system, user or assistant; ``content`` the text.
Message = dict[str, str]
# A text that ran out of tokens ends with its last whole sentence, or counts as failed.
WhenCut = Literal["trim", "fail"]

_LAST_SENTENCE = re.compile(r".*[.!?…]['\"”’)\]]*(?=\s|$)", re.DOTALL)
# What reasoning models say to themselves, where the server does not take it away.
_REASONING = re.compile(r"^.*(?:</think(?:ing)?>|\[/THINK\])", re.DOTALL)
_REASONING_START = re.compile(r"<think(?:ing)?>|\[THINK\]")
# Why an answer fails whose tokens' probabilities were asked for.
NO_TOKENS = "the server gives no token probabilities"
# English text has about so many characters a token in the vocabularies of today's models.
CHARACTERS_A_TOKEN = 4
# A logarithm of a probability may be above 0 by rounding only.
_ROUNDING = 1e-3


class Token(NamedTuple):
    """A token of an answer.

    Attributes:
        text: as it stands in the answer, with the blanks that belong to it.
        logprob: natural logarithm of its probability given what stands before it, by the model
            itself: before temperature and top_p.
    """

    text: str
    logprob: float


class Answer(NamedTuple):
    """One text of a model.

    Attributes:
        text: stripped; empty where there is none.
        failed: why it is no answer; ``None`` for an answer.
        tokens: of an answer whose tokens were asked for: all that the model wrote, thus with the
            blanks, the thoughts and the cut end that ``text`` is without.
    """

    text: str
    failed: str | None = None
    tokens: tuple[Token, ...] | None = None


# Why an answer fails while requests are only counted.
NOTHING_ASKED = "nothing was asked"
_NOTHING = Answer("", NOTHING_ASKED)


class Writer(Protocol):
    """A language model that answers prompts.

    ``identity`` holds everything that decides its answers and no secret; it goes into cache keys,
    journals and manifests.
    """

    identity: dict[str, Any]

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
        """``n`` answers a prompt, in the prompts' order."""


class TokenWriter(Protocol):
    """A :class:`Writer` that also says how likely it found each token that it wrote."""

    identity: dict[str, Any]

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
        """``n`` answers a prompt, in the prompts' order.

        Args:
            logprobs: give each answer its ``tokens``; one that lacks them is ``failed``.
        """


@dataclass(frozen=True)
class Sampling:
    """How answers are drawn; ``temperature`` 0 takes the likeliest token.

    ``logprobs`` asks for the tokens and their probabilities as well.
    """

    temperature: float
    top_p: float
    max_new_tokens: int
    logprobs: bool = False


class Request(NamedTuple):
    """One text to be written.

    Attributes:
        messages: the prompt.
        seed: of this text alone; depends on the call's seed and the text's index.
    """

    messages: Sequence[Message]
    seed: int


@dataclass
class Usage:
    """What answering took. An answer from the cache counts with the tokens it once took.

    Attributes:
        calls: texts that the model wrote in this process.
        cached: texts that came from the cache.
        failed: texts, of either kind, that are no answer.
        prompt_tokens, completion_tokens: as the server or the tokenizer counts them.
    """

    calls: int = 0
    cached: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def since(self, before: Usage) -> dict[str, int]:
        """What was used after ``before``; ``answers`` came from the model or from the cache."""
        names = ("failed", "prompt_tokens", "completion_tokens")
        answers = self.calls + self.cached - before.calls - before.cached
        rest = {name: getattr(self, name) - getattr(before, name) for name in names}
        return {"answers": answers, **rest}


@dataclass
class Count:
    """What a language model would be asked that no cache holds.

    Attributes:
        calls: texts to be written.
        prompt_tokens: about so many.
        completion_tokens: at most.
        asked: keys of texts that are counted, here or before; no text is counted twice.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    counted_keys: set[bytes] = field(default_factory=set)


# Takes a request's place, its answer, and the tokens of prompt and completion.
Keep = Callable[[int, Answer, int, int], None]


class CachedWriter(ABC):
    """What the backends share: each text is asked for once, and kept as soon as it is there.

    Args:
        cache: SQLite file of answers; several models and processes may share it.
        when_cut: what becomes of a text that reached ``max_new_tokens``.
        prices: of a million tokens of the prompt and of the completion, in any currency.
    """

    def __init__(
        self,
        cache: Path | str | None,
        when_cut: WhenCut,
        prices: tuple[float, float] | None = None,
    ):
        self.when_cut = when_cut
        self.cache_path = cache
        self.prices = prices
        self.usage = Usage()
        self._count_only: Count | None = None

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Everything that decides the answers, without secrets."""

    @abstractmethod
    def _ask(self, requests: Sequence[Request], sampling: Sampling, keep: Keep) -> None:
        """Have the texts written, in any order; ``keep`` takes each as soon as it is there."""

    def release(self) -> None:  # noqa: B027 (a server's model is not here)
        """Let go of what answering took up here; what is asked next may take longer."""

    def keep_answers_in(self, folder: Path) -> None:
        """Keep the answers in this folder, unless ``cache`` names another place."""
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
        """``n`` answers a prompt, in the prompts' order.

        A text depends on its prompt, the settings, the seed and its index, not on the other
        prompts. Without temperature seed and index change nothing, and a prompt is asked once.

        Args:
            prompts: lists of messages.
            n: answers a prompt.
            temperature: 0 takes the likeliest token.
            top_p: share of probability that tokens are drawn from.
            max_new_tokens: of an answer.
            seed: of the sampling.
            logprobs: give each answer its ``tokens``; one that lacks them is ``failed``.
        """
        sampling = Sampling(temperature, top_p, max_new_tokens, logprobs)
        requests, keys_by_prompt = self._requests(prompts, n, sampling, seed)
        if self._count_only is not None:
            self._add(requests, sampling, self._count_only)
            return [[_NOTHING] * n for _ in prompts]
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
                    f"{class_path_of(self)}: kept for request {place}: {answer!r:.80}; give each "
                    "of the requests one answer, under its place among them"
                )
            answers[todo[place]] = answer
            self._count("calls", answer, prompt_tokens, completion_tokens)
            # The server may be told to give probabilities before the next run.
            if self._cache and answer.failed != NO_TOKENS:
                used = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
                self._cache.put({todo[place]: answer._asdict() | used})

        if todo:
            self._ask([requests[key] for key in todo], sampling, keep)
        if left := sum(key not in answers for key in todo):
            raise UserError(
                f"{class_path_of(self)}: kept no answer for {left} of {len(todo)} requests; keep "
                "one for each, with the reason in `failed` where there is none"
            )
        return answers

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """What so many tokens cost, in the currency of ``prices``; ``None`` without prices."""
        if self.prices is None:
            return None
        return (prompt_tokens * self.prices[0] + completion_tokens * self.prices[1]) / 1e6

    @contextmanager
    def counting(self, counted_keys: set[bytes] | None = None) -> Iterator[Count]:
        """While it lasts nothing is asked but counted, and every answer fails.

        Args:
            asked: what was counted before, of this model or another; what is counted is added.
        """
        self._count_only = Count(asked=set() if counted_keys is None else counted_keys)
        try:
            yield self._count_only
        finally:
            self._count_only = None

    def _add(self, requests: dict[bytes, Request], sampling: Sampling, count: Count) -> None:
        has_cache = self.cache_path is not None and Path(self.cache_path).is_file()
        cached = self._cache.get(list(requests)) if has_cache else {}
        for key, request in requests.items():
            if key not in cached and key not in count.counted_keys:
                count.counted_keys.add(key)
                characters = sum(len(message["content"]) for message in request.messages)
                count.calls += 1
                count.prompt_tokens += characters // CHARACTERS_A_TOKEN + 1
                count.completion_tokens += sampling.max_new_tokens

    def _count(self, kind: str, answer: Answer, prompt: int, completion: int) -> None:
        setattr(self.usage, kind, getattr(self.usage, kind) + 1)
        self.usage.failed += answer.failed is not None
        self.usage.prompt_tokens += prompt
        self.usage.completion_tokens += completion

    def _key(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> bytes:
        settings = asdict(sampling)
        if not sampling.temperature:
            settings.pop("top_p")
        if not sampling.logprobs:  # so that answers of before it was there keep their keys
            settings.pop("logprobs")
        whole = [self.identity, settings, seed]
        engine = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).digest()
        return answer_key(engine, [text for m in messages for text in (m["role"], m["content"])])


def as_answer(text: str | None, cut: bool, when_cut: WhenCut) -> Answer:
    """A model's text as an answer: without its thoughts, and with a whole sentence at its end.

    Args:
        text: as the model wrote it.
        cut: it ran out of tokens.
        when_cut: what then becomes of it.
    """
    # Half a character, where a server cuts one, could not be written to any file.
    text = replace_lone_surrogates(text or "")
    text = _REASONING.sub("", text, count=1).strip()
    if _REASONING_START.match(text):
        return Answer("", "cut while it was thinking")
    if not text:
        return Answer("", "empty")
    if cut and when_cut == "fail":
        return Answer(text, "cut at max_new_tokens")
    return Answer(last_whole_sentence(text) if cut else text)


def one_text(messages: Sequence[Message]) -> str:
    """A prompt for a model that goes on with a text: the contents with blank lines between."""
    return "\n\n".join(message["content"] for message in messages)


def with_tokens(answer: Answer, tokens: Sequence[Token]) -> Answer:
    """The answer with its tokens; ``failed`` where there are none, or their numbers are none."""
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
    return Answer(row["text"], row["failed"], tokens)


def last_whole_sentence(text: str) -> str:
    """The text up to the end of its last whole sentence, else of its last whole line, else all."""
    whole = _LAST_SENTENCE.match(text)
    return whole.group() if whole else text.rpartition("\n")[0] or text


def text_seed(seed: int, index: int) -> int:
    """The seed of one of several texts; 31 bits, which every server takes."""
    digest = hashlib.sha256(f"{seed}\0{index}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
