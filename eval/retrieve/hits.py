"""What all retrievers do before and after they search: the queries, and who gets which passages."""

from __future__ import annotations

from collections.abc import Sequence

from records import Claim, Document, Passage


def queries_of(
    documents: Sequence[Document], claims: Sequence[Sequence[Claim]], topic_in_query: bool
) -> list[list[str]]:
    """The query of each claim, with its document's topic before it or without."""
    return [
        [f"{document.topic} {claim.text}" if topic_in_query else claim.text for claim in own]
        for document, own in zip(documents, claims, strict=True)
    ]


def with_contexts(
    claims: Sequence[Sequence[Claim]], hits: Sequence[Sequence[Sequence[Passage]]]
) -> tuple[list[list[Claim]], list[list[Passage]]]:
    """Claims with ``contexts``, and the passages that each document's claims use.

    Args:
        claims: of each document.
        hits: for each of them its passages, best first; none is ``contexts=[]``.
    """
    found, used = [], []
    for own, own_hits in zip(claims, hits, strict=True):
        found.append(
            [
                claim.model_copy(update={"contexts": [passage.id for passage in hit]})
                for claim, hit in zip(own, own_hits, strict=True)
            ]
        )
        used.append(list({passage.id: passage for hit in own_hits for passage in hit}.values()))
    return found, used
