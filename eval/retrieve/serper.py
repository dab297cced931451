"""Web search through Serper (serper.dev), which gives Google's results as JSON.

SAFE (2403.18802, section 3) and VeriScore (2406.19276, section 3.2) search with it. The evidence is
what the page of results shows: titles and snippets; the pages behind them are read by
``eval/retrieve/links.py``.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from jsonargparse.typing import NonNegativeInt, PositiveFloat, PositiveInt

from clients.asking import ask_each
from clients.serper import MAX_RESULTS, RESULTS, Reply, SerperClient
from eval.models.cache import ANSWERS, TextCache, answer_key
from eval.retrieve.search import Per, SearchRetriever
from records import Passage, sha256_text


class Serper(SearchRetriever):
    """The ``k`` best results of a web search for each claim, as passages.

    Google's answer box comes first where there is one, then its knowledge graph, then the results;
    all count among the ``k`` (SAFE counts the results alone). A passage's id is its link with a
    hash of its text, because another query shows another snippet of the same page.

    Args:
        k: passages a claim.
        api_key_env: environment variable that holds the key.
        base_url: of the service.
        boxes: whether the answer box and the knowledge graph are passages; VeriScore takes the
            results alone.
        topic_in_query: whether the topic goes before the claim.
        per: ``claim`` searches for each claim, ``topic`` once a document, for its topic alone.
        cache: SQLite file of answers; with it nothing is asked twice, also after a crash.
        concurrency: queries under way at a time.
        timeout_s: seconds until an attempt is given up.
        retries: how often a failed attempt is repeated; a query without an answer has failed.
    """

    def __init__(
        self,
        k: PositiveInt = 5,
        api_key_env: str = "SERPER_API_KEY",
        base_url: str = "https://google.serper.dev",
        boxes: bool = True,
        topic_in_query: bool = True,
        per: Per = "claim",
        cache: Path | None = None,
        concurrency: PositiveInt = 4,
        timeout_s: PositiveFloat = 30.0,
        retries: NonNegativeInt = 5,
    ):
        super().__init__(k, topic_in_query, per)
        self.client = SerperClient(api_key_env, base_url, timeout_s=timeout_s, retries=retries)
        self.boxes = boxes
        self.cache_path = cache
        self.concurrency = concurrency

    @property
    def identity(self) -> dict[str, Any]:
        return {**self._settings(), **self._asked_of, "boxes": self.boxes}

    @property
    def _asked_of(self) -> dict[str, str]:
        return {"base_url": self.client.base_url}

    def keep_answers_in(self, folder: Path) -> None:
        """Keep the answers in this folder, unless ``cache`` names another place."""
        if self.cache_path is None:
            self.cache_path = folder / ANSWERS

    @cached_property
    def _cache(self) -> TextCache | None:
        return None if self.cache_path is None else TextCache(self.cache_path)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        results = min(max(k, RESULTS), MAX_RESULTS)
        keys = {query: self._key(query, results) for query in queries if query.strip()}
        known = self._cache.get(list(keys.values())) if self._cache else {}
        todo = [query for query, key in keys.items() if key not in known]
        replies: dict[str, Reply | None] = {query: known.get(key) for query, key in keys.items()}
        search = partial(self.client.search, results=results)
        for query, reply in ask_each(todo, search, self.concurrency):
            replies[query] = reply
            if reply is not None and self._cache:
                self._cache.put({keys[query]: reply})
        # An empty query finds nothing, and is not worth a credit.
        found = [replies.get(query, {}) for query in queries]
        return [None if reply is None else self._passages(reply)[:k] for reply in found]

    def _key(self, query: str, results: int) -> bytes:
        service = json.dumps(["serper", self._asked_of, results], sort_keys=True)
        return answer_key(hashlib.sha256(service.encode()).digest(), [query])

    def _passages(self, reply: Reply) -> list[Passage]:
        found = [_result(_mapping(result)) for result in reply.get("organic", ())]
        if self.boxes:
            answer = _answer(_mapping(reply.get("answerBox")))
            graph = _graph(_mapping(reply.get("knowledgeGraph")))
            found = [answer, graph, *found]
        return list({passage.id: passage for passage in found if passage}.values())


def _mapping(value: object) -> Mapping[str, Any]:
    """A part of the reply; empty where it is absent or of another shape."""
    return value if isinstance(value, Mapping) else {}


def _answer(box: Mapping[str, Any]) -> Passage | None:
    text = box.get("answer") or box.get("snippet")
    return _passage(box.get("title"), text, box.get("link"), "Google's answer box")


def _graph(graph: Mapping[str, Any]) -> Passage | None:
    title = graph.get("title", "")
    facts = [f"{title}: {graph['type']}."] if graph.get("type") else []
    facts += [str(graph["description"])] if graph.get("description") else []
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
    if not text:
        return None
    place = f"{url or title or source}#{sha256_text(str(text))[:8]}"
    link = str(url) if url else None
    return Passage(
        id=place, title=str(title or ""), text=str(text), url=link, source=source, **more
    )
