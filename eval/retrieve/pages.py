"""Passages of whole pages: the page of the topic, or those that a search finds, and their best.

FActScore (2305.14251, section 4) takes the page whose title is the topic and ranks its passages by
BM25, or by the inner product of GTR's vectors (its released code has both), for the topic and the
claim. FActScore ends where no page has that title; here the pages are then searched for.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from eval.retrieve.bm25 import PassageIndex
from eval.retrieve.search import Per, SearchRetriever, with_contexts
from records import Claim, Document, Passage

# Scores that agree so far tie, and the first passage wins: another machine rounds otherwise.
DECIMALS = 4


class PassageEncoder(Protocol):
    """Texts to vectors; the inner product says how near two texts are.

    ``fingerprint`` is a SHA-256 over all that decides the vectors.
    """

    fingerprint: str

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of shape (texts, width)."""


class Job(NamedTuple):
    """Passages that some queries choose from."""

    passages: Sequence[Passage]
    queries: Sequence[str]


def rank(jobs: Sequence[Job], k: int, encoder: PassageEncoder | None) -> list[list[list[Passage]]]:
    """The ``k`` best passages for each query of each job, best first.

    Args:
        jobs: BM25's statistics are those of a job's own passages.
        k: passages a query.
        encoder: ranks by the inner product of vectors; BM25 ranks without it, and leaves out
            passages that share no word with the query.
    """
    if encoder is None:
        return [PassageIndex(job.passages).search(job.queries, k) for job in jobs]
    texts = dict.fromkeys(_text(passage) for job in jobs for passage in job.passages)
    queries = dict.fromkeys(query for job in jobs if job.passages for query in job.queries)
    places = {text: place for place, text in enumerate({**texts, **queries})}
    vectors = encoder.encode(list(places)) if places else np.empty((0, 1))
    return [
        _nearest(
            job.passages,
            vectors[[places[query] for query in job.queries]],
            vectors[[places[_text(passage)] for passage in job.passages]],
            k,
        )
        if job.passages
        else [[] for _ in job.queries]
        for job in jobs
    ]


def _text(passage: Passage) -> str:
    return f"{passage.title} {passage.text}".strip()


def _nearest(
    passages: Sequence[Passage], asked: np.ndarray, vectors: np.ndarray, k: int
) -> list[list[Passage]]:
    scores = (asked @ vectors.T).round(DECIMALS)  # (queries, passages)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return [[passages[place] for place in row] for row in order.tolist()]


class PageRetriever(SearchRetriever):
    """The passages of the page that the document's topic names, or of pages that are searched for.

    Args:
        k: passages a claim.
        words: words a passage; ``None`` for the passages that a source has itself.
        encoder: ranks the passages instead of BM25.
        topic_in_query: whether the topic goes before the claim.
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
    def _named(self, topics: Sequence[str]) -> dict[str, list[Passage] | None]:
        """The passages of the page that each topic names, if there is one; ``None``: failed."""

    @abstractmethod
    def _matching(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        """All passages of the pages that match each query; ``None`` where the search failed."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        found = self._matching(queries, k)
        jobs = [Job(own or [], [query]) for own, query in zip(found, queries, strict=True)]
        ranked = rank(jobs, k, self.encoder)
        return [
            hits if own is not None else None for own, (hits,) in zip(found, ranked, strict=True)
        ]

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        """Claims with ``contexts`` (best first) and the passages that each document's claims use.

        A claim for which nothing was found gets ``contexts=[]``, one whose search failed ``None``.
        """
        queries = self._queries(documents, claims)
        pairs = list(zip(documents, queries, strict=True))
        asked = dict.fromkeys((document.topic, query) for document, own in pairs for query in own)
        named = self._named(sorted({topic for topic, _ in asked}))
        found = self._ranked(named, asked)
        others = self._found(query for topic, query in asked if topic not in named)
        for topic, query in asked:
            found.setdefault((topic, query), others.get(query))
        return with_contexts(
            claims, [[found[document.topic, query] for query in own] for document, own in pairs]
        )

    def _ranked(
        self, named: dict[str, list[Passage] | None], asked: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], list[Passage] | None]:
        queries: dict[str, list[str]] = {topic: [] for topic in named}
        for topic, query in asked:
            if topic in named:
                queries[topic].append(query)
        jobs = [Job(named[topic] or [], own) for topic, own in queries.items()]
        ranked = rank(jobs, self.k, self.encoder)
        return {
            (topic, query): None if named[topic] is None else hit
            for (topic, own), hits in zip(queries.items(), ranked, strict=True)
            for query, hit in zip(own, hits, strict=True)
        }

    def _settings(self) -> dict[str, Any]:
        encoder = self.encoder and self.encoder.fingerprint
        return {**super()._settings(), "words": self.words, "encoder_sha256": encoder}
