"""Human claims per sentence, and the metrics computed from their matches.

FActScore's labelled biographies and Factcheck-Bench's responses contain human claims for each
sentence; the latter also decontextualised sentences.
"""

from collections.abc import Iterator, Sequence

from records import Claim, Document


def texts_of(documents: Sequence[Document]) -> list[list[str]]:
    """Return the human claims of each text."""
    return [[claim.text for claim in document.claims or []] for document in documents]


def alone(documents: Sequence[Document]) -> Iterator[Document]:
    """Yield each sentence with human claims as a separate document.

    The text is the decontextualised sentence (``decontext``) if available; if it differs,
    ``as_written`` is the original sentence. Claims without a sentence are skipped. ``model_claims``
    are filtered to the sentence.
    """
    for document in documents:
        forms = _rows(document, "sentences") or []
        by_sentence: dict[int, list[Claim]] = {}
        for claim in document.claims or []:
            if claim.source:
                by_sentence.setdefault(claim.sentence, []).append(claim)
        for index, group in by_sentence.items():
            written = group[0].source
            form = forms[index].get("decontext") if index < len(forms) else None
            text = form if form and isinstance(form, str) else written
            claims = [claim.model_copy(update={"source": text}) for claim in group]
            more = {"id": f"{document.id}#{index}", "text": text, "claims": claims}
            extra = _rows(document, "model_claims")
            if extra is not None:
                more["model_claims"] = [row for row in extra if row.get("sentence", 0) == index]
            if text != written:
                more["as_written"] = written
            yield document.model_copy(update=more | {"responds": True})


def _rows(document: Document, field: str) -> list[dict] | None:
    rows = getattr(document, field, None)
    is_valid = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    return rows if is_valid else None
