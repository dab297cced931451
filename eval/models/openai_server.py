"""Any OpenAI-compatible server as a :class:`~eval.models.chat.Writer`.

vLLM, llama.cpp, Ollama, LM Studio and hosted servers support chat completions, and most of them the
older text completions. Requests are concurrent; transient errors (busy server, truncated reply,
broken connection) are retried, and answers are cached even if the server fails later.
"""

import asyncio
import re
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from openai import (
    APIConnectionError,
    APIResponseValidationError,
    APIStatusError,
    AsyncOpenAI,
    OpenAIError,
)
from openai.types import Completion, CompletionChoice
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice
from tqdm import tqdm

from clients.polite import (
    MAX_WAIT_S,
    TRANSIENT_STATUS,
    api_key,
    backoff,
    check_address,
    check_key_name,
    retry_after,
)
from eval.models.chat import (
    Answer,
    CachedWriter,
    Keep,
    Request,
    Sampling,
    Token,
    WhenCut,
    as_answer,
    one_text,
    with_tokens,
)
from records import UserError

# Finish reasons of truncated and of broken texts.
_CUT = {"length", "max_tokens", "model_length"}
_BROKEN = {"error", "abort", "insufficient_system_resource"}
_TOO_LONG = re.compile(
    r"context.?(length|size|window)|too long|maximum.{0,20}tokens|tokens.{0,30}must be <="
    r"|reduce the length",
    re.IGNORECASE,
)


class Malformed(Exception):
    """A 200 reply without a completion of the requested kind."""


