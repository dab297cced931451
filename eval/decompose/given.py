"""Claims that came with the documents: human atomic facts, or another decomposer's output."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from eval.stages import Decomposer
from records import Claim, Document, UserError


class Given:
    """Use each document's own claims.

    Args:
        irrelevant: keep claims that the annotators labelled irrelevant (IR).
        field: the documents' field that holds them. FActScore's labelled biographies have the
            humans' facts in ``claims`` and the model's in ``model_claims``.
        otherwise: decomposes the documents that bring none; without it such a document is an error.
    """

    def __init__(
        self, irrelevant: bool = False, field: str = "claims", otherwise: Decomposer | None = None
    ):
        self.irrelevant = irrelevant
        self.field = field
        self.otherwise = otherwise

    def holds(self) -> list[object]:
        """The other decomposer."""
        return [self.otherwise]

    def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]:
        """The claims as they are.

        Raises:
            UserError: a document brings no claims and there is no other decomposer, or something
                else is in their field.
        """
        without = [document for document in documents if not self.has(document)]
        if without and self.otherwise is None:
            raise UserError(
                f"document {without[0].id}: no claims; give a `{self.field}` field or choose "
                "another decomposer, e.g. eval.decompose.sentences.Sentences"
            )
        others = iter(self.otherwise(without) if without else ())
        return [
            [claim for claim in self._claims(document) if self.irrelevant or claim.label != "IR"]
            if self.has(document)
            else list(next(others))
            for document in documents
        ]

    def has(self, document: Document) -> bool:
        """Whether the document brings claims; an empty list is one that says nothing."""
        return getattr(document, self.field, None) is not None

    def _claims(self, document: Document) -> list[Claim]:
        try:
            return [Claim.model_validate(claim) for claim in getattr(document, self.field)]
        except ValidationError as error:
            what = error.errors()[0]["msg"]
        except TypeError as error:
            what = str(error)
        raise UserError(f"document {document.id}: {self.field}: no claims ({what})")
