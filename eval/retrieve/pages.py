"""Retrieve the best passages of the topic's page, or of the pages that a search finds.

FActScore (2305.14251, section 4) uses the page whose title is the topic and ranks its passages for
topic and claim by BM25 or by the inner product of GTR vectors (its released code has both). If no
page has that title, FActScore fails; here the pages are searched.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from eval.retrieve.bm25 import PassageIndex
from eval.retrieve.search import Per, SearchRetriever, with_contexts
from records import Claim, Document, Passage

# Decimals of a score: rounding differs by machine. Ties go to the first passage.
DECIMALS = 4


class PassageEncoder(Protocol):
    """Encodes texts as vectors for inner products."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of shape (texts, width)."""


class Job(NamedTuple):
    """Passages and the queries to rank them for."""

    passages: Sequence[Passage]
    queries: Sequence[str]


def rank(jobs: Sequence[Job], k: int, encoder: PassageEncoder | None) -> list[list[list[Passage]]]:
    """Rank the ``k`` best passages for each query of each job, best first.

    Args:
        jobs: BM25 statistics are computed per job.
        k: passages per query.
        encoder: ranks by the inner product of vectors; ``None``: BM25, without passages that share
            no word with the query.
    """
    if encoder is None:
        return [PassageIndex(job.passages).search(job.queries, k) for job in jobs]
    texts = dict.fromkeys(_text(passage) for job in jobs for passage in job.passages)
    queries = dict.fromkeys(query for job in jobs if job.passages for query in job.queries)
    rows = {text: row for row, text in enumerate({**texts, **queries})}
    vectors = encoder.encode(list(rows)) if rows else np.empty((0, 1))
    return [
        _nearest(
            job.passages,
            vectors[[rows[query] for query in job.queries]],
            vectors[[rows[_text(passage)] for passage in job.passages]],
            k,
        )
        if job.passages
        else [[] for _ in job.queries]
        for job in jobs
    ]


def _text(passage: Passage) -> str:
    return f"{passage.title} {passage.text}".strip()


def _nearest(
    passages: Sequence[Passage], queries: np.ndarray, vectors: np.ndarray, k: int
) -> list[list[Passage]]:
    scores = (queries @ vectors.T).round(DECIMALS)  # (queries, passages)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return [[passages[index] for index in row] for row in order.tolist()]


class PageRetriever(SearchRetriever):
    """Passages of the page whose title is the document's topic, or else of a search's pages.

    Args:
        k: passages per claim.
        words: words per passage; ``None``: the source's passages.
        encoder: ranks the passages instead of BM25.
        topic_in_query: prepend the topic to the claim.
        per: ``claim`` or ``topic``, see :class:`~eval.retrieve.search.SearchRetriever`.
    """

    def __init__(
        self,
        k: int,
        words: int | None,
        encoder: PassageEncoder | None,
        topic_in_query: bool,
        per: Per,
    ):
        super().__init__(k, topic_in_query, per)
        self.words = words
        self.encoder = encoder

    @abstractmethod
    def _topic_passages(self, topics: Sequence[str]) -> dict[str, list[Passage] | None]:
        """The passages of each topic's page, without topics that have none; ``None``: failed."""

    @abstractmethod
    def _search_passages(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        """All passages of the pages that match each query; ``None`` if the search failed."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        pages = self._search_passages(queries, k)
        jobs = [Job(group or [], [query]) for group, query in zip(pages, queries, strict=True)]
        ranked = rank(jobs, k, self.encoder)
        return [None if group is None else r[0] for group, r in zip(pages, ranked, strict=True)]

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        queries = self._queries(documents, claims)
        pairs = list(zip(documents, queries, strict=True))
        searches = dict.fromkeys(
            (document.topic, query) for document, group in pairs for query in group
        )
        by_topic = self._topic_passages(sorted({topic for topic, _ in searches}))
        hits = self._rank_topics(by_topic, searches)
        searched = self._search_distinct(
            query for topic, query in searches if topic not in by_topic
        )
        for topic, query in searches:
            hits.setdefault((topic, query), searched.get(query))
        return with_contexts(
            claims, [[hits[document.topic, query] for query in group] for document, group in pairs]
        )

    def _rank_topics(
        self, by_topic: dict[str, list[Passage] | None], searches: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], list[Passage] | None]:
        queries: dict[str, list[str]] = {topic: [] for topic in by_topic}
        for topic, query in searches:
            if topic in by_topic:
                queries[topic].append(query)
        jobs = [Job(by_topic[topic] or [], group) for topic, group in queries.items()]
        ranked = rank(jobs, self.k, self.encoder)
        return {
            (topic, query): None if by_topic[topic] is None else hit
            for (topic, group), hits in zip(queries.items(), ranked, strict=True)
            for query, hit in zip(group, hits, strict=True)
        }

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"words": self.words, "encoder": self.encoder}
