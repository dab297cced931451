"""Pages of the people that a text may be about, for D-FActScore (2402.05629)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jsonargparse.typing import PositiveInt

from components.english import without_qualifier
from components.words import name_key
from eval.retrieve.knowledge import Knowledge
from eval.retrieve.pages import Job, PassageEncoder, rank
from eval.retrieve.search import topic_name, with_contexts
from eval.stages import RetrieverWrapper
from records import Claim, Document, Passage


@dataclass(eq=False)
class PagesOfTitles:
    """Retrieve the ``k`` best passages for each claim from each page of the document's passages.

    A text is generated from a few passages and judged by their whole pages (2402.05629, appendix
    C.1; ``factscore/retrieval.py`` in the released code): the query is the name and the claim, and
    passages are ranked within their page. A claim's ``contexts`` are in the order of the titles.
    The document's passages are used for titles without text in the file, without ``source``.

    Args:
        path: SQLite file with the table ``documents(title, text)`` (FActScore's format, e.g. from
            ``data_builders knowledge``), of the same snapshot as the document's passages.
        k: passages per title (released code: 5).
        words: words per passage; null: the file's passages (FActScore: 256 tokens).
        encoder: sentence encoder that ranks the passages (released code: GTR-T5-large); null: BM25.
    """

    reads_own_passages = True

    path: Path
    k: PositiveInt = 5
    words: PositiveInt | None = None
    encoder: PassageEncoder | None = None

    @cached_property
    def knowledge(self) -> Knowledge:
        return Knowledge(self.path, self.words)

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        pages = [self._pages_of(document) for document in documents]
        queries = [
            [f"{topic_name(document)} {claim.text}" for claim in group]
            for document, group in zip(documents, claims, strict=True)
        ]
        jobs = [
            Job(page, texts) for group, texts in zip(pages, queries, strict=True) for page in group
        ]
        ranked = iter(rank(jobs, self.k, self.encoder))
        hits = []
        for group, texts in zip(pages, claims, strict=True):
            per_claim: list[list[Passage]] = [[] for _ in texts]
            for page in group:
                for contexts, best in zip(per_claim, next(ranked), strict=True):
                    # BM25 skips passages without a shared word; use k passages per title anyway
                    rest = [passage for passage in page if passage not in best]
                    contexts.extend([*best, *rest][: self.k])
            hits.append(per_claim)
        return with_contexts(claims, hits)

    def _pages_of(self, document: Document) -> list[list[Passage]]:
        pages: dict[str, list[Passage]] = {}
        for passage in document.passages or []:
            title = self.knowledge.resolve(passage.title) if passage.title else None
            page = self.knowledge.passages(title) if title else []
            if not page:  # no such title, or an empty page
                pages.setdefault(passage.title or passage.id, []).append(passage)
            elif title not in pages:
                pages[title] = [p.model_copy(update={"source": Path(self.path).name}) for p in page]
        return list(pages.values())


class TopicPage(RetrieverWrapper):
    """Keep only the passages of the topic's own page, as FActScore does (2305.14251, section 4).

    A passage is kept if its title is the document's topic. If no retrieved passage has that title,
    passages are kept whose title is the topic's name with a qualifier, such as "Paul Nash (artist)"
    for "Paul Nash". A claim without such a passage has no evidence.
    """

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        updated, passages = self.retrieve(documents, claims)
        kept = [_of_topic(topic_name(d), row) for d, row in zip(documents, passages, strict=True)]
        ids = [{passage.id for passage in row} for row in kept]
        return [
            [_restrict(claim, kept_ids) for claim in row]
            for row, kept_ids in zip(updated, ids, strict=True)
        ], kept


def _of_topic(topic: str, passages: Sequence[Passage]) -> list[Passage]:
    name = name_key(topic)
    titled = [(passage, name_key(passage.title)) for passage in passages]
    exact = [passage for passage, title in titled if title == name]
    return exact or [passage for passage, title in titled if without_qualifier(title) == name]


def _restrict(claim: Claim, ids: set[str]) -> Claim:
    if claim.contexts is None:
        return claim
    return claim.model_copy(update={"contexts": [i for i in claim.contexts if i in ids]})
