"""A polite SPARQL client over SPARQLWrapper: one request at a time, retries, an on-disk cache.

SPARQLWrapper itself never retries, and its time-out is one of each socket read. Public endpoints
(Wikidata's query service, DBpedia) answer in two ways that look like success and are none: the JSON
of a 200 answer is cut, or an error text stands inside it. Both count as time-outs here, never as
an empty answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from pathlib import Path
from typing import TypeVar
from urllib.error import HTTPError
from urllib.parse import urlsplit

from SPARQLWrapper import JSON, POST, SPARQLWrapper
from SPARQLWrapper.SPARQLExceptions import (
    EndPointInternalError,
    EndPointNotFound,
    QueryBadFormed,
    Unauthorized,
    URITooLong,
)

from records import UserError, sha256_text, write_json

T = TypeVar("T")

TRANSIENT_STATUS = {408, 429, 500, 502, 503, 504}
MAX_BACKOFF_S = 60.0
DEFAULT_RETRY_AFTER_S = 60.0  # what Wikidata's operators ask for where the header is absent
LONGEST_WAIT_S = 900.0

Sleep = Callable[[float], None]


class EndpointError(UserError):
    """The endpoint gave no usable answer; what was answered before is kept in the cache."""


class _Transient(Exception):
    """An attempt that may be repeated, with the wait the server asked for, in seconds."""

    def __init__(self, reason: str, wait_s: float | None = None):
        super().__init__(reason)
        self.wait_s = wait_s


@dataclass(frozen=True)
class Request:
    """One answered query.

    Attributes:
        family: what it was for, e.g. ``population`` or ``P106``.
        query: the query's text.
        rows: how many rows came back.
        time: UTC time of the answer, ISO 8601 to the second; of the first one when cached.
        cached: whether it came from the disk.
    """

    family: str
    query: str
    rows: int
    time: str
    cached: bool


def values_chunks(items: Sequence[T], size: int = 100) -> Iterator[list[T]]:
    """Cut ``items`` into lists of at most ``size``, for ``VALUES ?x { … }`` blocks."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def is_local(endpoint: str) -> bool:
    """Whether an endpoint is on this machine."""
    return urlsplit(endpoint).hostname in {"127.0.0.1", "localhost", "::1"}


