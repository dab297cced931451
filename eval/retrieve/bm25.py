"""BM25 retrieval over a passages file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import bm25s
import Stemmer

from eval.retrieve.search import Per, SearchRetriever
from records import Passage, read_records, sha256_file


class PassageIndex:
    """Passages with a BM25 index over their titles and texts.

    Args:
        passages: what is searched.
    """

    def __init__(self, passages: Sequence[Passage]):
        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG
        self.passages = passages
        tokens = _tokens([f"{p.title} {p.text}" for p in passages])
        # Passages of nothing but stop words have no vocabulary, which bm25s does not take.
        self._index = bm25s.BM25() if tokens.vocab else None
        if self._index:
            self._index.index(tokens, **_QUIET)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """The ``k`` best passages of each query, best first; only those that share a word."""
        if not queries or self._index is None:
            return [[] for _ in queries]
        k = min(k, len(self.passages))
        places, scores = self._index.retrieve(_tokens(list(queries)), k=k, **_QUIET)
        return [
            [self.passages[place] for place, score in zip(row, marks, strict=True) if score > 0]
            for row, marks in zip(places.tolist(), scores.tolist(), strict=True)
        ]


class BM25(SearchRetriever):
    """The ``k`` best passages of a file for each claim, by BM25.

    Args:
        passages: a file of passage records.
        k: passages a claim.
        topic_in_query: whether the topic goes before the claim.
        per: ``claim`` searches for each claim, ``topic`` once a document, for its topic alone.
    """

    def __init__(self, passages: str, k: int = 3, topic_in_query: bool = True, per: Per = "claim"):
        super().__init__(k, topic_in_query, per)
        self.path = Path(passages)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What decides which passages are found."""
        return {**self._settings(), "passages_sha256": sha256_file(self.path)}

    @cached_property
    def _index(self) -> PassageIndex:
        return PassageIndex(read_records(self.path, Passage))

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        """The ``k`` best passages of each query, best first; only those that share a word."""
        return self._index.search(queries, k)


def _tokens(texts: list[str]) -> bm25s.tokenization.Tokenized:
    return bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), **_QUIET)


_QUIET = {"show_progress": False}
