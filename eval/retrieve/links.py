"""Passages with what stands on the pages that they link to."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jsonargparse.typing import NonNegativeInt, PositiveFloat, PositiveInt

from clients.web_host import MAX_BYTES
from clients.webpages import Page, WebPages
from eval.retrieve.search import by_id
from eval.stages import Retriever
from records import Claim, Document, Passage

MOST_REASONS = 3


class PagesOfLinks:
    """Another retriever's passages, each with the text of the page that its ``url`` names.

    A context of FactReasoner's (2502.18573, section 4) is a title, a link, a snippet and "the
    content retrieved from" the link, of which :class:`~eval.retrieve.cut.Cut` keeps 4,000
    characters. As in its released code the content is what the page's paragraphs say, from the
    beginning; a page without paragraphs is read whole. The passage's text before is kept in
    ``snippet``, and its id is the page's address, so that a page which several queries find is one
    passage.

    Where a page cannot be had, or says less than the snippet ("enable JavaScript"), the passage
    stays as it is, and says why in ``unread``. The released code then reads the next results, until
    it has as many pages as wanted, and keeps snippets where these run out; it reads PDF as well,
    and leaves out pages with phrases such as "access denied".

    Only public addresses are read, by http and https, HTML and plain text, in bounds of time and
    bytes, without cookies and scripts (``clients/webpages.py``); robots.txt is not asked for.

    Args:
        retrieve: finds the passages.
        user_agent: who asks, with an address (``my-lab/1.0 (me@my-lab.example)``).
        cache_dir: folder of kept pages, so that nothing is asked twice within a month.
        concurrency: pages under way at a time, each of another host.
        private_hosts: names or addresses of hosts in a private network, or on this machine, whose
            pages may be read as well.
        timeout_s: seconds until an attempt is given up.
        retries: how often a failed attempt is repeated.
    """

    def __init__(
        self,
        retrieve: Retriever,
        user_agent: str | None = None,
        cache_dir: Path | None = None,
        concurrency: PositiveInt = 8,
        private_hosts: list[str] = [],  # noqa: B006 (jsonargparse shows it in --help)
        timeout_s: PositiveFloat = 20.0,
        retries: NonNegativeInt = 1,
    ):
        self.retrieve = retrieve
        self.concurrency = concurrency
        self.web = WebPages(user_agent, cache_dir, private_hosts, timeout_s, retries)

    @property
    def identity(self) -> dict[str, Any]:
        """What is read of pages; what stands there changes by the day."""
        own = type(self)
        return {"class": f"{own.__module__}.{own.__qualname__}", "bytes": MAX_BYTES}

    def keep_answers_in(self, folder: Path) -> None:
        """Keep the pages in this folder, unless ``cache_dir`` names another."""
        if self.web.cache_dir is None:
            self.web.cache_dir = folder / ".pages"

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        found, passages = self.retrieve(documents, claims)
        links = [passage.url for own in passages for passage in own if passage.url]
        pages = dict(self.web.read_all(links, self.concurrency))
        read = [{one.id: _with_page(one, pages) for one in own} for own in passages]
        claims_found = [
            [_with_pages(claim, by_former) for claim in own]
            for own, by_former in zip(found, read, strict=True)
        ]
        return claims_found, [list(by_id(own.values()).values()) for own in read]


def unread(passages: Iterable[Passage]) -> list[str]:
    """How many passages are not the pages that they link to, and why; a line, or none."""
    every = list(passages)
    why = Counter(
        one.model_extra["unread"]
        for one in every
        if one.model_extra and "unread" in one.model_extra
    )
    if not why:
        return []
    commonest = why.most_common(MOST_REASONS)
    told = [f"{reason} ({n:,})" for reason, n in commonest]
    others = why.total() - sum(n for _, n in commonest)
    told += [f"other reasons ({others:,})"] if others else []
    return [
        f"{why.total():,} of {len(every):,} passages are snippets, since their pages could not be "
        f"read: {', '.join(told)}"
    ]


def _with_page(passage: Passage, pages: Mapping[str, Page]) -> Passage:
    page = pages[passage.url] if passage.url else Page(unread="no link")
    why = page.unread
    if why is None and len(page.text) < len(passage.text):
        why = "it says less than its snippet"
    if why is not None:
        return passage.model_copy(update={"unread": why})
    update = {"id": passage.url, "text": page.text, "snippet": passage.text}
    return passage.model_copy(update=update)


def _with_pages(claim: Claim, by_former: Mapping[str, Passage]) -> Claim:
    if claim.contexts is None:
        return claim
    ids = [by_former[name].id if name in by_former else name for name in claim.contexts]
    return claim.model_copy(update={"contexts": list(dict.fromkeys(ids))})
