"""The plain decomposer: one sentence, one claim."""

from __future__ import annotations

from collections.abc import Sequence

import nupunkt

from records import Claim, Document


class Sentences:
    """Split the text into sentences; each is a claim and its own source."""

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        """Claims of every document, in the order of the text; none for an empty text."""
        return [
            [
                Claim(id=f"c{index}", text=sentence, sentence=index, source=sentence)
                for index, sentence in enumerate(split_sentences(document.text))
            ]
            for document in documents
        ]


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without blank ones."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [sentence.strip() for line in lines for sentence in nupunkt.sent_tokenize(line)]
    return [sentence for sentence in found if any(char.isalnum() for char in sentence)]
