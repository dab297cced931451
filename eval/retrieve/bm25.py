"""BM25 retrieval over a passages file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import bm25s
import Stemmer

from eval.retrieve.hits import queries_of, with_contexts
from records import Claim, Document, Passage, read_records


class PassageIndex:
    """Passages with a BM25 index over their titles and texts.

    Args:
        passages: what is searched.
    """

    def __init__(self, passages: Sequence[Passage]):
        self.passages = passages
        tokens = _tokens([f"{p.title} {p.text}" for p in passages])
        # Passages of nothing but stop words have no vocabulary, which bm25s does not take.
        self._index = bm25s.BM25() if tokens.vocab else None
        if self._index:
            self._index.index(tokens, **_QUIET)

    def search(self, queries: list[str], k: int) -> list[list[Passage]]:
        """The ``k`` best passages of each query, best first; only those that share a word."""
        if not queries or self._index is None:
            return [[] for _ in queries]
        k = min(k, len(self.passages))
        places, scores = self._index.retrieve(_tokens(queries), k=k, **_QUIET)
        return [
            [self.passages[place] for place, score in zip(row, marks, strict=True) if score > 0]
            for row, marks in zip(places.tolist(), scores.tolist(), strict=True)
        ]


class BM25:
    """The ``k`` best passages for each claim.

    The query is the claim with the document's topic before it, as in FActScore's retrieval
    (2305.14251, section 4): a claim with a pronoun finds its page.

    Args:
        passages: a file of passage records.
        k: passages a claim.
        topic_in_query: whether the topic goes before the claim.
    """

    def __init__(self, passages: str, k: int = 3, topic_in_query: bool = True):
        self.path = Path(passages)
        self.k = k
        self.topic_in_query = topic_in_query

    @property
    def identity(self) -> dict[str, object]:
        """What decides which passages are found, besides the passages."""
        settings = {"k": self.k, "topic_in_query": self.topic_in_query}
        return {"class": "eval.retrieve.bm25.BM25", **settings}

    @cached_property
    def _index(self) -> PassageIndex:
        return PassageIndex(read_records(self.path, Passage))

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        """Claims with ``contexts`` (best first) and the passages that each document's claims use.

        A claim without any matching passage gets ``contexts=[]``.
        """
        queries = queries_of(documents, claims, self.topic_in_query)
        distinct = sorted({query for own in queries for query in own})
        found = dict(zip(distinct, self._index.search(distinct, self.k), strict=True))
        return with_contexts(claims, [[found[query] for query in own] for own in queries])


def _tokens(texts: list[str]) -> bm25s.tokenization.Tokenized:
    return bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), **_QUIET)


_QUIET = {"show_progress": False}
