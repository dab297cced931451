"""Evidence for whole texts."""

from collections.abc import Sequence

from eval.retrieve.given import Given
from eval.stages import Retriever, run_retriever
from records import Claim, Document, Passage


def retrieve_for_texts(
    retrieve: Retriever | None, documents: Sequence[Document]
) -> list[list[Passage]]:
    """The passages for each whole text, best first; empty if there are none.

    Args:
        retrieve: gets each text as one claim; null uses the documents' passages.
    """
    claims = [[Claim(id="text", text=document.text)] for document in documents]
    claims, passages = run_retriever(retrieve or Given(), documents, claims)
    by_id = [{passage.id: passage for passage in row} for row in passages]
    return [
        [row[name] for name in claim.contexts or ()]
        for (claim,), row in zip(claims, by_id, strict=True)
    ]