class OpenAIServer(CachedWriter):
    """A model served by an OpenAI-compatible server.

    Args:
        model: model name on the server.
        base_url: of the API; usually ends in ``/v1``.
        revision: of the model, if known; part of the cache keys.
        api_key_env: environment variable with the API key; local servers need none.
        concurrency: concurrent requests.
        timeout_s: timeout of a request in seconds, after which it is retried.
        retries: maximum retries per request.
        when_cut: a text that reaches ``max_new_tokens`` is trimmed to its last complete sentence
            (``trim``) or fails (``fail``).
        length_field: the server's name for ``max_new_tokens``; newer hosted models require
            ``max_completion_tokens``.
        extra: additional request fields, e.g. ``{"top_k": 50}``; no secrets, because manifests
            contain them.
        cache: SQLite file of answers, from which an interrupted run resumes; null: a file in the
            folder of the run.
        prices: ``[prompt, completion]`` per million tokens, in any currency; adds the cost to the
            results.
        endpoint: ``chat``, or ``completions`` for text completion models
            (``gpt-3.5-turbo-instruct``, base models); messages are then joined with blank lines.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        revision: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        concurrency: int = 8,
        timeout_s: float = 120.0,
        retries: int = 5,
        when_cut: WhenCut = "trim",
        length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        extra: dict[str, Any] | None = None,
        cache: Path | None = None,
        prices: tuple[float, float] | None = None,
        endpoint: Literal["chat", "completions"] = "chat",
    ):
        super().__init__(cache, when_cut, prices)
        check_address("base_url", base_url)
        check_key_name(api_key_env)
        address = urlsplit(base_url)
        if concurrency < 1 or retries < 0 or timeout_s <= 0:
            raise UserError(
                "expected concurrency of at least 1, retries of at least 0, timeout_s above 0"
            )
        self.model = model
        self.base_url = base_url
        self.host = address.netloc
        self.path = address.path.rstrip("/")
        self.revision = revision
        self.api_key_env = api_key_env
        self.concurrency = concurrency
        self.timeout_s = timeout_s
        self.retries = retries
        self.length_field = length_field
        self.extra = extra or {}
        self.endpoint = endpoint
        self._not_before = 0.0  # event loop time; Retry-After applies to all requests

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "revision": self.revision,
            "endpoint": self.endpoint,
            "host": self.host,
            "path": self.path,  # one host may serve models of the same name under several paths
            "extra": self.extra,
            "when_cut": self.when_cut,
        }

    def _ask(self, requests: Sequence[Request], sampling: Sampling, keep: Keep) -> None:
        _run(self._ask_all(requests, sampling, keep))

    async def _ask_all(self, requests: Sequence[Request], sampling: Sampling, keep: Keep) -> None:
        key = api_key(self.api_key_env)
        bar = tqdm(total=len(requests), desc=self.model, unit="text", disable=None)
        places = iter(range(len(requests)))
        self._not_before = 0.0
        # The client's retries handle neither truncated JSON nor a shared Retry-After.
        async with AsyncOpenAI(
            api_key=key or "none", base_url=self.base_url, timeout=self.timeout_s, max_retries=0
        ) as client:

            async def work() -> None:
                for place in places:
                    body = self._body(requests[place], sampling)
                    keep(place, *await self._answer(client, body, key))
                    bar.update()

            workers = [asyncio.create_task(work()) for _ in range(self.concurrency)]
            try:
                await asyncio.gather(*workers)
            except BaseException:
                # Pending answers are already paid for: wait for them and cache them.
                for _ in places:
                    pass
                await asyncio.gather(*workers, return_exceptions=True)
                raise
            finally:
                bar.close()

    def _body(self, request: Request, sampling: Sampling) -> dict[str, Any]:
        chat, messages = self.endpoint == "chat", request.messages
        body = {
            "model": self.model,
            **({"messages": list(messages)} if chat else {"prompt": one_text(messages)}),
            "temperature": sampling.temperature,
            self.length_field: sampling.max_new_tokens,
            "extra_body": self.extra,
        }
        drawn = {"top_p": sampling.top_p, "seed": request.seed}
        body |= drawn if sampling.temperature else {}
        # Completions expect the number of alternatives per token; some servers treat 0 as "no".
        return body | ({"logprobs": True if chat else 1} if sampling.logprobs else {})

    async def _answer(
        self, client: AsyncOpenAI, body: Mapping[str, Any], key: str
    ) -> tuple[Answer, int, int]:
        loop = asyncio.get_running_loop()
        api = client.chat.completions if self.endpoint == "chat" else client.completions
        for attempt in range(self.retries + 1):
            while (wait := self._not_before - loop.time()) > 0:
                await asyncio.sleep(wait)
            try:
                # The client's timeout applies between bytes, so a slow stream would never time out.
                async with asyncio.timeout(self.timeout_s):
                    return self._read(await api.create(**body), "logprobs" in body)
            except (OpenAIError, ValueError, Malformed, TimeoutError) as error:
                failed = _failed_prompt(error)
                if failed is not None:
                    return failed, 0, 0
                await self._pause(error, attempt, key)
        raise AssertionError("the last pause raises")

    async def _pause(self, error: Exception, attempt: int, key: str) -> None:
        # The key is masked before truncation.
        reason = (_reason(error).replace(key, "***") if key else _reason(error))[:200]
        wait = _requested_wait(error)
        if not _is_transient(error):
            advice = self._advice(error)
        elif attempt == self.retries:
            advice = f"no answer in {attempt + 1} attempts; check the server and re-run"
        elif wait > MAX_WAIT_S:
            advice = f"Retry-After is {wait:.0f} s; re-run later"
        elif wait:
            loop = asyncio.get_running_loop()
            self._not_before = max(self._not_before, loop.time() + wait)
            return
        else:
            await asyncio.sleep(backoff(attempt))
            return
        raise UserError(f"{self.host}, model {self.model}: {reason}; {advice}; {self._cache_hint}")

    def _read(
        self, reply: ChatCompletion | Completion | str, logprobs: bool
    ) -> tuple[Answer, int, int]:
        choices = getattr(reply, "choices", None)
        if not isinstance(choices, list):
            raise Malformed(f"the reply does not match the endpoint {self.endpoint}")
        tokens = (_used(reply, "prompt_tokens"), _used(reply, "completion_tokens"))
        if not choices:
            return Answer("", "no choices in the reply"), *tokens
        choice = choices[0]
        part = getattr(choice, "message" if self.endpoint == "chat" else "text", None)
        if part is None:
            raise Malformed(f"the reply's choice does not match the endpoint {self.endpoint}")
        if getattr(part, "refusal", None):
            return Answer("", "refused"), *tokens
        if choice.finish_reason == "content_filter":
            return Answer("", "content filter"), *tokens
        if choice.finish_reason in _BROKEN:
            raise Malformed("the server aborted the text")
        cut = choice.finish_reason in _CUT
        answer = as_answer(_text(part), cut, self.when_cut)
        return (with_tokens(answer, _tokens(choice)) if logprobs else answer), *tokens

    @property
    def _cache_hint(self) -> str:
        if self.cache_path is None:
            return "set `cache: FILE` to keep its answers"
        return f"completed answers are cached in {self.cache_path}"

    def _advice(self, error: Exception) -> str:
        if getattr(error, "status_code", None) in (401, 403):
            return f"set the key in the environment variable {self.api_key_env}"
        if getattr(error, "status_code", None) == 404:
            return "check base_url (usually ends in /v1), endpoint and model"
        return "check the settings (extra, length_field) or the account"


def _used(reply: ChatCompletion | Completion, name: str) -> int:
    used = getattr(reply.usage, name, None)
    return max(0, used) if isinstance(used, int) else 0


def _text(part: ChatCompletionMessage | str) -> str | None:
    content = part if isinstance(part, str) else getattr(part, "content", None)
    if isinstance(content, list) and all(isinstance(p, Mapping) for p in content):
        content = "".join(str(p.get("text") or "") for p in content if p.get("type") == "text")
    if content is not None and not isinstance(content, str):
        raise Malformed("the reply's text is not a string")
    return content


def _tokens(choice: Choice | CompletionChoice) -> list[Token]:
    # Empty if the server returns no tokens, or in another format.
    logprobs = getattr(choice, "logprobs", None)
    if hasattr(choice, "message"):
        content = getattr(logprobs, "content", None)
        listed = content if isinstance(content, list) else []
        pairs = [(getattr(t, "token", None), getattr(t, "logprob", None)) for t in listed]
    else:
        both = [getattr(logprobs, name, None) for name in ("tokens", "token_logprobs")]
        whole = all(isinstance(c, list) for c in both) and len(both[0]) == len(both[1])
        pairs = list(zip(*both, strict=True)) if whole else []
    return [Token(*pair) for pair in pairs] if all(isinstance(t, str) for t, _ in pairs) else []


def _run(work: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


def _failed_prompt(error: Exception) -> Answer | None:
    if getattr(error, "status_code", None) not in (400, 413, 422):
        return None
    if getattr(error, "code", None) == "content_filter":
        return Answer("", "content filter")
    is_too_long = error.status_code == 413 or error.code == "context_length_exceeded"
    if is_too_long or _TOO_LONG.search(_message(error)):
        return Answer("", "prompt too long for the model")
    return None


def _message(error: APIStatusError) -> str:
    # Error bodies are an object, a list of one object, text or HTML. FastAPI servers use `detail`:
    # text, or a list with one error per field.
    content = error.body
    if isinstance(content, list) and content:
        content = content[0]
    for name in ("error", "message", "detail"):
        content = content.get(name, content) if isinstance(content, Mapping) else content
    if isinstance(content, list) and all(isinstance(item, Mapping) for item in content):
        content = "; ".join(f"{item.get('loc')}: {item.get('msg')}" for item in content)
    text = content.strip() if isinstance(content, str) else ""
    return error.message if not text or text.startswith("<") else text


def _is_transient(error: Exception) -> bool:
    if isinstance(error, APIStatusError):
        # An account without quota also answers 429, permanently.
        return error.status_code in TRANSIENT_STATUS and error.code != "insufficient_quota"
    connection = (APIConnectionError, APIResponseValidationError)
    return isinstance(error, (*connection, ValueError, Malformed, TimeoutError))


def _requested_wait(error: Exception) -> float:
    response = getattr(error, "response", None)
    header = response.headers.get("retry-after") if response is not None else None
    return retry_after(header) if header else 0.0


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ValueError):
        return "the reply is truncated"
    if isinstance(error, APIStatusError):
        return f"HTTP {error.status_code}: {' '.join(_message(error).split())}"
    return " ".join(str(error).split()) or type(error).__name__
