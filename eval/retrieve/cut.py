"""Truncate another retriever's passages, or split them into sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from jsonargparse.typing import PositiveInt

from components.sentences import split_sentences
from eval.retrieve.pages import Job, rank
from eval.stages import Retriever, RetrieverWrapper
from records import Claim, Document, Passage


@dataclass(eq=False)
class Cut(RetrieverWrapper):
    """Another retriever's passages, truncated.

    FactReasoner (2502.18573) reads at most 4,000 characters of a page. Passages end after a word if
    there is a space in the last fifth.

    Args:
        retrieve: retriever of the passages.
        max_characters: maximum characters of a passage's text.
    """

    retrieve: Retriever
    max_characters: PositiveInt = 4000

    def change(self, passage: Passage) -> Passage:
        text = passage.text
        if len(text) <= self.max_characters:
            return passage
        end = text.rfind(" ", self.max_characters * 4 // 5, self.max_characters + 1)
        return passage.model_copy(update={"text": text[: end if end > 0 else self.max_characters]})


@dataclass(eq=False)
class InSentences:
    """Another retriever's passages, split into one passage per sentence, with ids ``PASSAGE#0``, …

    For relation models trained on single sentences, which confuse overlap with entailment on whole
    pages.

    Args:
        retrieve: retriever of the passages.
        k: maximum number of sentences of each passage for a claim, the best by BM25; null: all, in
            the passage's order.
    """

    retrieve: Retriever
    k: PositiveInt | None = None

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        claims_found, passages = self.retrieve(documents, claims)
        parts = [{passage.id: _sentences(passage) for passage in group} for group in passages]
        with_sentences = []
        for document_claims, by_id in zip(claims_found, parts, strict=True):
            texts = [claim.text for claim in document_claims]
            rows = {name: [sentences] * len(texts) for name, sentences in by_id.items()}
            if self.k is not None:
                jobs = [Job(sentences, texts) for sentences in by_id.values()]
                rows = dict(zip(by_id, rank(jobs, self.k, None), strict=True))
            with_sentences.append(
                [
                    _with_sentences(claim, {name: row[i] for name, row in rows.items()})
                    for i, claim in enumerate(document_claims)
                ]
            )
        return with_sentences, [list(chain.from_iterable(by_id.values())) for by_id in parts]


def _sentences(passage: Passage) -> list[Passage]:
    return [
        passage.model_copy(update={"id": f"{passage.id}#{number}", "text": sentence})
        for number, sentence in enumerate(split_sentences(passage.text))
    ]


def _with_sentences(claim: Claim, parts: dict[str, list[Passage]]) -> Claim:
    if claim.contexts is None:
        return claim
    ids = [sentence.id for name in claim.contexts for sentence in parts.get(name, [])]
    return claim.model_copy(update={"contexts": ids})
