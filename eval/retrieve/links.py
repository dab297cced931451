"""Replace search snippets by the text of the pages that they link to."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jsonargparse.typing import NonNegativeInt, PositiveFloat, PositiveInt

from clients.web_host import MAX_BYTES
from clients.webpages import Page, WebPages
from eval.retrieve.search import by_id
from eval.stages import Retriever
from records import Claim, Document, Passage


class PagesOfLinks:
    """Another retriever's passages, each with the text of the page at its ``url``.

    FactReasoner's contexts (2502.18573, section 4) are a title, a link, a snippet and the content
    of the link, of which :class:`~eval.retrieve.cut.Cut` keeps 4,000 characters. As in its released
    code the content is the text of the page's paragraphs, or of the whole page if it has none. The
    field ``snippet`` keeps the former text, and the passage's id becomes the page's URL.

    If a page cannot be read, or is shorter than the snippet ("enable JavaScript"), the passage is
    unchanged and ``unread`` contains the reason. The released code instead reads further results;
    it also reads PDF, and skips pages with phrases such as "access denied".

    Only HTML and plain text of public addresses are read, by http and https, with limits on time
    and bytes, without cookies and scripts (``clients/webpages.py``); robots.txt is ignored.

    Args:
        retrieve: retriever of the passages.
        user_agent: user agent with a contact address (``my-lab/1.0 (me@my-lab.example)``).
        cache_dir: folder of the page cache; entries are reused for a month.
        concurrency: number of concurrent requests, each to a different host.
        private_hosts: names or addresses of private hosts whose pages may be read as well.
        timeout_s: timeout of an attempt in seconds.
        retries: number of retries of a failed attempt.
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
        """The settings that affect the passages; page contents change over time."""
        return {"retrieve": self.retrieve, "bytes": MAX_BYTES}

    def keep_answers_in(self, folder: Path) -> None:
        """Cache the pages in this folder, unless ``cache_dir`` is set."""
        if self.web.cache_dir is None:
            self.web.cache_dir = folder / ".pages"

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        claims_found, passages = self.retrieve(documents, claims)
        links = [passage.url for group in passages for passage in group if passage.url]
        pages = dict(self.web.read_all(links, self.concurrency))
        read = [{p.id: _with_page(p, pages) for p in group} for group in passages]
        with_pages = [
            [_with_pages(claim, by_former_id) for claim in document_claims]
            for document_claims, by_former_id in zip(claims_found, read, strict=True)
        ]
        return with_pages, [list(by_id(by_former_id.values()).values()) for by_former_id in read]


def _with_page(passage: Passage, pages: Mapping[str, Page]) -> Passage:
    page = pages[passage.url] if passage.url else Page(unread="no link")
    reason = page.unread
    if reason is None and len(page.text) < len(passage.text):
        reason = "it says less than its snippet"
    if reason is not None:
        return passage.model_copy(update={"unread": reason})
    update = {"id": passage.url, "text": page.text, "snippet": passage.text}
    return passage.model_copy(update=update)


def _with_pages(claim: Claim, by_former_id: Mapping[str, Passage]) -> Claim:
    if claim.contexts is None:
        return claim
    ids = [by_former_id[name].id if name in by_former_id else name for name in claim.contexts]
    return claim.model_copy(update={"contexts": list(dict.fromkeys(ids))})
