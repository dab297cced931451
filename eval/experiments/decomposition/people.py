"""People's own claims: the texts that have them, sentence by sentence, and what a run adds up.

FActScore's labelled biographies and Factcheck-Bench's responses bring the claims that people made
of each sentence; the latter also the sentence in a form that stands alone.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from eval.metrics.claim_matches import Matches
from eval.metrics.document import Tally
from records import Claim, Document


def texts_of(documents: Sequence[Document]) -> list[list[str]]:
    """The claims that people made of each text."""
    return [[claim.text for claim in document.claims or []] for document in documents]


def alone(documents: Sequence[Document]) -> Iterator[Document]:
    """Each sentence of which people made claims, as a text of its own.

    It has the form that stands alone (``decontext``) where the set has one; where that is another
    one, ``as_written`` is the sentence as it stood in the text. Claims that do not name their
    sentence are left out. A model's claims beside people's (``model_claims``) are those of the same
    sentence.
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
    """What the ratios are made of, each of shape (texts,): matched or covered, and of how many.

    A text of which nothing could be decomposed is in none of them.

    ``claim_f1`` is 2 · matched / (subclaims + people's claims), the harmonic mean of
    ``claim_precision`` and ``claim_recall`` over all texts together.
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
