"""Client of the MediaWiki action API.

Follows API:Etiquette, Manual:Maxlag parameter and API:Continue: serial requests, up to fifty titles
per request, ``maxlag`` with every request and a retry after a lag reply, all members of
``continue`` copied until it is absent, pages returned only after ``batchcomplete``.
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
# Longer requests are sent by POST: servers reject request lines above about 8 kB.
MAX_GET_CHARS = 4000
# Temporary errors; others are permanent.
BUSY_CODES = ("maxlag", "ratelimited", "readonly", "internal_api_error")

Page = dict[str, object]


class _Part(BaseModel):
    """The fields of a reply that are read, here or by callers."""

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
    tofragment: str = ""


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
    """Queries the action API ``endpoint``, e.g. ``https://en.wikipedia.org/w/api.php``.

    ``maxlag`` is the database lag in seconds at which the wiki asks to retry later.
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
        """Send one ``action=query`` request and return the reply in format version 2.

        The manifest counts requests by ``family``.

        Raises:
            RefusedError: the wiki rejects the request; the message has its error code.
            EndpointError: no complete answer after all retries.
        """
        parameters = {"action": "query", "format": "json", "formatversion": 2, **params}
        text = urlencode(sorted((name, str(value)) for name, value in parameters.items()))
        return self._answer(text, family, lambda: self._attempt(text), _rows)

    def follow(self, params: Mapping[str, object], family: str) -> Iterator[dict]:
        """Yield all replies to a query, following ``continue``."""
        more: dict = {}
        seen: list[dict] = []
        while True:
            reply = self.ask({**params, **more}, family)
            yield reply
            if "continue" not in reply:
                return
            more = reply["continue"]
            if more in seen:
                raise EndpointError(f"{self.endpoint}: the query continues in a loop")
            seen.append(more)

    def members(self, category: str, family: str = "category members") -> Iterator[str]:
        """Yield the titles of the articles in a category, in the wiki's order."""
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
        """Yield the requested titles and their pages, following redirects.

        The page of a redirect into a section has the section's name in ``section``.

        A batch that the wiki rejects is split in halves, so one bad title does not affect others.

        Args:
            titles: as written in links or by a user; several may have the same page.
            params: requested properties, e.g. ``{"prop": "links", "pllimit": "max"}``.
            family: purpose of the request.
            dropped: counts titles without a page, by reason.
            per_request: titles per request; some properties allow fewer, e.g. one for full texts.
        """
        dropped = Counter() if dropped is None else dropped
        good = [title for title in titles if title.strip() and "|" not in title]
        dropped["title that no page can have"] += len(titles) - len(good)
        parts = list(chunks(good, per_request))
        for part in tqdm(parts, desc=family, unit="request", leave=False, disable=None):
            for title, page in self._pages_by_halves(part, params, family, dropped):
                if page.get("missing") or page.get("special"):
                    dropped["title without a page"] += 1
                elif page.get("invalid"):
                    dropped["title that no page can have"] += 1
                else:
                    yield title, page

    def _pages_by_halves(
        self, titles: list[str], params: Mapping, family: str, dropped: Counter[str]
    ) -> Iterable[tuple[str, Page]]:
        try:
            return self._batch(titles, params, family)
        except RefusedError:
            if len(titles) == 1:
                dropped["title that the wiki refuses"] += 1
                return []
        half = len(titles) // 2
        first = self._pages_by_halves(titles[:half], params, family, dropped)
        return [*first, *self._pages_by_halves(titles[half:], params, family, dropped)]

    def _batch(self, titles: list[str], params: Mapping, family: str) -> list[tuple[str, Page]]:
        pages: dict[str, Page] = {}
        renamed: dict[str, str] = {}
        sections: dict[str, str] = {}
        parameters = {"titles": "|".join(titles), "redirects": 1, **params}
        for reply in self.follow(parameters, family):
            query = reply["query"]
            for step in (*query.get("normalized", ()), *query.get("redirects", ())):
                # Titles changed by Unicode normalisation are percent-encoded.
                start = unquote(step["from"]) if step.get("fromencoded") else step["from"]
                renamed[start] = step["to"]
                sections[start] = step.get("tofragment", "")
            for page in query.get("pages", ()):
                _merge(pages.setdefault(page["title"], {}), page)
        absent = {"missing": True}  # e.g. a link to another wiki
        resolved = []
        for title in titles:
            *steps, last = _resolve(title, renamed)
            section = sections[steps[-1]] if steps else ""
            page = pages.get(last, absent)
            resolved.append((title, page | {"section": section} if section else page))
        return resolved

    def _attempt(self, text: str) -> dict:
        sent = f"{text}&maxlag={self.maxlag}"
        if len(sent) <= MAX_GET_CHARS:
            status, headers, body = self._fetch("GET", f"{self.endpoint}?{sent}")
        else:
            status, headers, body = self._fetch("POST", self.endpoint, sent)
        if status == 404:
            raise UserError(f"{self.endpoint}: HTTP 404; expected the URL of a wiki's api.php")
        with json_reply(body) as reply:
            error = reply.get("error")
            busy = error is not None and error["code"].startswith(BUSY_CODES)
            if error is None:
                _check_complete(text, reply)
        if error is None:
            return reply
        reason = f"{error['code']}: {one_line(error.get('info', ''))}"
        if busy:
            header = headers.get("Retry-After")
            raise Transient(reason, retry_after(header) if header else None)
        raise RefusedError(f"{self.endpoint} rejects the request: {reason}")


def _rows(reply: Mapping) -> int:
    return sum(
        len(value)
        for name, value in reply["query"].items()
        if name not in ("normalized", "redirects") and isinstance(value, list | dict)
    )


def _check_complete(text: str, reply: Mapping) -> None:
    parsed = _Reply.model_validate(reply)
    sent = dict(parse_qsl(text, keep_blank_values=True))
    required = sent.get("list") or ("general" if "meta" in sent else None)
    if required and required not in reply["query"]:
        raise KeyError(required)
    if not parsed.more and not parsed.batchcomplete:
        raise Transient("the wiki ended an incomplete query")
    if parsed.more and all(sent.get(name) == str(value) for name, value in parsed.more.items()):
        raise Transient("the wiki repeats the continuation")


def _merge(page: Page, part: Mapping) -> None:
    for name, value in part.items():
        if isinstance(value, list):
            page.setdefault(name, [])
            page[name].extend(value)
        else:
            page.setdefault(name, value)


def _resolve(title: str, renamed: Mapping[str, str]) -> list[str]:
    steps = [title]
    while steps[-1] in renamed and renamed[steps[-1]] not in steps:
        steps.append(renamed[steps[-1]])
    return steps