class SparqlClient:
    """Asks one endpoint, one request at a time.

    Args:
        endpoint: URL that takes SPARQL queries by POST, e.g.
            ``https://query.wikidata.org/sparql``.
        user_agent: ``client/version (page or e-mail)``; needed for any remote endpoint, because
            operators slow down and then block the libraries' defaults.
        cache_dir: folder of kept answers, one file a query, so that a killed builder goes on
            where it was; none are kept without it.
        identity: what the cache and the manifest call the data behind the endpoint; its URL by
            default. A local server has another port each time, so it is named by its data.
        timeout_s: seconds until an attempt is given up, from the request to the last byte.
        retries: how often a failed attempt is repeated.
        backoff_s: wait before the first repetition, doubled each time, at most a minute. A
            server's own ``Retry-After`` goes before it.
        sleep: called with each wait in seconds.

    Raises:
        UserError: a remote endpoint without ``user_agent``.
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
        sleep: Sleep = time.sleep,
    ):
        if urlsplit(endpoint).scheme not in {"http", "https"}:
            raise UserError(f"endpoint: {endpoint!r} is no http(s) URL of a SPARQL service")
        if not user_agent and not is_local(endpoint):
            raise UserError(
                f"user_agent: {endpoint} needs one that says who asks, "
                "e.g. 'my-lab-facts/1.0 (https://my-lab.example; me@my-lab.example)'"
            )
        self.endpoint = endpoint
        self.identity = identity or endpoint
        self.remote = not is_local(endpoint)
        self.user_agent = user_agent or "factfoundry (local)"
        self.cache_dir = Path(cache_dir) if cache_dir else None
        self.timeout_s = timeout_s
        self.retries = retries
        self.backoff_s = backoff_s
        self.requests: list[Request] = []
        self._sleep = sleep

    def select(self, query: str, family: str = "query") -> list[dict[str, str]]:
        """Answer a SELECT query.

        Args:
            query: the SPARQL text.
            family: what the query is for; the manifest counts requests by it.

        Returns:
            One dict a row, variable to value; a variable that is unbound in a row is absent.

        Raises:
            UserError: the endpoint calls the query malformed, or refuses us.
            EndpointError: no whole answer after all retries.
        """
        kept = self._cache_file(query)
        cached = kept is not None and kept.is_file()
        if cached:
            answer = json.loads(kept.read_text(encoding="utf-8"))
        else:
            rows = self._ask(query)
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            answer = {"source": self.identity, "query": query, "time": now, "rows": rows}
            if kept is not None:
                write_json(kept, answer)
        rows = answer["rows"]
        self.requests.append(Request(family, query, len(rows), answer["time"], cached))
        return rows

    def _cache_file(self, query: str) -> Path | None:
        if self.cache_dir is None:
            return None
        return self.cache_dir / f"{sha256_text(self.identity + chr(0) + query)}.json"

    def _ask(self, query: str) -> list[dict[str, str]]:
        for attempt in range(self.retries + 1):
            try:
                return self._attempt(query)
            except _Transient as error:
                reason = str(error)
                wait = error.wait_s
            if wait is None:
                wait = min(self.backoff_s * 2**attempt, MAX_BACKOFF_S)
            if wait > LONGEST_WAIT_S:
                raise EndpointError(
                    f"{self.endpoint} asks to wait {wait:.0f} s; start again after that "
                    "(answers so far are kept in cache_dir)"
                )
            if attempt < self.retries:
                self._sleep(wait)
        raise EndpointError(
            f"{self.endpoint} gave no answer in {self.retries + 1} attempts ({reason}); "
            "start again later, or ask for less at a time"
        )

    def _attempt(self, query: str) -> list[dict[str, str]]:
        deadline = time.monotonic() + self.timeout_s
        wrapper = SPARQLWrapper(self.endpoint, returnFormat=JSON, agent=self.user_agent)
        wrapper.setMethod(POST)  # a GET of some 400 ids is already too long for common servers
        wrapper.setOnlyConneg(True)
        wrapper.setTimeout(max(1, round(self.timeout_s)))
        wrapper.setQuery(query)
        try:
            response = wrapper.query().response
            with response:
                body = _read_until(response, deadline)
        except (QueryBadFormed, URITooLong) as error:
            raise UserError(f"{self.endpoint} refuses the query: {_one_line(error)}") from None
        except (EndPointNotFound, Unauthorized) as error:
            raise UserError(f"endpoint: {self.endpoint}: {_one_line(error)}") from None
        except EndPointInternalError as error:
            raise _Transient(f"HTTP 500: {_one_line(error)}") from None
        except HTTPError as error:
            if error.code not in TRANSIENT_STATUS:
                raise UserError(
                    f"{self.endpoint} answers HTTP {error.code} {error.reason}; "
                    "check the address and user_agent"
                ) from None
            asked = error.headers.get("Retry-After")
            wait = _retry_after(asked) if error.code in {429, 503} else None
            raise _Transient(f"HTTP {error.code}", wait) from None
        except (OSError, HTTPException) as error:  # time-outs, refused or torn connections
            raise _Transient(f"{type(error).__name__}: {_one_line(error)}") from None
        return _rows(body)


def _read_until(response, deadline: float) -> bytes:
    """Read a whole body before ``deadline``; a server that drips would outlive socket time-outs."""
    parts = []
    while part := response.read1(1 << 16):
        parts.append(part)
        if time.monotonic() > deadline:
            raise TimeoutError("the answer was not whole in time")
    return b"".join(parts)


def _rows(body: bytes) -> list[dict[str, str]]:
    try:
        bindings = json.loads(body)["results"]["bindings"]
        return [{name: cell["value"] for name, cell in row.items()} for row in bindings]
    except (ValueError, KeyError, TypeError, AttributeError):
        tail = body[-80:].decode("utf-8", errors="replace")
        raise _Transient(f"the answer is no whole SPARQL JSON, it ends with {tail!r}") from None


def _retry_after(header: str | None) -> float:
    """Seconds to wait: the header's number or HTTP date, else a minute."""
    if header is None:
        return DEFAULT_RETRY_AFTER_S
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(header)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return DEFAULT_RETRY_AFTER_S


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
