"""Base of the HTTP clients: user agent, serial requests, retries and an answer cache.

The rules are Wikimedia's etiquette (a user agent with a contact, serial requests, ``Retry-After``,
no endless loops) and are applied to all servers. Cached answers are not requested again, so an
interrupted builder resumes.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import requests
import urllib3

from records import UserError, sha256_text, write_json
from records.writing import replace_lone_surrogates

T = TypeVar("T")
Sleep = Callable[[float], None]

# Statuses for which a retry may succeed.
TRANSIENT_STATUS = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
# The server started an answer and did not finish it.
UNFINISHED_STATUS = {500, 504}
CONNECT_S = 10.0
MAX_BACKOFF_S = 60.0
DEFAULT_RETRY_AFTER_S = 60.0  # requested by Wikidata's operators if the header is absent
MAX_WAIT_S = 900.0
# Limit of a decompressed answer; above any expected answer, below a laptop's memory.
MAX_BYTES = 1 << 30
# Estimated duration of a request to a public endpoint.
SECONDS_PER_REQUEST = 1.0
# An escaped surrogate in JSON, alone or in a pair.
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# Characters allowed in a header.
_HEADER_VALUE = re.compile(r"[!-~\xa1-\xff][ -~\xa1-\xff]*")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class EndpointError(UserError):
    """The endpoint returned no usable answer; earlier answers are cached.

    Attributes:
        unfinished: the endpoint did not finish, so a smaller request may succeed.
        reason: of the last attempt.
    """

    def __init__(self, message: str, unfinished: bool = False, reason: str = ""):
        super().__init__(message)
        self.unfinished = unfinished
        self.reason = reason


class RefusedError(UserError):
    """The endpoint rejects the request as invalid."""


class Transient(Exception):
    """A failed attempt that may be retried.

    Attributes:
        wait_s: wait requested by the server, in seconds.
        unfinished: as in :class:`EndpointError`.
    """

    def __init__(self, reason: str, wait_s: float | None = None, unfinished: bool = False):
        super().__init__(reason)
        self.wait_s = wait_s
        self.unfinished = unfinished


@dataclass
class Family:
    """Statistics of all requests of one purpose, e.g. ``population`` or ``P106``, for the manifest.

    Attributes:
        requests: answered requests.
        rows: rows or pages returned.
        first, last: UTC times of the answers, ISO 8601 to the second.
        example: text of the first request.
    """

    requests: int = 0
    rows: int = 0
    first: str = "9999"
    last: str = ""
    example: str = ""
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256, repr=False)

    def add(self, request: str, rows: int, moment: str) -> None:
        """Count one answered request."""
        self.example = self.example or request
        self._digest.update(f"{request}\n".encode())
        self.requests += 1
        self.rows += rows
        self.first, self.last = min(self.first, moment), max(self.last, moment)

    @property
    def sha256(self) -> str:
        """SHA-256 of all request texts in order."""
        return self._digest.hexdigest()


class PoliteClient:
    """Client of one server, one request at a time; the base class of all clients.

    Args:
        endpoint: URL of the service.
        user_agent: ``client/version (page or e-mail)``; required for remote endpoints, because
            operators throttle and block the defaults of HTTP libraries.
        cache_dir: folder of cached answers, one file per request, so that an interrupted builder
            resumes; default no cache.
        identity: name of the endpoint's data in cache keys and manifests; default its URL.
            Local servers have changing ports, so they are named by their data.
        timeout_s: seconds per attempt, from the request to the last byte.
        retries: retries of a failed attempt.
        backoff_s: wait in seconds before the first retry; doubled each time up to a minute, plus up
            to a quarter at random. ``Retry-After`` takes precedence.
        keep_days: days after which a cached answer expires.
        sleep: called with each wait in seconds.
    """

    def __init__(
        self,
        endpoint: str,
        user_agent: str | None = None,
        cache_dir: str | Path | None = None,
        *,
        identity: str | None = None,
        timeout_s: float = 60,
        retries: int = 5,
        backoff_s: float = 1.0,
        keep_days: float = 30,
        sleep: Sleep = time.sleep,
    ):
        check_address("endpoint", endpoint)
        if not user_agent and not is_local(endpoint):
            raise UserError(
                f"user_agent: {endpoint} requires a user agent with a contact, "
                "e.g. 'my-lab-facts/1.0 (https://my-lab.example; me@my-lab.example)'"
            )
        if user_agent and not _HEADER_VALUE.fullmatch(user_agent):
            raise UserError(
                f"user_agent: {user_agent!r} is not a valid HTTP header; use ASCII characters"
            )
        self.endpoint = endpoint
        self.identity = identity or endpoint
        self.remote = not is_local(endpoint)
        self.user_agent = user_agent or "factfoundry (local)"
        self.cache_dir = Path(cache_dir) if cache_dir else None
        self.timeout_s = timeout_s
        self.retries = retries
        self.backoff_s = backoff_s
        self.keep_days = keep_days
        self.families: dict[str, Family] = {}
        self._sleep = sleep
        self._threads = threading.local()  # sessions are not thread-safe

    def _answer(
        self, request: str, family: str, ask: Callable[[], T], rows: Callable[[T], int]
    ) -> T:
        """Return the cached answer to a request, or send it with ``ask`` and cache the answer.

        The request text and the endpoint's identity are the cache key. ``rows`` counts the rows or
        pages of an answer for the manifest.
        """
        cache_file = self._cache_file(request)
        entry = self._read_cache(cache_file)
        if entry is None:
            answer = self._attempts(ask)
            moment = datetime.now(UTC).strftime(_TIME)
            entry = {"source": self.identity, "request": request, "time": moment, "answer": answer}
            if cache_file is not None:
                write_json(cache_file, entry)
        answer = entry["answer"]
        statistics = self.families.setdefault(family, Family())
        statistics.add(request, rows(answer), entry["time"])
        return answer

    def _cache_file(self, request: str) -> Path | None:
        if self.cache_dir is None:
            return None
        key = sha256_text(self.identity + chr(0) + request)
        return self.cache_dir / key[:2] / f"{key}.json"

    def _read_cache(self, cache_file: Path | None) -> dict | None:
        if cache_file is None or not cache_file.is_file():
            return None
        try:
            entry = json.loads(cache_file.read_text(encoding="utf-8"))
        except ValueError:  # truncated, e.g. by a crash
            return None
        age = datetime.now(UTC) - datetime.strptime(entry["time"], _TIME).replace(tzinfo=UTC)
        return entry if age <= timedelta(days=self.keep_days) else None

    def _attempts(self, ask: Callable[[], T]) -> T:
        for attempt in range(self.retries + 1):
            try:
                return ask()
            except Transient as error:
                reason, wait, unfinished = str(error), error.wait_s, error.unfinished
            if wait is None:
                wait = backoff(attempt, self.backoff_s)
            if wait > MAX_WAIT_S:
                # Not an EndpointError, after which the next query would be sent.
                raise UserError(
                    f"{self.endpoint} requests a wait of {wait:.0f} s; resume after that "
                    "(answers so far are in cache_dir)"
                )
            if attempt < self.retries:
                self._sleep(wait)
        raise EndpointError(
            f"{self.endpoint}: no answer in {self.retries + 1} attempts ({reason}); "
            "resume later or send smaller requests",
            unfinished,
            reason,
        )

    @property
    def _session(self) -> requests.Session:
        if not hasattr(self._threads, "session"):
            self._threads.session = self._new_session()
        return self._threads.session

    def _new_session(self) -> requests.Session:
        session = _Session()
        session.headers["User-Agent"] = self.user_agent
        session.trust_env = self.remote  # no environment proxy for loopback
        return session

    def _fetch(
        self,
        method: str,
        url: str,
        data: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        accepted: Collection[int] = (200, 404),
        secret: str = "",
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Make one attempt and return status, headers (case-insensitive) and body.

        ``accepted`` statuses are left to the caller; ``secret`` is removed from all messages. The
        body is form-encoded unless ``headers`` has a content type.
        """
        deadline = time.monotonic() + self.timeout_s
        form = {"Content-Type": "application/x-www-form-urlencoded"} if data else {}
        try:
            with self._session.request(
                method,
                url,
                data=data,
                headers={**form, **(headers or {})},
                stream=True,
                timeout=(min(CONNECT_S, self.timeout_s), self.timeout_s),
            ) as response:
                if target := _redirect_target(response):
                    target = target.replace(secret, "***") if secret else target
                    raise UserError(f"{self.endpoint}: moved to {target}; use that address")
                read = partial(response.raw.read1, 1 << 16, decode_content=True)
                body = read_until(read, deadline, MAX_BYTES + 1)
        except (TimeoutError, requests.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise Transient(f"{type(error).__name__}: {one_line(error)}", unfinished=True) from None
        except requests.exceptions.InvalidURL:  # its text may contain the proxy's password
            raise UserError(
                f"{self.endpoint}: invalid URL; check the address and the proxy in "
                "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY"
            ) from None
        # Truncated bodies raise errors of urllib3, an invalid Location a ValueError.
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as e:
            raise Transient(f"{type(e).__name__}: {one_line(e)}") from None
        if len(body) > MAX_BYTES:
            raise Transient(f"the answer is longer than {MAX_BYTES >> 20} MiB", unfinished=True)
        status = response.status_code
        body = body.replace(secret.encode(), b"***") if secret else body
        if status in TRANSIENT_STATUS:
            header = response.headers.get("Retry-After")
            wait = retry_after(header) if status in {429, 503} else None
            raise Transient(
                f"HTTP {status}{_message_of(body)}", wait, unfinished=status in UNFINISHED_STATUS
            )
        if status not in accepted:
            raise UserError(
                f"{self.endpoint}: HTTP {status} {response.reason}; "
                "check the address and user_agent"
            )
        return status, response.headers, body


class _Session(requests.Session):
    """A session without redirects, which would drop POST data and leak it to other hosts."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


def _redirect_target(response: requests.Response) -> str | None:
    target = urljoin(response.url, response.headers.get("Location", "")).partition("?")[0]
    return target if response.is_redirect and target != response.url.partition("?")[0] else None


def is_http_url(endpoint: str) -> bool:
    """Whether a text is an http(s) URL with a host."""
    try:
        parts = urlsplit(endpoint)
        parts.port  # noqa: B018 (raises if invalid)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def check_address(option: str, address: str) -> None:
    """Reject invalid URLs, and URLs with credentials, which would be recorded."""
    if "@" in address or "?" in address:
        raise UserError(
            f"{option}: contains credentials or a query, which would be recorded in results and "
            "manifests; use the URL without them"
        )
    if not is_http_url(address):
        raise UserError(f"{option}: expected an http(s) URL, got {address!r}")


def check_key_name(api_key_env: str) -> None:
    """Reject an API key given instead of the name of its environment variable."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", api_key_env):
        raise UserError(
            "api_key_env: expected the name of an environment variable in capitals, not the key"
        )


