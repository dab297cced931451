"""Base class of retrievers that search with queries."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from records import Claim, Document, Passage, UserError

Per = Literal["claim", "topic"]


class SearchRetriever(ABC):
    """A :class:`~eval.stages.Searcher` that is also a :class:`~eval.stages.Retriever`.

    The query is the document's topic and the claim, as in FActScore (2305.14251, section 4), so
    that a claim with a pronoun finds its page.

    Args:
        k: passages per claim.
        topic_in_query: prepend the topic to the claim.
        per: ``claim``: search for each claim; ``topic``: search once per document for its topic,
            and use the passages for all its claims.
    """

    def __init__(self, k: int, topic_in_query: bool, per: Per):
        if per == "topic" and not topic_in_query:
            raise UserError("topic_in_query: `per: topic` needs true")
        self.k = k
        self.topic_in_query = topic_in_query
        self.per = per

    @abstractmethod
    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        """Return up to ``k`` passages per query, best first; ``None`` if the search failed."""

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        """Return the claims with ``contexts``, and each document's distinct passages.

        ``contexts`` are best first: ``[]`` if nothing matches, ``None`` if the search failed.
        """
        queries = self._queries(documents, claims)
        hits = self._search_distinct([query for group in queries for query in group])
        return with_contexts(claims, [[hits[query] for query in group] for group in queries])

    def _search_distinct(self, queries: Iterable[str]) -> dict[str, list[Passage] | None]:
        distinct = sorted(set(queries))
        return dict(zip(distinct, self.search(distinct, self.k), strict=True))

    def _queries(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> list[list[str]]:
        return [
            [self._query(document, claim) for claim in document_claims]
            for document, document_claims in zip(documents, claims, strict=True)
        ]

    def _query(self, document: Document, claim: Claim) -> str:
        topic = topic_name(document)
        if self.per == "topic":
            return topic
        if not self.topic_in_query:
            return claim.text
        # After a topic, "A" would be part of its name (Vitamin A).
        return f"{topic} {'a' if claim.text[:2] == 'A ' else claim.text[:1]}{claim.text[1:]}"

    def _settings(self) -> dict[str, Any]:
        return {"k": self.k, "topic_in_query": self.topic_in_query, "per": self.per}


def topic_name(document: Document) -> str:
    """A document's topic with spaces for the underscores of a page URL."""
    return document.topic.replace("_", " ")


def by_id(passages: Iterable[Passage]) -> dict[str, Passage]:
    """Map the ids of a document's passages to distinct passages, in order."""
    distinct: dict[str, Passage] = {}
    for passage in passages:
        if distinct.setdefault(passage.id, passage).text != passage.text:
            raise UserError(f"passage id {passage.id!r} has two texts; ids must be unique")
    return distinct


def with_contexts(
    claims: Sequence[Sequence[Claim]], hits: Sequence[Sequence[Sequence[Passage] | None]]
) -> tuple[list[list[Claim]], list[list[Passage]]]:
    """Set ``contexts`` from each claim's hits, and collect each document's distinct passages."""
    filled, used = [], []
    for document_claims, document_hits in zip(claims, hits, strict=True):
        distinct = by_id(passage for hit in document_hits for passage in hit or ())
        filled.append(
            [
                claim.model_copy(
                    update={"contexts": None if hit is None else [passage.id for passage in hit]}
                )
                for claim, hit in zip(document_claims, document_hits, strict=True)
            ]
        )
        used.append(list(distinct.values()))
    return filled, used
