"""The simplest decomposer: each sentence is one claim."""

from collections.abc import Sequence

from components.sentences import split_sentences
from records import Claim, Document


class Sentences:
    """Split the text into sentences; each is a claim and its own source."""

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        return [
            [
                Claim(id=f"c{index}", text=sentence, sentence=index, source=sentence)
                for index, sentence in enumerate(split_sentences(document.text))
            ]
            for document in documents
        ]
