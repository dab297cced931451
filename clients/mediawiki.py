"""A polite client of a MediaWiki's action API.

Rules kept (API:Etiquette, Manual:Maxlag parameter, API:Continue): serial requests, titles joined up
to fifty, ``maxlag`` with every request and its reply treated as a wait, all members of ``continue``
copied until it is absent, a page given out only when ``batchcomplete`` says that it is whole.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode

from pydantic import BaseModel, ConfigDict, Field
from tqdm import tqdm

from clients.polite import (
    EndpointError,
    PoliteClient,
    RefusedError,
    Transient,
    chunks,
    json_reply,
    one_line,
    retry_after,
)
from records import UserError

TITLES_PER_REQUEST = 50
# Longer ones go by POST: servers refuse a request line of more than about 8 kB.
MAX_GET_CHARS = 4000
# What a wiki says when it is only busy; anything else will not mend itself.
BUSY_CODES = ("maxlag", "ratelimited", "readonly", "internal_api_error")

Page = dict[str, object]


class _Part(BaseModel):
    """A part of a reply, of which is told what is read of it, here or by those who ask."""

    model_config = ConfigDict(strict=True)


class _Titled(_Part):
    title: str


class _Revision(_Part):
    revid: int
    timestamp: str = ""


class _Props(_Part):
    wikibase_item: str | None = None


class _Page(_Titled):
    pageid: int | None = None
    extract: str | None = None
    pageprops: _Props = _Props()
    revisions: list[_Revision] = Field([], min_length=1)
    links: list[_Titled] = []
    categories: list[_Titled] = []
    redirects: list[_Titled] = []


class _Step(_Part):
    start: str = Field(alias="from")
    to: str


class _Site(_Part):
    server: str
    script: str
    sitename: str


class _Query(_Part):
    general: _Site | None = None
    search: list[_Titled] = []
    categorymembers: list[_Titled] = []
    normalized: list[_Step] = []
    redirects: list[_Step] = []
    pages: list[_Page] = []


class _Reply(_Part):
    query: _Query
    more: dict[str, str | int] = Field({}, alias="continue")
    batchcomplete: bool = False


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
            params: parameters of ``action=query``.
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
        seen: list[dict] = []
        while True:
            reply = self.ask({**params, **more}, family)
            yield reply
            if "continue" not in reply:
                return
            more = reply["continue"]
            if more in seen:
                raise EndpointError(f"{self.endpoint} continues a query in a circle")
            seen.append(more)

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
            for member in reply["query"]["categorymembers"]:
                yield member["title"]

    def pages(
        self,
        titles: Sequence[str],
        params: Mapping[str, object],
        family: str,
        dropped: Counter[str] | None = None,
        per_request: int = TITLES_PER_REQUEST,
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
                if page.get("missing") or page.get("special"):
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
            query = reply["query"]
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
        if len(sent) <= MAX_GET_CHARS:
            status, headers, body = self._fetch("GET", f"{self.endpoint}?{sent}")
        else:
            status, headers, body = self._fetch("POST", self.endpoint, sent)
        if status == 404:
            raise UserError(f"{self.endpoint}: no such page; give the URL of a wiki's api.php")
        with json_reply(body) as reply:
            error = reply.get("error")
            busy = error is not None and error["code"].startswith(BUSY_CODES)
            if error is None:
                _see_that_it_is_whole(text, reply)
        if error is None:
            return reply
        said = f"{error['code']}: {one_line(error.get('info', ''))}"
        if busy:
            asked = headers.get("Retry-After")
            raise Transient(said, retry_after(asked) if asked else None)
        raise RefusedError(f"{self.endpoint} refuses the request: {said}")


def _rows(reply: Mapping) -> int:
    return sum(
        len(value)
        for name, value in reply["query"].items()
        if name not in ("normalized", "redirects") and isinstance(value, list | dict)
    )


def _see_that_it_is_whole(text: str, reply: Mapping) -> None:
    told = _Reply.model_validate(reply)
    sent = dict(parse_qsl(text, keep_blank_values=True))
    wanted = sent.get("list") or ("general" if "meta" in sent else None)
    if wanted and wanted not in reply["query"]:
        raise KeyError(wanted)
    if not told.more and not told.batchcomplete:
        raise Transient("the wiki ended a query that is not complete")
    if told.more and all(sent.get(name) == str(value) for name, value in told.more.items()):
        raise Transient("the wiki continues where it was")


def _merge(whole: Page, part: Mapping) -> None:
    for name, value in part.items():
        if isinstance(value, list):
            whole.setdefault(name, [])
            whole[name].extend(value)
        else:
            whole.setdefault(name, value)


def _end(title: str, renamed: Mapping[str, str]) -> str:
    seen = {title}
    while title in renamed and renamed[title] not in seen:
        title = renamed[title]
        seen.add(title)
    return title
