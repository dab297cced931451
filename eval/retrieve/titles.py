"""The whole pages of the people whom a text may be about, for D-FActScore (2402.05629)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jsonargparse.typing import PositiveInt

from eval.retrieve.knowledge import Knowledge
from eval.retrieve.pages import Job, PassageEncoder, rank
from eval.retrieve.search import name_of, with_contexts
from records import Claim, Document, Passage, sha256_file


@dataclass(eq=False)
class PagesOfTitles:
    """Of the page of each title among a document's passages the ``k`` best passages for each claim.

    A text is written from a few passages, and judged by the whole pages that these are from
    (2402.05629, appendix C.1; in the released code ``factscore/retrieval.py``): the query is the
    name and the claim, and passages are ranked within their page. A claim's ``contexts`` hold the
    best of the first title, then those of the next. A title that the file does not have, or has
    no text for, keeps the document's own passages; they have no ``source`` of ours.

    Args:
        path: SQLite file with the table ``documents(title, text)``, of the snapshot that the
            document's passages are from (FActScore's form; ``data_builders knowledge`` makes one).
        k: passages a title (released code: 5).
        words: words a passage; null for the passages that the file has (FActScore: 256 tokens).
        encoder: a sentence encoder that ranks the passages (released code: GTR-T5-large); null for
            BM25.
    """

    reads_own_passages = True

    path: Path
    k: PositiveInt = 5
    words: PositiveInt | None = None
    encoder: PassageEncoder | None = None

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What decides which passages are found."""
        return {
            "class": f"{type(self).__module__}.{type(self).__qualname__}",
            "k": self.k,
            "words": self.words,
            "pages_sha256": sha256_file(self.path),
            "encoder_sha256": self.encoder and self.encoder.fingerprint,
        }

    @cached_property
    def knowledge(self) -> Knowledge:
        """The pages, opened when first asked."""
        return Knowledge(self.path, self.words)

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        """Claims with ``contexts`` and the passages that each document's claims use.

        A claim of a document without passages gets ``contexts=[]``.
        """
        pages = [self._pages(document) for document in documents]
        queries = [
            [f"{name_of(document)} {claim.text}" for claim in own]
            for document, own in zip(documents, claims, strict=True)
        ]
        jobs = [
            Job(page, own) for theirs, own in zip(pages, queries, strict=True) for page in theirs
        ]
        ranked = iter(rank(jobs, self.k, self.encoder))
        hits = []
        for theirs, own in zip(pages, claims, strict=True):
            found: list[list[Passage]] = [[] for _ in own]
            for page in theirs:
                for claim, best in zip(found, next(ranked), strict=True):
                    # BM25 leaves out what shares no word; a title is judged by as many all the same
                    rest = [passage for passage in page if passage not in best]
                    claim.extend([*best, *rest][: self.k])
            hits.append(found)
        return with_contexts(claims, hits)

    def _pages(self, document: Document) -> list[list[Passage]]:
        found: dict[str, list[Passage]] = {}
        for passage in document.passages or []:
            own = self.knowledge.resolve(passage.title) if passage.title else None
            page = self.knowledge.passages(own) if own else []
            if not page:  # no such title, or an empty page
                found.setdefault(passage.title or passage.id, []).append(passage)
            elif own not in found:
                found[own] = [p.model_copy(update={"source": Path(self.path).name}) for p in page]
        return list(found.values())
