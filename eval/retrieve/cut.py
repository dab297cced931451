"""Passages cut to a number of characters, or into their sentences, whatever found them."""

from collections.abc import Sequence
from dataclasses import dataclass

from jsonargparse.typing import PositiveInt

from components.sentences import split_sentences
from eval.stages import Retriever
from records import Claim, Document, Passage


@dataclass(eq=False)
class Cut:
    """Another retriever's passages, each cut to its first characters.

    FactReasoner (2502.18573) reads at most 4,000 characters of a page. The cut is at the end of a
    word where there is one in the last fifth.

    Args:
        retrieve: finds the passages.
        max_characters: characters of a passage's text.
    """

    retrieve: Retriever
    max_characters: PositiveInt = 4000

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        found, passages = self.retrieve(documents, claims)
        return found, [[self._cut(passage) for passage in own] for own in passages]

    def _cut(self, passage: Passage) -> Passage:
        text = passage.text
        if len(text) <= self.max_characters:
            return passage
        end = text.rfind(" ", self.max_characters * 4 // 5, self.max_characters + 1)
        return passage.model_copy(update={"text": text[: end if end > 0 else self.max_characters]})


@dataclass(eq=False)
class InSentences:
    """Another retriever's passages, each sentence a passage of its own under the same title.

    For relation models that were trained on single sentences: of a whole page they read overlap as
    entailment. A sentence's id is its passage's with its number behind ``#``.

    Args:
        retrieve: finds the passages.
    """

    retrieve: Retriever

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        found, passages = self.retrieve(documents, claims)
        parts = [{one.id: _sentences(one) for one in own} for own in passages]
        claims_found = [
            [_with_sentences(claim, by_id) for claim in own]
            for own, by_id in zip(found, parts, strict=True)
        ]
        return claims_found, [[one for own in by_id.values() for one in own] for by_id in parts]


def _sentences(passage: Passage) -> list[Passage]:
    return [
        passage.model_copy(update={"id": f"{passage.id}#{number}", "text": sentence})
        for number, sentence in enumerate(split_sentences(passage.text, headings=True))
    ]


def _with_sentences(claim: Claim, parts: dict[str, list[Passage]]) -> Claim:
    if claim.contexts is None:
        return claim
    names = [one.id for name in claim.contexts for one in parts.get(name, [])]
    return claim.model_copy(update={"contexts": names})
