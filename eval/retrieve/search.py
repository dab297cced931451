"""What all sources of passages share: one search, as a stage of the pipeline and for assessors."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from records import Claim, Document, Passage, UserError

# Passages are searched for each claim, or once a document, for its topic.
Per = Literal["claim", "topic"]


class SearchRetriever(ABC):
    """A :class:`~eval.stages.Searcher` that is a :class:`~eval.stages.Retriever` too.

    The query of a claim is its text with the document's topic before it, as in FActScore's
    retrieval (2305.14251, section 4): a claim with a pronoun finds its page.

    Args:
        k: passages a claim.
        topic_in_query: whether the topic goes before the claim.
        per: ``claim`` searches for each claim, ``topic`` once a document, for its topic alone; all
            its claims then share the passages.
    """

    def __init__(self, k: int, topic_in_query: bool, per: Per):
        if per == "topic" and not topic_in_query:
            raise UserError("topic_in_query: false leaves `per: topic` nothing to search for")
        self.k = k
        self.topic_in_query = topic_in_query
        self.per = per

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Everything that decides which passages are found, and no secret."""

    @abstractmethod
    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        """Up to ``k`` passages a query, best first; ``None`` where the search failed."""

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        """Claims with ``contexts`` (best first) and the passages that each document's claims use.

        A claim for which nothing was found gets ``contexts=[]``, one whose search failed ``None``.
        """
        queries = self._queries(documents, claims)
        found = self._found([query for own in queries for query in own])
        return with_contexts(claims, [[found[query] for query in own] for own in queries])

    def _found(self, queries: Iterable[str]) -> dict[str, list[Passage] | None]:
        distinct = sorted(set(queries))
        return dict(zip(distinct, self.search(distinct, self.k), strict=True))

    def _queries(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[str]]:
        return [
            [self._query(document, claim) for claim in own]
            for document, own in zip(documents, claims, strict=True)
        ]

    def _query(self, document: Document, claim: Claim) -> str:
        topic = name_of(document)
        if self.per == "topic":
            return topic
        return f"{topic} {claim.text}" if self.topic_in_query else claim.text

    def _settings(self) -> dict[str, Any]:
        own = type(self)
        return {
            "class": f"{own.__module__}.{own.__qualname__}",
            "k": self.k,
            "topic_in_query": self.topic_in_query,
            "per": self.per,
        }


def name_of(document: Document) -> str:
    """A document's topic in words; it may be written as in the address of a page."""
    return document.topic.replace("_", " ")


def by_id(passages: Iterable[Passage]) -> dict[str, Passage]:
    """The passages of a document by their ids, each once, in their order."""
    known: dict[str, Passage] = {}
    for passage in passages:
        if known.setdefault(passage.id, passage).text != passage.text:
            raise UserError(f"passage id {passage.id!r} names two texts; ids must be unique")
    return known


def with_contexts(
    claims: Sequence[Sequence[Claim]], hits: Sequence[Sequence[Sequence[Passage] | None]]
) -> tuple[list[list[Claim]], list[list[Passage]]]:
    """Claims with ``contexts``, and the passages that each document's claims use, each once.

    Args:
        claims: of each document.
        hits: for each of them its passages, best first; none is ``contexts=[]``, and ``None``
            (the search failed) is ``contexts=None``.
    """
    found, used = [], []
    for own, own_hits in zip(claims, hits, strict=True):
        known = by_id(passage for hit in own_hits for passage in hit or ())
        found.append(
            [
                claim.model_copy(
                    update={"contexts": None if hit is None else [passage.id for passage in hit]}
                )
                for claim, hit in zip(own, own_hits, strict=True)
            ]
        )
        used.append(list(known.values()))
    return found, used
