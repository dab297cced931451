"""Web search through Serper (serper.dev), which gives Google's results as JSON.

SAFE (2403.18802, section 3) and VeriScore (2406.19276, section 3.2) search with it. The evidence is
what the page of results shows: titles and snippets; the pages behind them are not read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

from tqdm import tqdm

from clients.polite import (
    EndpointError,
    HttpClient,
    RefusedError,
    Transient,
    is_local,
    one_line,
)
from eval.models.cache import ANSWERS, TextCache, answer_key
from eval.retrieve.search import GIVE_UP, Per, SearchRetriever
from records import Passage, UserError, sha256_text

# One credit is good for so many results; Google gives no more than a hundred.
RESULTS = 10
MOST_RESULTS = 100

_PARTS = ("answerBox", "knowledgeGraph", "organic")
_NO_CREDIT = re.compile(r"credit", re.IGNORECASE)

Reply = dict[str, Any]


class Serper(SearchRetriever):
    """The ``k`` best results of a web search for each claim, as passages.

    Google's answer box comes first where there is one, then its knowledge graph, then the results;
    all count among the ``k`` (SAFE counts the results alone). A passage's id is its link with a
    hash of its text, because another query shows another snippet of the same page.

    Args:
        k: passages a claim.
        api_key_env: environment variable that holds the key.
        base_url: of the service.
        gl: country that Google answers for.
        hl: language that it answers in.
        boxes: whether the answer box and the knowledge graph are passages; VeriScore takes the
            results alone.
        topic_in_query: whether the topic goes before the claim.
        per: ``claim`` searches for each claim, ``topic`` once a document, for its topic alone.
        cache: SQLite file of answers; with it nothing is asked twice, also after a crash.
        concurrency: queries under way at a time.
        timeout_s: seconds until an attempt is given up.
        retries: how often a failed attempt is repeated; a query without an answer has failed.

    Raises:
        UserError: a number that cannot be meant, or a key in the place of its variable's name.
    """

    def __init__(
        self,
        k: int = 5,
        api_key_env: str = "SERPER_API_KEY",
        base_url: str = "https://google.serper.dev",
        gl: str = "us",
        hl: str = "en",
        boxes: bool = True,
        topic_in_query: bool = True,
        per: Per = "claim",
        cache: Path | None = None,
        concurrency: int = 4,
        timeout_s: float = 30.0,
        retries: int = 5,
    ):
        super().__init__(k, topic_in_query, per)
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", api_key_env):
            raise UserError(
                "api_key_env: give the name of an environment variable, in capitals, not the key"
            )
        address = urlsplit(base_url)
        if address.scheme != "https" and not (address.scheme == "http" and is_local(base_url)):
            raise UserError("base_url: give the https address of the service; the key goes there")
        if address.username or address.password or address.query:
            raise UserError(
                "base_url: holds a user, a password or a query; give the key in the variable that "
                "api_key_env names"
            )
        if concurrency < 1 or retries < 0 or timeout_s <= 0:
            raise UserError("concurrency: at least 1; retries: at least 0; timeout_s: above 0")
        self.api_key_env = api_key_env
        self.base_url = base_url.rstrip("/")
        self.gl = gl
        self.hl = hl
        self.boxes = boxes
        self.cache_path = cache
        self.concurrency = concurrency
        self.timeout_s = timeout_s
        self.retries = retries

    @property
    def identity(self) -> dict[str, Any]:
        """The service and the settings; what the web says changes by the day."""
        return {**self._settings(), **self._asked_of, "boxes": self.boxes}

    @property
    def _asked_of(self) -> dict[str, str]:
        return {"base_url": self.base_url, "gl": self.gl, "hl": self.hl}

    def keep_answers_in(self, folder: Path) -> None:
        """Keep the answers in this folder, unless ``cache`` names another place."""
        if self.cache_path is None:
            self.cache_path = folder / ANSWERS

    @cached_property
    def _cache(self) -> TextCache | None:
        return None if self.cache_path is None else TextCache(self.cache_path)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        """Up to ``k`` passages a query, in Google's order; ``None`` where the search failed.

        Raises:
            UserError: the service does not accept the key, its credits are used up, or it gave no
                answer to several queries in a row; what was answered before is in the cache.
        """
        results = min(max(k, RESULTS), MOST_RESULTS)
        keys = {query: self._key(query, results) for query in queries if query.strip()}
        known = self._cache.get(list(keys.values())) if self._cache else {}
        todo = [query for query, key in keys.items() if key not in known]
        replies: dict[str, Reply | None] = {query: known.get(key) for query, key in keys.items()}
        for query, reply in self._ask(todo, results):
            replies[query] = reply
            if reply is not None and self._cache:
                self._cache.put({keys[query]: reply})
        # An empty query finds nothing, and is not worth a credit.
        found = [replies.get(query, {}) for query in queries]
        return [None if reply is None else self._passages(reply)[:k] for reply in found]

    def _key(self, query: str, results: int) -> bytes:
        service = json.dumps(["serper", self._asked_of, results], sort_keys=True)
        return answer_key(hashlib.sha256(service.encode()).digest(), [query])

    def _ask(self, queries: Sequence[str], results: int) -> Iterator[tuple[str, Reply | None]]:
        """Queries with their replies, in the order in which these come."""
        if not queries:
            return
        clients: SimpleQueue[_Client] = SimpleQueue()
        for _ in range(self.concurrency):
            clients.put(_Client(self, self._api_key()))
        lost = 0  # queries in a row
        stop: UserError | None = None

        def ask(query: str) -> Reply | None:
            nonlocal lost, stop
            if stop:
                return None
            client = clients.get()
            try:
                reply = client.ask({"q": query, "gl": self.gl, "hl": self.hl, "num": results})
                lost = 0
                return reply
            except EndpointError as error:
                lost += 1
                if lost >= GIVE_UP:
                    stop = stop or error
            except RefusedError:
                lost = 0
            except UserError as error:  # the replies under way are paid for: they are kept
                stop = stop or error
            finally:
                clients.put(client)
            return None

        with ThreadPoolExecutor(self.concurrency) as pool:
            asked = {pool.submit(ask, query): query for query in queries}
            try:
                for done in tqdm(as_completed(asked), "Serper", len(asked), disable=None):
                    yield asked[done], done.result()
            except BaseException as error:  # the loop was left early: the rest is not asked
                stop = stop or UserError(str(error))
                raise
        if stop:
            raise stop

    def _api_key(self) -> str:
        key = os.environ.get(self.api_key_env, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            raise UserError(
                f"set Serper's key in the environment variable {self.api_key_env} (or name another "
                "variable with api_key_env)"
            )
        return key

    def _passages(self, reply: Reply) -> list[Passage]:
        found = [_result(_mapping(result)) for result in reply.get("organic", ())]
        if self.boxes:
            answer = _answer(_mapping(reply.get("answerBox")))
            graph = _graph(_mapping(reply.get("knowledgeGraph")))
            found = [answer, graph, *found]
        return list({passage.id: passage for passage in found if passage}.values())


class _Client(HttpClient):
    """Asks Serper, one query at a time."""

    def __init__(self, serper: Serper, key: str):
        super().__init__(
            f"{serper.base_url}/search",
            "factfoundry",
            timeout_s=serper.timeout_s,
            retries=serper.retries,
        )
        self._env = serper.api_key_env
        self._headers = {"X-API-KEY": key, "Content-Type": "application/json"}
        self._session.max_redirects = 0  # another host would get the key

    def ask(self, body: Mapping[str, Any]) -> Reply:
        """The reply's parts that hold evidence."""
        return self._attempts(lambda: self._attempt(json.dumps(body)))

    def _attempt(self, body: str) -> Reply:
        status, _, raw = self._fetch(
            "POST", self.endpoint, body, self._headers, known=(200, 400, 401, 403)
        )
        try:
            reply = json.loads(raw)
            said = one_line(reply.get("message", "")).replace(self._headers["X-API-KEY"], "***")
        except (ValueError, AttributeError):
            raise Transient(f"HTTP {status}, and the answer is no whole JSON") from None
        if status in {401, 403}:
            raise UserError(
                f"{self.endpoint} does not accept the key: HTTP {status} {said}; see to the "
                f"environment variable {self._env}"
            )
        if status == 400 and _NO_CREDIT.search(said):
            raise UserError(f"{self.endpoint}: {said}; add credits, then start again")
        if status == 400:
            raise RefusedError(f"{self.endpoint} refuses the query: {said}")
        if not isinstance(reply.get("organic"), list):
            raise Transient("the answer has no results in it")
        return {part: reply[part] for part in _PARTS if part in reply}


