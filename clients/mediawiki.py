"""A polite client of a MediaWiki's action API.

Rules kept (API:Etiquette, Manual:Maxlag parameter, API:Continue): serial requests, titles joined up
to fifty, ``maxlag`` with every request and its reply treated as a wait, all members of ``continue``
copied until it is absent, a page given out only when ``batchcomplete`` says that it is whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode

from tqdm import tqdm

from clients.polite import (
    EndpointError,
    PoliteClient,
    RefusedError,
    Transient,
    chunks,
    one_line,
    retry_after,
    whole_json,
)
from records import UserError

TITLES_A_REQUEST = 50
# Longer ones go by POST: servers refuse a request line of more than about 8 kB.
LONGEST_GET = 4000
# What a wiki says when it is only busy; anything else will not mend itself.
BUSY_CODES = ("maxlag", "ratelimited", "readonly", "internal_api_error")

Page = dict[str, object]


class MediaWiki(PoliteClient):
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
                # What Unicode's normal form changes is given in percent signs.
                start = unquote(step["from"]) if step.get("fromencoded") else step["from"]
                renamed[start] = step["to"]
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
        with whole_json(body) as reply:
            error = reply.get("error")
            busy = error is not None and error["code"].startswith(BUSY_CODES)
        if error is None:
            if _stands_still(text, reply):
                raise Transient("the wiki continues where it was")
            return reply
        said = f"{error['code']}: {one_line(error.get('info', ''))}"
        if busy:
            asked = headers.get("Retry-After")
            raise Transient(said, retry_after(asked) if asked else None)
        raise RefusedError(f"{self.endpoint} refuses the request: {said}")


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
