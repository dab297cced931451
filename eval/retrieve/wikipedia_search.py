"""Retrieve whole pages by a wiki's search, like LangChain's Wikipedia retriever."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse.typing import NonNegativeInt, PositiveInt

from clients.asking import ask_each
from eval.retrieve.search import Per, SearchRetriever
from eval.retrieve.wikipedia import (
    LONGEST_QUERY,
    WikiClient,
    search_titles,
)
from records import Passage


class WikipediaSearch(WikiClient, SearchRetriever):
    """Retrieve the first ``k`` results of Wikipedia's (or another wiki's) search for each claim.

    FactReasoner (2502.18573, section 4) uses LangChain's Wikipedia retriever with ``k: 3``, the
    claim as the query, and the first 4,000 characters of a page (:class:`~eval.retrieve.cut.Cut`).
    As there, the query is the first 300 characters of the claim, and disambiguation pages are
    skipped without replacement. Unlike there, headings and sections of links and lists are removed.

    Requests are sequential and respect the wiki's rate limits: one per claim and one per new page.
    :class:`~eval.retrieve.wikipedia.Wikipedia` retrieves the topic's page instead.

    Args:
        user_agent: user agent with a contact address (``my-lab/1.0 (me@my-lab.example)``);
            required for remote wikis.
        k: pages per claim.
        api: URL of the wiki's api.php.
        cache_dir: folder of the answer cache; entries are reused for a month.
        topic_in_query: prepend the topic to the claim.
        per: ``claim``: search for each claim; ``topic``: search once per document for its topic.
        retries: number of retries of a failed attempt; then the search has failed.
    """

    words = sys.maxsize  # a page is one passage

    def __init__(
        self,
        user_agent: str | None = None,
        k: PositiveInt = 3,
        api: str = "https://en.wikipedia.org/w/api.php",
        cache_dir: Path | None = None,
        topic_in_query: bool = False,
        per: Per = "claim",
        retries: NonNegativeInt = 5,
    ):
        super().__init__(k, topic_in_query, per)
        self._open(api, user_agent, cache_dir, retries)

    @property
    def identity(self) -> dict[str, Any]:
        return {**self._settings(), "api": self.wiki.endpoint}

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        return [
            passages
            for _, passages in ask_each(queries, lambda query: self._search_and_read(query, k))
        ]

    def _search_and_read(self, query: str, k: int) -> list[Passage]:
        text = " ".join(query.split())[:LONGEST_QUERY].rstrip()
        titles = search_titles(self.wiki, text, k) if text else []
        passages = [passage for title in titles for passage in self._read(title)]
        return list({passage.id: passage for passage in passages}.values())
