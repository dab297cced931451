"""The base class of decomposers that split a text into sentences and each into subclaims."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from components.sentences import split_sentences
from records import Claim, Document, UserError
from records.abstention import responds
from records.stage_outputs import class_path_of, require_one_each


class Place(NamedTuple):
    """A sentence of a document: ``sentences[index]`` of all its sentences."""

    document: Document
    sentences: Sequence[str]
    index: int

    @property
    def sentence(self) -> str:
        return self.sentences[self.index]


class Failed(NamedTuple):
    """The reason why a sentence, or one of its parts, could not be decomposed."""

    reason: str


class BackedOff(NamedTuple):
    """The reason why a method uses the whole sentence as its only subclaim.

    The claim carries the reason in its field ``backed_off``.
    """

    reason: str


class BySentence(ABC):
    """Decompose sentence by sentence, with all sentences of all documents in one batch.

    Abstentions (:func:`records.abstention.responds`) have no claims.
    """

    @abstractmethod
    def subclaims(self, places: Sequence[Place]) -> list[list[str | Failed] | BackedOff | Failed]:
        """Return the subclaims of each sentence; an empty list if nothing can be verified.

        A method that generates subclaims one at a time may return some of them as ``Failed``.
        """

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        texts = [d.text if responds(d) else "" for d in documents]
        split_texts = [split_sentences(text) for text in texts]
        places = [
            Place(document, sentences, index)
            for document, sentences in zip(documents, split_texts, strict=True)
            for index in range(len(sentences))
        ]
        method = f"{class_path_of(self)}.subclaims"
        outputs = (
            require_one_each(method, self.subclaims(places), places, "sentence") if places else []
        )
        subclaims = iter(
            [_validate(method, place, out) for place, out in zip(places, outputs, strict=True)]
        )
        return [
            _claims(sentences, [next(subclaims) for _ in sentences]) for sentences in split_texts
        ]


def _validate(method: str, place: Place, output: object) -> list[str | Failed | BackedOff]:
    subclaims = [output] if isinstance(output, Failed | BackedOff) else output
    if isinstance(subclaims, Iterable) and not isinstance(subclaims, str):
        subclaims = list(subclaims)
        if all(
            item.strip() if isinstance(item, str) else isinstance(item, Failed | BackedOff)
            for item in subclaims
        ):
            return subclaims
    raise UserError(
        f"{method}: document {place.document.id!r}: sentence {place.index}: expected a list of "
        f"non-empty texts, or Failed, got {output!r:.60}"
    )


def _claims(
    sentences: Sequence[str], subclaims: Sequence[list[str | Failed | BackedOff]]
) -> list[Claim]:
    claims: list[Claim] = []
    for index, (sentence, items) in enumerate(zip(sentences, subclaims, strict=True)):
        for item in items:
            text, fields = (item, {}) if isinstance(item, str) else (sentence, {})
            if isinstance(item, Failed):
                fields = {"failed": item.reason}
            elif isinstance(item, BackedOff):
                fields = {"backed_off": item.reason}
            name = f"c{len(claims)}"
            claims.append(Claim(id=name, text=text, sentence=index, source=sentence, **fields))
    return claims
