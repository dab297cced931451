"""Retrieve passages of a wiki's current pages through its action API."""

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jsonargparse.typing import NonNegativeInt, PositiveInt

from clients.asking import ask_each
from clients.mediawiki import MediaWiki, Page
from components.words import name_key
from eval.retrieve.knowledge import is_disambiguation, passages_of, query_terms, section_of
from eval.retrieve.pages import PageRetriever, PassageEncoder
from eval.retrieve.search import Per
from records import Passage, UserError

# The plain text and revision of a page; TextExtracts returns one full text per request.
TEXT = {
    "prop": "extracts|revisions",
    "explaintext": 1,
    "exsectionformat": "wiki",
    "exlimit": 1,
    "rvprop": "ids|timestamp",
}
# Wikipedia's search rejects queries of more than 300 characters.
LONGEST_QUERY = 300
# Pages kept in memory, so that a page is requested once without a cache_dir, too
PAGES_KEPT = 1024

_HEADING_LINE = re.compile(r"^=+ *(.*?) *=+$", re.MULTILINE)
_HEADING = re.compile(r"^(=+)\s*(.*?)\s*=+$")
# Sections of links and lists
_ASIDE = {
    *("bibliography", "citations", "external links", "further reading", "notes", "references"),
    *("see also", "sources"),
}


class Site(NamedTuple):
    """A wiki's name, and the URL of a revision without its number."""

    name: str
    address: str


def site_of(wiki: MediaWiki) -> Site:
    """Query the wiki for its name and addresses."""
    info = wiki.ask({"meta": "siteinfo", "siprop": "general"}, "site")["query"]["general"]
    server = info["server"]
    whole = server if urlsplit(server).scheme else f"https:{server}"
    return Site(info["sitename"], f"{whole}{info['script']}?oldid=")


def page_passages(page: Page, words: int, site: Site) -> list[Passage]:
    """Split a page that was requested with ``TEXT`` into passages, with its revision."""
    revision = page["revisions"][0]
    fields = {
        "url": f"{site.address}{revision['revid']}",
        "source": site.name,
        "revision": revision["revid"],
        "date": revision["timestamp"],
    }
    text = article_text(page.get("extract") or "")
    return [p.model_copy(update=fields) for p in passages_of(page["title"], text, words)]


def read_page(wiki: MediaWiki, title: str) -> Page | None:
    """Read a page with its full text, or the section that a redirect names.

    ``None`` if it does not exist or is a disambiguation page.
    """
    if "#" in title:  # the wiki would interpret the rest as a section
        return None
    params = TEXT | {"prop": f"{TEXT['prop']}|pageprops", "ppprop": "disambiguation"}
    for _, page in wiki.pages([title], params, "texts", per_request=1):
        if "revisions" not in page or "disambiguation" in page.get("pageprops", {}):
            continue
        if "extract" not in page:
            raise UserError(
                f"{wiki.endpoint} returns no texts: its wiki lacks the extension TextExtracts; set "
                "api to another wiki"
            )
        if "section" in page:
            plain = _HEADING_LINE.sub(r"\n\n\1\n\n", page["extract"])
            text = section_of(plain, page["section"])
            page = page | {"title": f"{page['title']}#{page['section']}", "extract": text}
        return None if is_disambiguation(page["title"], page["extract"]) else page
    return None


def search_titles(wiki: MediaWiki, query: str, most: int) -> list[str]:
    """Titles that the wiki's search returns, best first."""
    params = {"list": "search", "srsearch": query, "srnamespace": 0, "srlimit": most, "srprop": ""}
    return [hit["title"] for hit in wiki.ask(params, "search")["query"]["search"]]


def article_text(extract: str) -> str:
    """Remove headings, and sections of links and lists, from a plain-text extract."""
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


class WikiClient:
    """Base class of retrievers that query a wiki."""

    wiki: MediaWiki
    words: int

    def _open(self, api: str, user_agent: str | None, cache_dir: Path | None, retries: int) -> None:
        self.wiki = MediaWiki(api, user_agent, cache_dir, retries=retries)
        self._read = lru_cache(PAGES_KEPT)(self._read_page)

    def _read_page(self, title: str) -> list[Passage]:
        page = read_page(self.wiki, title)
        return page_passages(page, self.words, self._site) if page else []

    def keep_answers_in(self, folder: Path) -> None:
        """Cache the wiki's answers in this folder, unless ``cache_dir`` is set."""
        if self.wiki.cache_dir is None:
            self.wiki.cache_dir = folder / ".pages"

    @cached_property
    def _site(self) -> Site:
        return site_of(self.wiki)


class Wikipedia(WikiClient, PageRetriever):
    """Retrieve the ``k`` best passages for each claim from the current Wikipedia or another wiki.

    The page or section whose title is the document's topic is read, following redirects. If it does
    not exist or is a disambiguation page, the wiki's search finds pages for the topic, or else for
    the claim. Of the pages for a topic, one whose title differs only in case is read alone.
    Requests are sequential and respect the wiki's rate limits: one per topic, up to ``pages`` + 2
    per search. For large runs use a dump (``eval.retrieve.knowledge.SqliteKnowledge``).

    Args:
        user_agent: user agent with a contact address (``my-lab/1.0 (me@my-lab.example)``);
            required for remote wikis.
        k: passages per claim.
        api: URL of the wiki's api.php.
        pages: number of pages that a search reads.
        words: words per passage.
        cache_dir: folder of the answer cache; entries are reused for a month.
        topic_in_query: prepend the topic to the claim.
        encoder: sentence encoder that ranks the passages; null: BM25.
        per: ``claim``: search for each claim; ``topic``: search once per document for its topic.
        retries: number of retries of a failed attempt; then the search has failed.
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
        retries: NonNegativeInt = 5,
    ):
        super().__init__(k, words, encoder, topic_in_query, per)
        self.pages = pages
        self._open(api, user_agent, cache_dir, retries)

    @property
    def identity(self) -> dict[str, Any]:
        return {**self._settings(), "api": self.wiki.endpoint, "pages": self.pages}

    def _topic_passages(self, topics: Sequence[str]) -> dict[str, list[Passage] | None]:
        passages = ask_each(topics, self._read_topic)
        return {topic: group for topic, group in passages if group is None or group}

    def _search_passages(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        return [passages for _, passages in ask_each(queries, self._search_and_read)]

    def _read_topic(self, topic: str) -> list[Passage]:
        passages = self._read(topic)
        titles = [] if passages else self._search(topic)
        same = [title for title in titles if name_key(title) == name_key(topic)]
        return passages or self._read_all(same) or self._read_all(titles)

    def _read_all(self, titles: Sequence[str]) -> list[Passage]:
        return [passage for title in titles for passage in self._read(title)]

    def _search_and_read(self, query: str) -> list[Passage]:
        return self._read_all(self._search(query))

    def _search(self, query: str) -> list[str]:
        words = query_terms(query)
        for joined in (" ", " OR "):
            while len(joined.join(words)) > LONGEST_QUERY:
                words.pop()
            if not words:
                return []
            titles = search_titles(self.wiki, joined.join(words), self.pages)
            if titles:
                return titles
        return []
