"""How the clients behave: they say who asks, ask one thing at a time, wait, and keep answers.

The rules are those of Wikimedia's etiquette (a User-Agent that names a contact, serial requests,
``Retry-After``, no endless loops) and hold for any server. An answer that is on disk is not asked
for again, so a builder that is killed and started again goes on where it was.
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

# The server, or something before it, may do better next time.
TRANSIENT_STATUS = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
# With these a server says that it began an answer and did not finish.
UNFINISHED_STATUS = {500, 504}
CONNECT_S = 10.0
MAX_BACKOFF_S = 60.0
DEFAULT_RETRY_AFTER_S = 60.0  # what Wikidata's operators ask for where the header is absent
MAX_WAIT_S = 900.0
# Of an answer, unpacked; far above what any service here gives, and within a laptop's memory.
MAX_BYTES = 1 << 30
# For estimates: serial requests to a public endpoint take about this long each.
SECONDS_PER_REQUEST = 1.0
# Half a pair of JSON's escapes, or a whole one, which is no harm.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
# What may stand in a header; of other characters no connection can send any.
_HEADER = re.compile(r"[!-~\xa1-\xff][ -~\xa1-\xff]*")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class EndpointError(UserError):
    """The endpoint gave no usable answer; what was answered before is kept in the cache.

    Attributes:
        too_much: the endpoint is there but did not finish, so that asking for less may help.
        reason: what the last attempt met.
    """

    def __init__(self, message: str, too_much: bool = False, reason: str = ""):
        super().__init__(message)
        self.too_much = too_much
        self.reason = reason


class RefusedError(UserError):
    """The endpoint understood who asks and what, and calls the request itself wrong."""


class Transient(Exception):
    """An attempt that may be repeated.

    Attributes:
        wait_s: the wait that the server asked for, in seconds.
        too_much: the answer was begun and not finished.
    """

    def __init__(self, reason: str, wait_s: float | None = None, too_much: bool = False):
        super().__init__(reason)
        self.wait_s = wait_s
        self.too_much = too_much


@dataclass
class Family:
    """All requests of one purpose, e.g. ``population`` or ``P106``; the manifest lists them.

    Attributes:
        requests: how many were answered; one from the disk counts as when it was fetched.
        rows: how many rows or pages came back.
        first: UTC time of the first answer, ISO 8601 to the second.
        last: of the last one.
        example: the first request's text.
        cached: how many came from the disk.
    """

    requests: int = 0
    rows: int = 0
    first: str = "9999"
    last: str = ""
    example: str = ""
    cached: int = 0
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256, repr=False)

    def add(self, request: str, rows: int, moment: str, cached: bool) -> None:
        """Count one answered request."""
        self.example = self.example or request
        self._digest.update(f"{request}\n".encode())
        self.requests += 1
        self.rows += rows
        self.first, self.last = min(self.first, moment), max(self.last, moment)
        self.cached += cached

    @property
    def sha256(self) -> str:
        """Of all the requests' texts, in order."""
        return self._digest.hexdigest()


