"""Human claims per sentence, and the metrics computed from their matches.

FActScore's labelled biographies and Factcheck-Bench's responses contain human claims for each
sentence; the latter also decontextualised sentences.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from eval.metrics.claim_matches import Matches
from eval.metrics.document import Tally
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


def columns(
    matches: Sequence[Matches], usable: Sequence[int], failed: Sequence[int]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return numerator and denominator of each metric, each of shape (texts,).

    Texts whose decomposition failed completely are excluded. ``claim_f1`` is
    2 · matched / (subclaims + human claims), over all texts together.
    """
    scored = [Tally(u, 0, f).scored for u, f in zip(usable, failed, strict=True)]
    matched, subclaims = np.asarray([match.matched for match in matches]), np.asarray(usable)
    people = np.asarray([match.people for match in matches]) * scored
    ratios = {
        "claim_precision": (matched, subclaims),
        "claim_recall": (matched, people),
        "claim_f1": (2 * matched, subclaims + people),
    }
    if all(match.covered is not None for match in matches):
        ratios["element_coverage"] = (np.asarray([match.covered for match in matches]), people)
    return ratios