def _mapping(value: object) -> Mapping[str, Any]:
    """A part of the reply; empty where it is absent or of another shape."""
    return value if isinstance(value, Mapping) else {}


def _answer(box: Mapping[str, Any]) -> Passage | None:
    text = box.get("answer") or box.get("snippet")
    return _passage(box.get("title"), text, box.get("link"), "Google's answer box")


def _graph(graph: Mapping[str, Any]) -> Passage | None:
    """The knowledge graph's facts, a sentence each."""
    title = graph.get("title", "")
    facts = [f"{title}: {graph['type']}."] if graph.get("type") else []
    facts += [graph["description"]] if graph.get("description") else []
    facts += [
        f"{title} {name}: {value}." for name, value in _mapping(graph.get("attributes")).items()
    ]
    link = graph.get("descriptionLink") or graph.get("website")
    return _passage(title, " ".join(facts), link, "Google's knowledge graph")


def _result(result: Mapping[str, Any]) -> Passage | None:
    date = {"date": str(result["date"])} if result.get("date") else {}
    return _passage(
        result.get("title"), result.get("snippet"), result.get("link"), "Google", **date
    )


def _passage(title: object, text: object, url: object, source: str, **more: str) -> Passage | None:
    """A passage, or ``None`` where there is no text."""
    if not text:
        return None
    place = f"{url or title or source}#{sha256_text(str(text))[:8]}"
    link = str(url) if url else None
    return Passage(
        id=place, title=str(title or ""), text=str(text), url=link, source=source, **more
    )
