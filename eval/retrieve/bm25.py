"""BM25 retrieval over a passages file."""

import logging
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from jsonargparse.typing import PositiveInt

from components.words import INNER_CHARS, to_nfc
from eval.retrieve.search import Per, SearchRetriever
from records import Passage, read_records


class PassageIndex:
    """A BM25 index over the titles and texts of passages."""

    def __init__(self, passages: Sequence[Passage]):
        import bm25s  # slow: imports scipy.sparse

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG
        self.passages = passages
        words = _words([f"{p.title}.\n{p.text}" for p in passages])
        # bm25s rejects an empty vocabulary (only stop words)
        self._index = bm25s.BM25() if any(words) else None
        if self._index:
            self._index.index(words, **_NO_PROGRESS)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """The ``k`` best passages of each query that share a word with it, best first."""
        if not queries or self._index is None:
            return [[] for _ in queries]
        return [
            self._best(self._index.get_scores(words), k) if words else []
            for words in _words(queries)
        ]

    def _best(self, scores: np.ndarray, k: int) -> list[Passage]:
        # Ties go to the first passage; in bm25s's selection they depend on the processor.
        k = min(k, len(scores))
        least = np.partition(scores, -k)[-k]
        rows = np.flatnonzero((scores >= least) & (scores > 0))
        order = np.argsort(-scores[rows], kind="stable")[:k]
        return [self.passages[row] for row in rows[order].tolist()]


class BM25(SearchRetriever):
    """Retrieve the ``k`` best passages of a file for each claim by BM25.

    Args:
        passages: a file of passage records.
        k: passages per claim.
        topic_in_query: prepend the topic to the claim.
        per: ``claim``: search for each claim; ``topic``: search once per document for its topic.
    """

    def __init__(
        self, passages: str, k: PositiveInt = 3, topic_in_query: bool = True, per: Per = "claim"
    ):
        super().__init__(k, topic_in_query, per)
        self.passages = Path(passages)

    @cached_property
    def _index(self) -> PassageIndex:
        return PassageIndex(read_records(self.passages, Passage))

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | None]:
        return self._index.search(queries, k)


def _words(texts: Sequence[str]) -> list[list[str]]:
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN

    stem, stop_words = Stemmer.Stemmer("english").stemWords, frozenset(STOPWORDS_EN)
    tokens_of = (_TOKEN.findall(to_nfc(text)) for text in texts)
    return [
        stem([w for t in tokens if (w := t.lower()) not in stop_words or t == "A"])
        for tokens in tokens_of
    ]


# Words may contain combining marks. One-letter words and digits count (Vitamin C, Apollo 9), but
# not the end of "don't" and "Ada's". "A" is a word unless it starts a sentence, where it is an
# article.
_ARTICLE = r"(?<!^)(?<![.!?:;\n]\s)(?<![\"“(])"
_TOKEN = re.compile(
    rf"{_ARTICLE}A(?!\w)|(?!A(?!\w))(?<!\w['’])\w[\w{INNER_CHARS}]*(?:\+\+|#)?"
    rf"|\w[\w{INNER_CHARS}]+"
)
_NO_PROGRESS = {"show_progress": False}
