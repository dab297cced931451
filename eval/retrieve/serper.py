"""Web search through Serper (serper.dev), which returns Google's results as JSON.

SAFE (2403.18802, section 3) and VeriScore (2406.19276, section 3.2) use it. The evidence is titles
and snippets; ``eval/retrieve/links.py`` reads the linked pages.
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
    """Retrieve the ``k`` best results of a web search for each claim, as passages.

    The order is Google's answer box, its knowledge graph, then the results; all count towards ``k``
    (SAFE counts only the results). A passage's id is its link with a hash of its text, since the
    snippet of a page depends on the query.

    Args:
        k: passages per claim.
        api_key_env: environment variable with the API key.
        base_url: URL of the service.
        boxes: use the answer box and the knowledge graph; VeriScore uses only the results.
        topic_in_query: prepend the topic to the claim.
        per: ``claim``: search for each claim; ``topic``: search once per document for its topic.
        cache: SQLite file of the answer cache.
        concurrency: number of concurrent queries.
        timeout_s: timeout of an attempt in seconds.
        retries: number of retries of a failed attempt; then the query has failed.
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
        return {**self._settings(), **self._service, "boxes": self.boxes}

    @property
    def _service(self) -> dict[str, str]:
        return {"base_url": self.client.base_url}

    def keep_answers_in(self, folder: Path) -> None:
        """Cache the answers in this folder, unless ``cache`` is set."""
        if self.cache_path is None:
            self.cache_path = folder / ANSWERS

    @cached_property
    def _cache(self) -> TextCache | None:
        return None if self.cache_path is None else TextCache(self.cache_path)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        results = min(max(k, RESULTS), MAX_RESULTS)
        keys = {query: self._key(query, results) for query in queries if query.strip()}
        cached = self._cache.get(list(keys.values())) if self._cache else {}
        todo = [query for query, key in keys.items() if key not in cached]
        replies: dict[str, Reply | None] = {query: cached.get(key) for query, key in keys.items()}
        search = partial(self.client.search, results=results)
        for query, reply in ask_each(todo, search, self.concurrency):
            replies[query] = reply
            if reply is not None and self._cache:
                self._cache.put({keys[query]: reply})
        # an empty query has no results and is not sent
        answers = [replies.get(query, {}) for query in queries]
        return [None if reply is None else self._passages(reply)[:k] for reply in answers]

    def _key(self, query: str, results: int) -> bytes:
        service = json.dumps(["serper", self._service, results], sort_keys=True)
        return answer_key(hashlib.sha256(service.encode()).digest(), [query])

    def _passages(self, reply: Reply) -> list[Passage]:
        passages = [_result(_mapping(result)) for result in reply.get("organic", ())]
        if self.boxes:
            answer = _answer(_mapping(reply.get("answerBox")))
            graph = _graph(_mapping(reply.get("knowledgeGraph")))
            passages = [answer, graph, *passages]
        return list({passage.id: passage for passage in passages if passage}.values())


def _mapping(value: object) -> Mapping[str, Any]:
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


def _passage(title: object, text: object, url: object, source: str, **extra: str) -> Passage | None:
    if not text:
        return None
    id = f"{url or title or source}#{sha256_text(str(text))[:8]}"
    link = str(url) if url else None
    return Passage(id=id, title=str(title or ""), text=str(text), url=link, source=source, **extra)
