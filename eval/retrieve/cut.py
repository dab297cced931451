"""Passages cut to a number of characters, whatever found them."""

from __future__ import annotations

from collections.abc import Sequence

from eval.stages import Retriever
from records import Claim, Document, Passage, UserError


class Cut:
    """Another retriever's passages, each cut to its first characters.

    FactReasoner (2502.18573) reads at most 4,000 characters of a page. The cut is at the end of a
    word where there is one in the last fifth.

    Args:
        retrieve: finds the passages.
        max_characters: characters of a passage's text.

    Raises:
        UserError: fewer than 1 character.
    """

    def __init__(self, retrieve: Retriever, max_characters: int = 4000):
        if max_characters < 1:
            raise UserError(f"max_characters: {max_characters}; give at least 1")
        self.retrieve = retrieve
        self.max_characters = max_characters

    def holds(self) -> list[object]:
        """The retriever."""
        return [self.retrieve]

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        """The other retriever's claims, and its passages cut."""
        found, passages = self.retrieve(documents, claims)
        return found, [[self._cut(passage) for passage in own] for own in passages]

    def _cut(self, passage: Passage) -> Passage:
        text = passage.text
        if len(text) <= self.max_characters:
            return passage
        end = text.rfind(" ", self.max_characters * 4 // 5, self.max_characters + 1)
        return passage.model_copy(update={"text": text[: end if end > 0 else self.max_characters]})
