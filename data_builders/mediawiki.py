"""Polite clients of a MediaWiki's action API and of Wikimedia's page-view service, over requests.

Rules kept (API:Etiquette, Manual:Maxlag parameter, API:Continue): serial requests, titles joined up
to fifty, ``maxlag`` with every request and its reply treated as a wait, all members of ``continue``
copied until it is absent, a page given out only when ``batchcomplete`` says that it is whole.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

import requests
import urllib3
from tqdm import tqdm

from data_builders.polite import (
    TRANSIENT_STATUS,
    EndpointError,
    PoliteClient,
    RefusedError,
    Transient,
    chunks,
    one_line,
    read_until,
    retry_after,
)
from records import UserError

TITLES_A_REQUEST = 50
# Longer ones go by POST: servers refuse a request line of more than about 8 kB.
LONGEST_GET = 4000
CONNECT_S = 10.0
# What a wiki says when it is only busy; anything else will not mend itself.
BUSY_CODES = ("maxlag", "ratelimited", "readonly", "internal_api_error")

Page = dict[str, object]


class HttpClient(PoliteClient):
    """A polite client over one requests session, which asks for compressed answers.

    Args:
        options: those of ``PoliteClient``.
    """

    def __init__(
        self,
        endpoint: str,
        user_agent: str | None = None,
        cache_dir: str | Path | None = None,
        **options: object,
    ):
        super().__init__(endpoint, user_agent, cache_dir, **options)
        self._session = requests.Session()
        self._session.headers["User-Agent"] = self.user_agent
        self._session.trust_env = self.remote  # a proxy of the environment is none for loopback

    def _fetch(self, method: str, url: str, data: str | None = None) -> tuple[int, dict, bytes]:
        """One attempt, read to its end: status (200 or 404), headers, body.

        Raises:
            UserError: a status that will not mend itself.
            Transient: anything else that is no whole answer.
        """
        deadline = time.monotonic() + self.timeout_s
        form = {"Content-Type": "application/x-www-form-urlencoded"} if data else None
        try:
            with self._session.request(
                method,
                url,
                data=data,
                headers=form,
                stream=True,
                timeout=(min(CONNECT_S, self.timeout_s), self.timeout_s),
            ) as response:
                raw = response.raw
                body = read_until(lambda: raw.read1(1 << 16, decode_content=True), deadline)
        except (TimeoutError, requests.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise Transient(f"{type(error).__name__}: {one_line(error)}", too_much=True) from None
        # A body that is cut short of its Content-Length ends in urllib3's own errors.
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise Transient(f"{type(error).__name__}: {one_line(error)}") from None
        status = response.status_code
        if status in TRANSIENT_STATUS:
            asked = response.headers.get("Retry-After")
            raise Transient(f"HTTP {status}", retry_after(asked) if status in {429, 503} else None)
        if status not in {200, 404}:
            raise UserError(
                f"{self.endpoint} answers HTTP {status} {response.reason}; "
                "check the address and user_agent"
            )
        return status, dict(response.headers), body


class MediaWiki(HttpClient):
    """Asks one wiki's action API.

    Args:
        endpoint: its URL, e.g. ``https://en.wikipedia.org/w/api.php``.
        maxlag: seconds of database lag at which the wiki tells us to come back later.
        options: those of ``PoliteClient``.
    """

    def __init__(
        self,
        endpoint: str,
        user_agent: str | None = None,
        cache_dir: str | Path | None = None,
        *,
        maxlag: int = 5,
        **options: object,
    ):
        super().__init__(endpoint, user_agent, cache_dir, **options)
        self.maxlag = maxlag

    def ask(self, params: Mapping[str, object], family: str) -> dict:
        """One request to the API.

        Args:
            params: parameters of ``action=query`` (or another action, if named).
            family: what it is for; the manifest counts requests by it.

        Returns:
            The reply in format version 2.

        Raises:
            RefusedError: the wiki calls the request wrong; the message has its error code.
            EndpointError: no whole answer after all retries.
        """
        whole = {"action": "query", "format": "json", "formatversion": 2, **params}
        text = urlencode(sorted((name, str(value)) for name, value in whole.items()))
        return self._answer(text, family, lambda: self._attempt(text), _rows)

    def follow(self, params: Mapping[str, object], family: str) -> Iterator[dict]:
        """All replies to a query, request after request until there is no ``continue``."""
        more: dict = {}
        while True:
            reply = self.ask({**params, **more}, family)
            yield reply
            if "continue" not in reply:
                if not reply.get("batchcomplete"):
                    raise EndpointError(f"{self.endpoint} ended a query that is not complete")
                return
            more = reply["continue"]

    def members(self, category: str, family: str = "category members") -> Iterator[str]:
        """Titles of the articles in a category, in the wiki's order.

        Args:
            category: its title, e.g. ``Category:Human name disambiguation pages``.
        """
        params = {
            "list": "categorymembers",
            "cmtitle": category,
            "cmnamespace": 0,
            "cmtype": "page",
            "cmlimit": "max",
        }
        for reply in self.follow(params, family):
            for member in reply.get("query", {}).get("categorymembers", ()):
                yield member["title"]

    def pages(
        self,
        titles: Sequence[str],
        params: Mapping[str, object],
        family: str,
        dropped: Counter[str] | None = None,
        per_request: int = TITLES_A_REQUEST,
    ) -> Iterator[tuple[str, Page]]:
        """The pages behind titles, redirects followed, each with all that was asked for.

        A batch that the wiki refuses is asked again in halves, so that one bad title costs no
        other its page.

        Args:
            titles: as a link or a user wrote them.
            params: what to know of each, e.g. ``{"prop": "links", "pllimit": "max"}``.
            family: what it is for.
            dropped: counts titles without a page, by reason.
            per_request: titles a request; fewer where the wiki allows fewer, e.g. one for whole
                texts.

        Yields:
            The title that was asked for, and its page in format version 2 (``title``, ``pageid``,
            …); several titles may lead to one page.
        """
        dropped = Counter() if dropped is None else dropped
        good = [title for title in titles if title.strip() and "|" not in title]
        dropped["title that no page can have"] += len(titles) - len(good)
        parts = list(chunks(good, per_request))
        for part in tqdm(parts, desc=family, unit="request", leave=False, disable=None):
            for title, page in self._halved(part, params, family, dropped):
                if page.get("missing"):
                    dropped["title without a page"] += 1
                elif page.get("invalid"):
                    dropped["title that no page can have"] += 1
                else:
                    yield title, page

    def _halved(
        self, titles: list[str], params: Mapping, family: str, dropped: Counter[str]
    ) -> Iterable[tuple[str, Page]]:
        try:
            return self._batch(titles, params, family)
        except RefusedError:
            if len(titles) == 1:
                dropped["title that the wiki refuses"] += 1
                return []
        half = len(titles) // 2
        first = self._halved(titles[:half], params, family, dropped)
        return [*first, *self._halved(titles[half:], params, family, dropped)]

    def _batch(self, titles: list[str], params: Mapping, family: str) -> list[tuple[str, Page]]:
        found: dict[str, Page] = {}
        renamed: dict[str, str] = {}
        asked = {"titles": "|".join(titles), "redirects": 1, **params}
        for reply in self.follow(asked, family):
            query = reply.get("query", {})
            for step in (*query.get("normalized", ()), *query.get("redirects", ())):
                renamed[step["from"]] = step["to"]
            for page in query.get("pages", ()):
                _merge(found.setdefault(page["title"], {}), page)
        absent = {"missing": True}  # e.g. a link to another wiki
        return [(title, found.get(_end(title, renamed), absent)) for title in titles]

    def _attempt(self, text: str) -> dict:
        sent = f"{text}&maxlag={self.maxlag}"
        if len(sent) <= LONGEST_GET:
            status, headers, body = self._fetch("GET", f"{self.endpoint}?{sent}")
        else:
            status, headers, body = self._fetch("POST", self.endpoint, sent)
        if status == 404:
            raise UserError(f"{self.endpoint}: no such page; give the URL of a wiki's api.php")
        try:
            reply = json.loads(body)
            error = reply.get("error")
        except (ValueError, AttributeError):
            tail = body[-80:].decode("utf-8", errors="replace")
            raise Transient(f"the answer is no whole JSON, it ends with {tail!r}") from None
        if error is None:
            if _stands_still(text, reply):
                raise Transient("the wiki continues where it was")
            return reply
        code, info = error.get("code", ""), one_line(error.get("info", ""))
        if code.startswith(BUSY_CODES):
            asked = headers.get("Retry-After")
            raise Transient(f"{code}: {info}", retry_after(asked) if asked else None)
        raise RefusedError(f"{self.endpoint} refuses the request: {code}: {info}")


class PageViews(HttpClient):
    """Asks Wikimedia's REST service how often pages were looked at.

    Args:
        endpoint: ``https://wikimedia.org/api/rest_v1``, or another of its shape.
        project: whose pages, e.g. ``en.wikipedia``.
        options: those of ``PoliteClient``.
    """

    def __init__(
        self,
        endpoint: str = "https://wikimedia.org/api/rest_v1",
        user_agent: str | None = None,
        cache_dir: str | Path | None = None,
        *,
        project: str = "en.wikipedia",
        **options: object,
    ):
        super().__init__(endpoint.rstrip("/"), user_agent, cache_dir, **options)
        self.project = project

    def views(self, title: str, start: str, end: str, family: str = "page views") -> int:
        """Views of a page by people (not by programs) in whole months.

        Args:
            title: the page.
            start: first day, ``YYYYMMDD``.
            end: last day.

        Returns:
            Their number; 0 where the service knows of none (it answers 404 then).
        """
        path = (
            f"metrics/pageviews/per-article/{self.project}/all-access/user/"
            f"{quote(title.replace(' ', '_'), safe='')}/monthly/{start}/{end}"
        )
        reply = self._answer(path, family, lambda: self._attempt(path), lambda r: len(r["items"]))
        return sum(item["views"] for item in reply["items"])

    def _attempt(self, path: str) -> dict:
        status, _, body = self._fetch("GET", f"{self.endpoint}/{path}")
        try:
            reply = json.loads(body)
            if status == 404 and reply.get("detail"):  # the service's own words, not a gateway's
                return {"items": []}
            [int(item["views"]) for item in reply["items"]]
        except (ValueError, KeyError, TypeError, AttributeError):
            tail = body[-80:].decode("utf-8", errors="replace")
            raise Transient(f"HTTP {status}, no whole JSON, it ends with {tail!r}") from None
        return reply


def _says_not_found(reply: Mapping) -> bool:
    """Whether a 404 is the service's own: by its title, before 2023 by its type."""
    title = str(reply.get("title", "")).casefold()
    return title.startswith("not found") or "not_found" in str(reply.get("type", ""))


def _rows(reply: Mapping) -> int:
    """Pages or list members of one reply."""
    query = reply.get("query", {})
    return sum(
        len(value) for name, value in query.items() if name not in ("normalized", "redirects")
    )


def _stands_still(text: str, reply: Mapping) -> bool:
    """Whether a reply asks to go on with what this request went on with, which would not end."""
    sent = dict(parse_qsl(text, keep_blank_values=True))
    more = reply.get("continue", {})
    return bool(more) and all(sent.get(name) == str(value) for name, value in more.items())


def _merge(whole: Page, part: Mapping) -> None:
    """Add to a page what a continued reply knows more of it."""
    for name, value in part.items():
        if isinstance(value, list):
            whole.setdefault(name, [])
            whole[name].extend(value)
        else:
            whole.setdefault(name, value)


def _end(title: str, renamed: Mapping[str, str]) -> str:
    """Where a title leads after normalisation and redirects; a circle ends where it closes."""
    seen = {title}
    while title in renamed and renamed[title] not in seen:
        title = renamed[title]
        seen.add(title)
    return title
