"""BM25 retrieval over a passages file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import bm25s
import Stemmer

from records import Claim, Document, Passage, read_records


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

    @cached_property
    def _passages(self) -> list[Passage]:
        return read_records(self.path, Passage)

    @cached_property
    def _index(self) -> bm25s.BM25:
        index = bm25s.BM25()
        index.index(self._tokens([f"{p.title} {p.text}" for p in self._passages]), **_QUIET)
        return index

    def _tokens(self, texts: list[str]) -> bm25s.tokenization.Tokenized:
        return bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), **_QUIET)

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        """Claims with ``contexts`` (best first) and the passages that each document's claims use.

        A claim without any matching passage gets ``contexts=[]``.
        """
        queries = sorted(
            {
                self._query(document, claim)
                for document, own in zip(documents, claims, strict=True)
                for claim in own
            }
        )
        found = dict(zip(queries, self._search(queries), strict=True))
        out_claims, out_passages = [], []
        for document, own in zip(documents, claims, strict=True):
            hits = [found[self._query(document, claim)] for claim in own]
            out_claims.append(
                [
                    claim.model_copy(update={"contexts": [passage.id for passage in hit]})
                    for claim, hit in zip(own, hits, strict=True)
                ]
            )
            out_passages.append(list({p.id: p for hit in hits for p in hit}.values()))
        return out_claims, out_passages

    def _query(self, document: Document, claim: Claim) -> str:
        return f"{document.topic} {claim.text}" if self.topic_in_query else claim.text

    def _search(self, queries: list[str]) -> list[list[Passage]]:
        if not queries:
            return []
        k = min(self.k, len(self._passages))
        places, scores = self._index.retrieve(self._tokens(queries), k=k, **_QUIET)
        return [
            [self._passages[place] for place, score in zip(row, marks, strict=True) if score > 0]
            for row, marks in zip(places.tolist(), scores.tolist(), strict=True)
        ]


_QUIET = {"show_progress": False}
