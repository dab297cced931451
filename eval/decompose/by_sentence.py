"""What the decomposers have in common: a text is cut into sentences, and each into subclaims."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from components.sentences import remove_citations, split_sentences
from records import Claim, Document, UserError
from records.abstention import responds
from records.stage_outputs import class_path_of, require_one_each


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
    """Why a sentence has no decomposition, or one of its parts no subclaim."""

    reason: str


class BackedOff(NamedTuple):
    """Why a sentence is its own only subclaim, where a method has it so when it cannot do more.

    Such a claim carries the reason in a field ``backed_off``, by which they are counted.
    """

    reason: str


class BySentence(ABC):
    """Decompose sentence by sentence, all sentences of all documents in one go.

    Texts that do not respond (:func:`records.abstention.responds`) have no claims. The numbers
    of citations are taken out before the text is cut.
    """

    @abstractmethod
    def subclaims(self, places: Sequence[Place]) -> list[list[str | Failed] | BackedOff | Failed]:
        """The subclaims of each sentence; none where it says nothing that could be verified.

        Where a method makes its subclaims one at a time, some of them may have failed.
        """

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        texts = [remove_citations(d.text) if responds(d) else "" for d in documents]
        cut = [split_sentences(text) for text in texts]
        places = [
            Place(document, sentences, index)
            for document, sentences in zip(documents, cut, strict=True)
            for index in range(len(sentences))
        ]
        who = f"{class_path_of(self)}.subclaims"
        given = require_one_each(who, self.subclaims(places), places, "sentence") if places else []
        found = iter([_checked(who, place, own) for place, own in zip(places, given, strict=True)])
        return [
            _claims(sentences, [next(found) for _ in sentences])
            for _, sentences in zip(documents, cut, strict=True)
        ]


def _checked(who: str, place: Place, own: object) -> list[str | Failed | BackedOff]:
    found = [own] if isinstance(own, Failed | BackedOff) else own
    if isinstance(found, Iterable) and not isinstance(found, str):
        found = list(found)
        none = (Failed, BackedOff)
        if all(one.strip() if isinstance(one, str) else isinstance(one, none) for one in found):
            return found
    raise UserError(
        f"{who}: document {place.document.id!r}: sentence {place.index}: gave {own!r:.60}; give a "
        "list of texts, none of them empty, or Failed"
    )


def _claims(
    sentences: Sequence[str], found: Sequence[list[str | Failed | BackedOff]]
) -> list[Claim]:
    claims: list[Claim] = []
    for index, (sentence, own) in enumerate(zip(sentences, found, strict=True)):
        for one in own:
            text, more = (one, {}) if isinstance(one, str) else (sentence, {})
            if isinstance(one, Failed):
                more = {"failed": one.reason}
            elif isinstance(one, BackedOff):
                more = {"backed_off": one.reason}
            name = f"c{len(claims)}"
            claims.append(Claim(id=name, text=text, sentence=index, source=sentence, **more))
    return claims
