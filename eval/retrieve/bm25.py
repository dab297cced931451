"""BM25 retrieval over a passages file."""

import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jsonargparse.typing import PositiveInt

from components.words import INNER_CHARS, to_nfc
from eval.retrieve.search import Per, SearchRetriever
from records import Passage, read_records, sha256_file


class PassageIndex:
    """Passages with a BM25 index over their titles and texts.

    Args:
        passages: what is searched.
    """

    def __init__(self, passages: Sequence[Passage]):
        import bm25s  # loads scipy.sparse, which no --help needs

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG
        self.passages = passages
        words = _words([f"{p.title} {p.text}" for p in passages])
        # Passages of nothing but stop words have no vocabulary, which bm25s does not take.
        self._index = bm25s.BM25() if any(words) else None
        if self._index:
            self._index.index(words, **_QUIET)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """The ``k`` best passages of each query, best first; only those that share a word."""
        if not queries or self._index is None:
            return [[] for _ in queries]
        return [
            self._best(self._index.get_scores(words), k) if words else []
            for words in _words(queries)
        ]

    def _best(self, scores: np.ndarray, k: int) -> list[Passage]:
        """Of equal scores, shape (passages,), the first wins.

        Which of them bm25s's own selection takes depends on the processor.
        """
        k = min(k, len(scores))
        least = np.partition(scores, -k)[-k]
        places = np.flatnonzero((scores >= least) & (scores > 0))
        order = np.argsort(-scores[places], kind="stable")[:k]
        return [self.passages[place] for place in places[order].tolist()]


class BM25(SearchRetriever):
    """The ``k`` best passages of a file for each claim, by BM25.

    Args:
        passages: a file of passage records.
        k: passages a claim.
        topic_in_query: whether the topic goes before the claim.
        per: ``claim`` searches for each claim, ``topic`` once a document, for its topic alone.
    """

    def __init__(
        self,
        passages: str,
        k: PositiveInt = 3,
        topic_in_query: bool = True,
        per: Per = "claim",
    ):
        super().__init__(k, topic_in_query, per)
        self.path = Path(passages)

    @cached_property
    def identity(self) -> dict[str, Any]:
        return {**self._settings(), "passages_sha256": sha256_file(self.path)}

    @cached_property
    def _index(self) -> PassageIndex:
        return PassageIndex(read_records(self.path, Passage))

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        return self._index.search(queries, k)


def _words(texts: Sequence[str]) -> list[list[str]]:
    whole = [to_nfc(text) for text in texts]
    import bm25s
    import Stemmer

    how = {"token_pattern": _TOKEN, "stopwords": "en", "stemmer": Stemmer.Stemmer("english")}
    return bm25s.tokenize(whole, **how, return_ids=False, **_QUIET)


# bm25s's own, a word of two characters at least, ends a word at a mark on a letter.
_TOKEN = rf"\w[\w{INNER_CHARS}]+"
_QUIET = {"show_progress": False}
