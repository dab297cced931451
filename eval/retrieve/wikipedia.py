"""A wiki's pages as they are now, over its action API: the topic's page, or a search for pages."""

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jsonargparse.typing import NonNegativeInt, PositiveFloat, PositiveInt

from clients.asking import ask_each
from clients.mediawiki import MediaWiki, Page
from eval.retrieve.knowledge import passages_of, query_terms
from eval.retrieve.pages import PageRetriever, PassageEncoder
from eval.retrieve.search import Per
from records import Passage, UserError

# A whole plain text, of one page a request (TextExtracts gives no more), and its revision.
TEXT = {
    "prop": "extracts|revisions",
    "explaintext": 1,
    "exsectionformat": "wiki",
    "exlimit": 1,
    "rvprop": "ids|timestamp",
}
# Wikipedia's search refuses queries of more than 300 characters.
LONGEST_QUERY = 300
# Pages kept in memory; without a cache_dir a page would be asked for by each search that finds it.
PAGES_KEPT = 1024

_HEADING = re.compile(r"^(=+)\s*(.*?)\s*=+$")
# Sections of links and lists, which say nothing about the topic.
_ASIDE = {
    *("bibliography", "citations", "external links", "further reading", "notes", "references"),
    *("see also", "sources"),
}


class Site(NamedTuple):
    """What passages say of the wiki they are from.

    Attributes:
        name: the wiki's.
        address: of a revision, whose number follows.
    """

    name: str
    address: str


def site_of(wiki: MediaWiki) -> Site:
    """The wiki's name and addresses, from itself."""
    known = wiki.ask({"meta": "siteinfo", "siprop": "general"}, "site")["query"]["general"]
    server = known["server"]
    whole = server if urlsplit(server).scheme else f"https:{server}"
    return Site(known["sitename"], f"{whole}{known['script']}?oldid=")


def page_passages(page: Page, words: int, site: Site) -> list[Passage]:
    """The passages of a page that was asked for with ``TEXT``, with the revision that was read."""
    revision = page["revisions"][0]
    more = {
        "url": f"{site.address}{revision['revid']}",
        "source": site.name,
        "revision": revision["revid"],
        "date": revision["timestamp"],
    }
    text = article_text(page.get("extract") or "")
    return [p.model_copy(update=more) for p in passages_of(page["title"], text, words)]


def read_page(wiki: MediaWiki, title: str) -> Page | None:
    """The page of a title, with its whole text; ``None`` where it has none, or one of meanings."""
    if "#" in title:  # the wiki would take what follows for the name of a section
        return None
    params = TEXT | {"prop": f"{TEXT['prop']}|pageprops", "ppprop": "disambiguation"}
    for _, page in wiki.pages([title], params, "texts", per_request=1):
        if "revisions" not in page or "disambiguation" in page.get("pageprops", {}):
            continue
        if "extract" not in page:
            raise UserError(
                f"{wiki.endpoint} gives no texts: its wiki lacks the extension TextExtracts; give "
                "another wiki as api"
            )
        return page
    return None


def search_titles(wiki: MediaWiki, query: str, most: int) -> list[str]:
    """Titles of the pages that the wiki's own search finds, best first."""
    params = {
        "list": "search",
        "srsearch": query,
        "srnamespace": 0,
        "srlimit": most,
        "srprop": "",
    }
    return [hit["title"] for hit in wiki.ask(params, "search")["query"]["search"]]


def article_text(extract: str) -> str:
    """A plain-text extract without its headings and without sections of links and lists."""
    lines, aside = [], 0
    for line in extract.splitlines():
        heading = _HEADING.match(line.strip())
        if heading:
            depth = len(heading[1])
            if not aside or depth <= aside:
                aside = depth if heading[2].casefold() in _ASIDE else 0
        elif not aside:
            lines.append(line)
    return " ".join(" ".join(lines).split())


class OfWiki:
    """What is the same whichever passages are wanted of a wiki.

    Attributes:
        wiki: its client.
    """

    wiki: MediaWiki

    def keep_answers_in(self, folder: Path) -> None:
        """Keep the wiki's answers in this folder, unless ``cache_dir`` names another."""
        if self.wiki.cache_dir is None:
            self.wiki.cache_dir = folder / ".pages"

    @cached_property
    def _site(self) -> Site:
        return site_of(self.wiki)


class Wikipedia(OfWiki, PageRetriever):
    """The ``k`` best passages for each claim, from Wikipedia (or another wiki) as it is now.

    The page that the document's topic names is read whole, redirects followed. Where there is none,
    or it only lists what the topic may mean, the wiki's own search finds pages for the topic, and
    where it finds none, for the claim. Their passages are ranked here. Requests go one at a time,
    and wait as long as the wiki asks. A topic takes one, a search up to ``pages`` + 2: large runs
    want a dump (``eval.retrieve.knowledge.SqliteKnowledge``).

    Args:
        user_agent: who asks, with an address (``my-lab/1.0 (me@my-lab.example)``); needed for any
            remote wiki.
        k: passages a claim.
        api: URL of the wiki's api.php.
        pages: pages that a search reads.
        words: words a passage.
        cache_dir: folder of kept answers, so that nothing is asked twice within a month.
        topic_in_query: whether the topic goes before the claim.
        encoder: a sentence encoder that ranks the passages; null for BM25.
        per: ``claim`` searches for each claim, ``topic`` once a document, for its topic alone.
        timeout_s: seconds until an attempt is given up.
        retries: how often a failed attempt is repeated; a search without an answer has failed.
    """

    def __init__(
        self,
        user_agent: str | None = None,
        k: PositiveInt = 5,
        api: str = "https://en.wikipedia.org/w/api.php",
        pages: PositiveInt = 3,
        words: PositiveInt = 100,
        cache_dir: Path | None = None,
        topic_in_query: bool = True,
        encoder: PassageEncoder | None = None,
        per: Per = "claim",
        timeout_s: PositiveFloat = 60.0,
        retries: NonNegativeInt = 5,
    ):
        super().__init__(k, words, encoder, topic_in_query, per)
        self.pages = pages
        self.wiki = MediaWiki(api, user_agent, cache_dir, timeout_s=timeout_s, retries=retries)
        self._read = lru_cache(PAGES_KEPT)(self._read_page)

    @property
    def identity(self) -> dict[str, Any]:
        return {**self._settings(), "api": self.wiki.endpoint, "pages": self.pages}

    def _named(self, topics: Sequence[str]) -> dict[str, list[Passage] | None]:
        found = ask_each(topics, lambda topic: self._read(topic) or self._of(topic))
        return {topic: own for topic, own in found if own is None or own}

    def _matching(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        return [passages for _, passages in ask_each(queries, self._of)]

    def _of(self, query: str) -> list[Passage]:
        return [passage for title in self._search(query) for passage in self._read(title)]

    def _search(self, query: str) -> list[str]:
        words = query_terms(query)
        for joined in (" ", " OR "):
            while len(joined.join(words)) > LONGEST_QUERY:
                words.pop()
            if not words:
                return []
            found = search_titles(self.wiki, joined.join(words), self.pages)
            if found:
                return found
        return []

    def _read_page(self, title: str) -> list[Passage]:
        page = read_page(self.wiki, title)
        return page_passages(page, self.words, self._site) if page else []
