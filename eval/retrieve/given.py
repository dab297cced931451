"""Passages that the documents contain."""

from collections.abc import Sequence

from eval.retrieve.search import by_id
from records import Claim, Document, Passage, UserError


class Given:
    """Use each document's own ``passages``; a claim without ``contexts`` may use all of them."""

    reads_own_passages = True

    def __call__(
        self, documents: Sequence[Document], claims: Sequence[Sequence[Claim]]
    ) -> tuple[list[list[Claim]], list[list[Passage]]]:
        passages = [_passages(document) for document in documents]
        for document, group, available in zip(documents, claims, passages, strict=True):
            _check_contexts(document, group, available)
        filled = [
            [
                claim
                if claim.contexts is not None
                else claim.model_copy(update={"contexts": [passage.id for passage in available]})
                for claim in group
            ]
            for group, available in zip(claims, passages, strict=True)
        ]
        return filled, passages


def _passages(document: Document) -> list[Passage]:
    try:
        return list(by_id(document.passages or []).values())
    except UserError as error:
        raise UserError(f"document {document.id!r}: {error}") from None


def _check_contexts(
    document: Document, claims: Sequence[Claim], passages: Sequence[Passage]
) -> None:
    ids = {passage.id for passage in passages}
    for claim in claims if ids else ():
        for name in claim.contexts or ():
            if name not in ids:
                raise UserError(
                    f"document {document.id!r}: claim {claim.id!r}: contexts: {name!r} is not "
                    "among the document's passages; fix or remove the id"
                )
