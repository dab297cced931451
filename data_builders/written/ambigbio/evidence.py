"""Passages for each name: pages cut to 100 words, and the best five for the query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from tqdm import tqdm

from clients.mediawiki import MediaWiki
from data_builders.written.ambigbio.names import QUERY, Name
from eval.retrieve.knowledge import Knowledge
from eval.retrieve.wikipedia import TEXT, page_passages, site_of
from eval.stages import Retriever
from records import Claim, Document, Passage


@runtime_checkable
class Search(Retriever, Protocol):
    """A retriever of the pipeline; its class is known by its signature, not by its base."""


MakeSearch = Callable[[str], Search]


def wiki_passages(
    wiki: MediaWiki, names: Sequence[Name], words: int, dropped: Counter[str]
) -> Iterator[Passage]:
    """Passages of all candidates' pages as they are now, with the revision that was read.

    A whole text is one request (TextExtracts gives whole pages one at a time).
    """
    titles = list(dict.fromkeys(c.title for name in names for c in name.candidates))
    gone: Counter[str] = Counter()
    site = site_of(wiki)
    seen: set[str] = set()
    for _, page in wiki.pages(titles, TEXT, "texts", gone, per_request=1):
        passages = page_passages(page, words, site)
        if page["title"] in seen or not passages:
            gone["empty text" if not passages else "page that two titles lead to"] += 1
            continue
        seen.add(page["title"])
        yield from passages
    for reason, count in gone.items():
        dropped[f"page of a candidate: {reason}"] += count


def knowledge_passages(
    knowledge: Knowledge, names: Sequence[Name], pages_per_name: int, dropped: Counter[str]
) -> Iterator[Passage]:
    """Passages of the pages of a dated snapshot that a name may be about.

    These are the candidates' pages and, where the snapshot has a full-text index, the pages that
    match the name best: a retriever over the whole of Wikipedia would hardly find others.
    """
    seen: set[str] = set()
    for name in tqdm(names, desc="pages of the snapshot", unit="name", disable=None):
        own = [knowledge.resolve(candidate.title) for candidate in name.candidates]
        dropped["candidate without a page in the snapshot"] += own.count(None)
        more = knowledge.pages(name.name, pages_per_name) if knowledge.searchable else []
        for title in dict.fromkeys([*own, *more]):
            if title is not None and title not in seen:
                seen.add(title)
                for passage in knowledge.passages(title):
                    yield passage.model_copy(update={"source": knowledge.path.name})


def retrieve(
    make: MakeSearch, pool: Path, names: Sequence[Name], dropped: Counter[str]
) -> tuple[dict[str, list[Passage]], dict]:
    """The passages found for each name, best first, and what the retriever says that it is.

    Names without a passage are counted and left out.
    """
    search = make(str(pool))
    documents = [Document(id=name.name, topic=name.name, text="") for name in names]
    queries = [[Claim(id="query", text=QUERY.format(name=name.name))] for name in names]
    claims, passages = search(documents, queries)
    found = {}
    for name, (claim,), own in zip(names, claims, passages, strict=True):
        by_id = {passage.id: passage for passage in own}
        if claim.contexts:
            found[name.name] = [by_id[context] for context in claim.contexts]
        else:
            dropped["name for which no passage was found"] += 1
    said = getattr(search, "identity", {"class": type(search).__name__})
    return found, said


def page_counts(found: dict[str, list[Passage]]) -> Counter[int]:
    """How many names have passages of so many pages."""
    return Counter(len({passage.title for passage in own}) for own in found.values())
