"""Claims that came with the documents: human atomic facts, or another decomposer's output."""

from __future__ import annotations

from collections.abc import Sequence

from records import Claim, Document, UserError


class Given:
    """Use each document's own ``claims``.

    Args:
        irrelevant: keep claims that the annotators labelled irrelevant (IR).
    """

    def __init__(self, irrelevant: bool = False):
        self.irrelevant = irrelevant

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        """The claims as they are.

        Raises:
            UserError: a document brings no claims.
        """
        for document in documents:
            if document.claims is None:
                raise UserError(
                    f"document {document.id}: no claims; give a `claims` field or choose another "
                    "decomposer, e.g. eval.decompose.sentences.Sentences"
                )
        return [
            [claim for claim in document.claims or [] if self.irrelevant or claim.label != "IR"]
            for document in documents
        ]
