"""Passages that came with the documents."""

from __future__ import annotations

from collections.abc import Sequence

from eval.retrieve.search import by_id
from records import Claim, Document, Passage


class Given:
    """Use each document's own ``passages``; a claim without ``contexts`` may use all of them."""

    reads_own_passages = True

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        """The claims with their contexts and the passages as given, each once.

        Raises:
            UserError: two texts of a document's passages have the same id.
        """
        passages = [list(by_id(document.passages or []).values()) for document in documents]
        filled = [
            [
                claim
                if claim.contexts is not None
                else claim.model_copy(update={"contexts": [passage.id for passage in own]})
                for claim in mine
            ]
            for mine, own in zip(claims, passages, strict=True)
        ]
        return filled, passages