class PoliteClient:
    """Asks one server, one request at a time; the base of every client here.

    Args:
        endpoint: URL of the service.
        user_agent: ``client/version (page or e-mail)``; needed for any remote endpoint, because
            operators slow down and then block the libraries' defaults.
        cache_dir: folder of kept answers, one file a request, so that a killed builder goes on
            where it was; none are kept without it.
        identity: what the cache and the manifest call the data behind the endpoint; its URL by
            default. A local server has another port each time, so it is named by its data.
        timeout_s: seconds until an attempt is given up, from the request to the last byte.
        retries: how often a failed attempt is repeated.
        backoff_s: wait before the first repetition, doubled each time, at most a minute, and up
            to a quarter longer by chance. A server's own ``Retry-After`` goes before it.
        keep_days: an answer on disk that is older than this is asked for again.
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
                f"user_agent: {endpoint} needs one that says who asks, "
                "e.g. 'my-lab-facts/1.0 (https://my-lab.example; me@my-lab.example)'"
            )
        if user_agent and not _HEADER.fullmatch(user_agent):
            raise UserError(f"user_agent: {user_agent!r} is no header of HTTP; give it in ASCII")
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
        self._threads = threading.local()  # sessions are not for two threads at a time

    def _answer(
        self, request: str, family: str, ask: Callable[[], T], rows: Callable[[T], int]
    ) -> T:
        """The kept answer to a request, or a new one, which is then kept.

        Args:
            request: the request's whole text; with the endpoint's identity it is the key.
            family: what it is for.
            ask: one attempt; raises ``Transient`` where another may do better.
            rows: how many rows or pages an answer has, for the manifest.
        """
        kept = self._file(request)
        entry = self._read(kept)
        cached = entry is not None
        if entry is None:
            answer = self._attempts(ask)
            moment = datetime.now(UTC).strftime(_TIME)
            entry = {"source": self.identity, "request": request, "time": moment, "answer": answer}
            if kept is not None:
                write_json(kept, entry)
        answer = entry["answer"]
        log = self.families.setdefault(family, Family())
        log.add(request, rows(answer), entry["time"], cached)
        return answer

    def _file(self, request: str) -> Path | None:
        if self.cache_dir is None:
            return None
        key = sha256_text(self.identity + chr(0) + request)
        return self.cache_dir / key[:2] / f"{key}.json"

    def _read(self, kept: Path | None) -> dict | None:
        if kept is None or not kept.is_file():
            return None
        try:
            entry = json.loads(kept.read_text(encoding="utf-8"))
        except ValueError:  # a machine that went down, or a disk that was copied in part
            return None
        age = datetime.now(UTC) - datetime.strptime(entry["time"], _TIME).replace(tzinfo=UTC)
        return entry if age <= timedelta(days=self.keep_days) else None

    def _attempts(self, ask: Callable[[], T]) -> T:
        for attempt in range(self.retries + 1):
            try:
                return ask()
            except Transient as error:
                reason, wait, too_much = str(error), error.wait_s, error.too_much
            if wait is None:
                wait = backoff(attempt, self.backoff_s)
            if wait > MAX_WAIT_S:
                # No EndpointError, after which the next question would be asked all the same.
                raise UserError(
                    f"{self.endpoint} asks to wait {wait:.0f} s; start again after that "
                    "(answers so far are kept in cache_dir)"
                )
            if attempt < self.retries:
                self._sleep(wait)
        raise EndpointError(
            f"{self.endpoint} gave no answer in {self.retries + 1} attempts ({reason}); "
            "start again later, or ask for less at a time",
            too_much,
            reason,
        )

    @property
    def _session(self) -> requests.Session:
        if not hasattr(self._threads, "session"):
            self._threads.session = self._open()
        return self._threads.session

    def _open(self) -> requests.Session:
        session = _Session()
        session.headers["User-Agent"] = self.user_agent
        session.trust_env = self.remote  # a proxy of the environment is none for loopback
        return session

    def _fetch(
        self,
        method: str,
        url: str,
        data: str | None = None,
        headers: Mapping[str, str] | None = None,
        known: Collection[int] = (200, 404),
        secret: str = "",
    ) -> tuple[int, Mapping[str, str], bytes]:
        """One attempt, read to its end: status, headers (in any letter case), body.

        Args:
            data: the body; a form's unless ``headers`` say what it is.
            known: statuses that the caller reads itself.
            secret: what no message may show, even where the server repeats it.
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
                if moved := _elsewhere(response):
                    moved = moved.replace(secret, "***") if secret else moved
                    raise UserError(f"{self.endpoint}: moved to {moved}; give that address")
                read = partial(response.raw.read1, 1 << 16, decode_content=True)
                body = read_until(read, deadline, MAX_BYTES + 1)
        except (TimeoutError, requests.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise Transient(f"{type(error).__name__}: {one_line(error)}", too_much=True) from None
        except requests.exceptions.InvalidURL:  # whose text may hold the proxy's password
            raise UserError(
                f"{self.endpoint}: cannot be asked; check the address, and the proxy that "
                "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names"
            ) from None
        # A body that is cut short of its Content-Length ends in urllib3's own errors, a Location
        # that is none in a ValueError.
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as e:
            raise Transient(f"{type(e).__name__}: {one_line(e)}") from None
        if len(body) > MAX_BYTES:
            raise Transient(f"the answer is longer than {MAX_BYTES >> 20} MiB", too_much=True)
        status = response.status_code
        body = body.replace(secret.encode(), b"***") if secret else body
        if status in TRANSIENT_STATUS:
            asked = response.headers.get("Retry-After")
            wait = retry_after(asked) if status in {429, 503} else None
            raise Transient(
                f"HTTP {status}{_plain(body)}", wait, too_much=status in UNFINISHED_STATUS
            )
        if status not in known:
            raise UserError(
                f"{self.endpoint} answers HTTP {status} {response.reason}; "
                "check the address and user_agent"
            )
        return status, response.headers, body


class _Session(requests.Session):
    """Follows no redirect.

    The form of a POST would be lost on the way, each request would be two, another host might get
    what is for this one, and a circle, or a redirect whose body never ends, would hold us.
    """

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


def _elsewhere(response: requests.Response) -> str | None:
    there = urljoin(response.url, response.headers.get("Location", "")).partition("?")[0]
    return there if response.is_redirect and there != response.url.partition("?")[0] else None


def is_http_url(endpoint: str) -> bool:
    """Whether a text is an http(s) URL with a host."""
    try:
        parts = urlsplit(endpoint)
        parts.port  # noqa: B018 (raises where it is none)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def check_address(option: str, address: str) -> None:
    """Refuse what is no address of a service, and one with a password, which would be recorded."""
    if "@" in address or "?" in address:
        raise UserError(
            f"{option}: holds a user or a password, or a query, which would stand in results and "
            "manifests; give the URL without it"
        )
    if not is_http_url(address):
        raise UserError(f"{option}: {address!r} is no http(s) URL of a service")


def check_key_name(api_key_env: str) -> None:
    """Refuse a key in the place of the environment variable that holds it."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", api_key_env):
        raise UserError(
            "api_key_env: give the name of an environment variable, in capitals, not the key"
        )


def api_key(api_key_env: str) -> str:
    """The key that an environment variable holds; empty if it is not set."""
    key = os.environ.get(api_key_env, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UserError(
            f"{api_key_env}: holds characters that no key has, such as curly quotation marks; set "
            "it again"
        )
    return key


def is_local(endpoint: str) -> bool:
    """Whether an endpoint is on this machine."""
    return urlsplit(endpoint).hostname in {"127.0.0.1", "localhost", "::1"}


def chunks(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Cut ``items`` into lists of at most ``size``: ``VALUES`` blocks, or titles of a request."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def read_until(read: Callable[[], bytes], deadline: float, most: int | None = None) -> bytes:
    """A whole body before ``deadline``; a server that drips would outlive socket time-outs.

    Args:
        read: gives whatever has come, and nothing at the end.
        deadline: on the clock of ``time.monotonic``.
        most: bytes; what follows them is not read.

    Raises:
        TimeoutError: the body was not whole in time.
    """
    parts, size = [], 0
    while (most is None or size < most) and (part := read()):
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError("the answer was not whole in time")
    return b"".join(parts)[:most]


@contextmanager
def json_reply(body: bytes) -> Iterator[Any]:
    """The JSON of an answer, to be read within the block.

    Raises:
        Transient: it is cut or none, or what the block looks for is not there.
    """
    what = "no whole JSON"
    try:
        found = json.loads(body)
        if _HALF.search(body):  # a character that the server cut could be written to no file
            found = json.loads(replace_lone_surrogates(json.dumps(found, ensure_ascii=False)))
        what = "not of the shape that it should have"
        yield found
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        tail = body[-80:].decode("utf-8", errors="replace")
        raise Transient(f"the answer is {what}, it ends with {tail!r}", too_much=True) from None


def backoff(attempt: int, first_s: float = 1.0) -> float:
    """Seconds to wait before another attempt: doubled each time, at most a minute.

    Up to a quarter is added by chance, so that clients that failed together do not return together.

    Args:
        attempt: number of the attempt that failed, from 0.
        first_s: the wait after the first one.
    """
    return min(first_s * 2**attempt, MAX_BACKOFF_S) * (1 + random.random() / 4)


def retry_after(header: str | None) -> float:
    """Seconds to wait: the header's number or HTTP date, else a minute."""
    if header is None:
        return DEFAULT_RETRY_AFTER_S
    try:
        wait = float(header)
    except ValueError:
        try:
            wait = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return DEFAULT_RETRY_AFTER_S
    # Below 0, or no number: a date that is over by our clock, which may be fast.
    return wait if wait >= 0 else DEFAULT_RETRY_AFTER_S


def _plain(body: bytes) -> str:
    said = one_line(body.decode("utf-8", errors="replace"))
    return f": {said}" if said and not said.startswith("<") else ""


def one_line(error: object) -> str:
    """An error's text for a message."""
    return " ".join(str(error).split())[:300]
