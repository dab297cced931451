"""What the decomposers have in common: a text is cut into sentences, and each into subclaims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from eval.aggregate import responds
from eval.decompose.sentences import split_sentences
from records import Claim, Document


class Place(NamedTuple):
    """A sentence where it stands.

    Attributes:
        document: the text it is from.
        sentences: all sentences of the text.
        index: which of them it is.
    """

    document: Document
    sentences: Sequence[str]
    index: int

    @property
    def sentence(self) -> str:
        """The sentence itself."""
        return self.sentences[self.index]


class Failed(NamedTuple):
    """Why a sentence has no decomposition."""

    reason: str


class BySentence(ABC):
    """Decompose sentence by sentence, all sentences of all documents in one go.

    Texts that do not respond (:func:`eval.aggregate.responds`) have no claims.
    """

    @abstractmethod
    def subclaims(self, places: Sequence[Place]) -> list[list[str] | Failed]:
        """The subclaims of each sentence; none where it says nothing that could be verified."""

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        """Claims of every document, in the order of the text."""
        cut = [split_sentences(d.text) if responds(d) else [] for d in documents]
        places = [
            Place(document, sentences, index)
            for document, sentences in zip(documents, cut, strict=True)
            for index in range(len(sentences))
        ]
        found = iter(self.subclaims(places) if places else [])
        return [
            _claims(sentences, [next(found) for _ in sentences])
            for _, sentences in zip(documents, cut, strict=True)
        ]


def _claims(sentences: Sequence[str], found: Sequence[list[str] | Failed]) -> list[Claim]:
    claims: list[Claim] = []
    for index, (sentence, own) in enumerate(zip(sentences, found, strict=True)):
        failed = own.reason if isinstance(own, Failed) else None
        for text in [sentence] if isinstance(own, Failed) else own:
            name = f"c{len(claims)}"
            claims.append(Claim(id=name, text=text, sentence=index, source=sentence, failed=failed))
    return claims