def api_key(api_key_env: str) -> str:
    """Return the API key from an environment variable; empty if not set."""
    key = os.environ.get(api_key_env, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UserError(
            f"{api_key_env}: contains invalid characters, such as curly quotation marks; set "
            "it again"
        )
    return key


def is_local(endpoint: str) -> bool:
    """Whether an endpoint is on this machine."""
    return urlsplit(endpoint).hostname in {"127.0.0.1", "localhost", "::1"}


def chunks(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Split ``items`` into lists of at most ``size``."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def read_until(read: Callable[[], bytes], deadline: float, max_bytes: int | None = None) -> bytes:
    """Read a body before ``deadline`` (``time.monotonic``), up to ``max_bytes``.

    Socket time-outs alone do not stop a server that drips bytes. ``read`` returns the available
    bytes, empty at the end.
    """
    parts, size = [], 0
    while (max_bytes is None or size < max_bytes) and (part := read()):
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError("the answer was not complete in time")
    return b"".join(parts)[:max_bytes]


@contextmanager
def json_reply(body: bytes) -> Iterator[Any]:
    """Yield the JSON of an answer; errors of the block become ``Transient``."""
    fault = "not valid JSON"
    try:
        value = json.loads(body)
        if _ESCAPED_SURROGATE.search(body):  # lone surrogates cannot be written
            value = json.loads(replace_lone_surrogates(json.dumps(value, ensure_ascii=False)))
        fault = "not in the expected format"
        yield value
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        tail = body[-80:].decode("utf-8", errors="replace")
        raise Transient(f"the answer is {fault}; it ends with {tail!r}", unfinished=True) from None


def backoff(attempt: int, first_s: float = 1.0) -> float:
    """Return the wait in seconds before a retry: doubled with each ``attempt``, at most a minute.

    Up to a quarter is added at random, so that clients do not retry simultaneously.
    """
    return min(first_s * 2**attempt, MAX_BACKOFF_S) * (1 + random.random() / 4)


def retry_after(header: str | None) -> float:
    """Return the wait in seconds of a ``Retry-After`` header (number or date); default a minute."""
    if header is None:
        return DEFAULT_RETRY_AFTER_S
    try:
        wait = float(header)
    except ValueError:
        try:
            wait = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return DEFAULT_RETRY_AFTER_S
    # Negative or NaN: a date in the past by our clock.
    return wait if wait >= 0 else DEFAULT_RETRY_AFTER_S


def _message_of(body: bytes) -> str:
    message = one_line(body.decode("utf-8", errors="replace"))
    return f": {message}" if message and not message.startswith("<") else ""


def one_line(error: object) -> str:
    """Return the text of an error in one line of at most 300 characters."""
    return " ".join(str(error).split())[:300]
