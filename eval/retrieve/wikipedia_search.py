"""Whole pages that a wiki's search finds for a claim, as LangChain's retriever gives them."""

import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from jsonargparse.typing import NonNegativeInt, PositiveFloat, PositiveInt

from clients.asking import ask_each
from clients.mediawiki import MediaWiki
from eval.retrieve.search import Per, SearchRetriever
from eval.retrieve.wikipedia import (
    LONGEST_QUERY,
    PAGES_KEPT,
    OfWiki,
    page_passages,
    read_page,
    search_titles,
)
from records import Passage

# Words of a passage that is a whole page.
_ALL = sys.maxsize


class WikipediaSearch(OfWiki, SearchRetriever):
    """The first ``k`` pages that Wikipedia's (or another wiki's) own search finds for each claim.

    FactReasoner (2502.18573, section 4) takes ``k: 3`` pages of LangChain's Wikipedia retriever,
    asked with the claim as it stands, and of each the beginning: put
    :class:`~eval.retrieve.cut.Cut` around for at most 4,000 characters. As there the query is the
    first 300 characters of the claim, the wiki decides what it finds, and a page that only lists
    meanings is left out without another in its place. Headings, and sections of links and lists,
    are left out of the text, there they are in it.

    Requests go one at a time, and wait as long as the wiki asks: one a claim and one a page that
    was not read before. Where the topic's own page is wanted, take
    :class:`~eval.retrieve.wikipedia.Wikipedia`.

    Args:
        user_agent: who asks, with an address (``my-lab/1.0 (me@my-lab.example)``); needed for any
            remote wiki.
        k: pages a claim.
        api: URL of the wiki's api.php.
        cache_dir: folder of kept answers, so that nothing is asked twice within a month.
        topic_in_query: whether the topic goes before the claim.
        per: ``claim`` searches for each claim, ``topic`` once a document, for its topic alone.
        timeout_s: seconds until an attempt is given up.
        retries: how often a failed attempt is repeated; a search without an answer has failed.
    """

    def __init__(
        self,
        user_agent: str | None = None,
        k: PositiveInt = 3,
        api: str = "https://en.wikipedia.org/w/api.php",
        cache_dir: Path | None = None,
        topic_in_query: bool = False,
        per: Per = "claim",
        timeout_s: PositiveFloat = 60.0,
        retries: NonNegativeInt = 5,
    ):
        super().__init__(k, topic_in_query, per)
        self.wiki = MediaWiki(api, user_agent, cache_dir, timeout_s=timeout_s, retries=retries)
        self._read = lru_cache(PAGES_KEPT)(self._read_page)

    @property
    def identity(self) -> dict[str, Any]:
        return {**self._settings(), "api": self.wiki.endpoint}

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        return [found for _, found in ask_each(queries, lambda query: self._of(query, k))]

    def _of(self, query: str, k: int) -> list[Passage]:
        asked = " ".join(query.split())[:LONGEST_QUERY].rstrip()
        titles = search_titles(self.wiki, asked, k) if asked else []
        found = [passage for title in titles for passage in self._read(title)]
        return list({passage.id: passage for passage in found}.values())

    def _read_page(self, title: str) -> list[Passage]:
        page = read_page(self.wiki, title)
        return page_passages(page, _ALL, self._site) if page else []
