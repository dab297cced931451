"""Texts with claims and, if available, verdicts on them."""

from pydantic import BaseModel

from eval.decompose.given import Given
from eval.decompose.sentences import Sentences
from eval.metrics.document import Scored, named
from eval.stages import run_decomposer
from eval.verify.labels import Labels
from records import Claim, Document, UserError, Verdict, iter_rows, read_records
from records.abstention import clean_document


class LabelledText(BaseModel):
    """A text with its claims and verdicts.

    Attributes:
        id: unique among all kinds.
        verdicts: verdicts on the claims; empty if the truth is unknown.
    """

    id: str
    kind: str
    document: Document
    claims: list[Claim]
    verdicts: list[Verdict] = []


def read_texts(path: str, kind: str, assessor: str | None) -> list[LabelledText]:
    """Read documents with their claims and verdicts.

    Args:
        path: documents, or ``scored.jsonl`` of a run.
        kind: kind of the texts, a part of their ids.
        assessor: assessor of a run whose verdicts are used; ``None`` if it has only one.
    """
    _, first = next(iter_rows(path), (0, {}))
    if {"document", "claims", "verdicts"} <= first.keys():
        rows = [_judged(scored, path, assessor) for scored in read_records(path, Scored)]
    else:
        documents = read_records(path, Document)
        split = [document for document in documents if not Given().has(document)]
        rows = run_decomposer(Sentences(), list(map(clean_document, split)))
        sentences = dict(zip((d.id for d in split), rows, strict=True))
        rows = []
        for document in documents:
            has_claims = Given().has(document)
            claims = Given()([document])[0] if has_claims else sentences[document.id]
            claims = [claim for claim in claims if claim.failed is None]
            labelled = [claim for claim in claims if claim.label is not None]
            (verdicts,) = Labels()([document], [labelled], [[]])
            rows.append((document.model_copy(update={"claims": None}), claims, verdicts))
    return [
        LabelledText(
            id=f"{kind}-{index}", kind=kind, document=document, claims=claims, verdicts=verdicts
        )
        for index, (document, claims, verdicts) in enumerate(rows)
    ]


def _judged(
    scored: Scored, path: str, assessor: str | None
) -> tuple[Document, list[Claim], list[Verdict]]:
    by_assessor: dict[str, list[Verdict]] = {}
    for verdict in scored.verdicts:
        by_assessor.setdefault(named(verdict.assessor, verdict.name), []).append(verdict)
    several = assessor is None and len(by_assessor) > 1
    if several or (assessor is not None and by_assessor and assessor not in by_assessor):
        options = ", ".join(by_assessor)
        raise UserError(f"{path}: assessor: expected one of {options}, got {assessor!r}")
    claims = [claim for claim in scored.claims if claim.failed is None]
    verdicts = by_assessor.get(assessor, []) if assessor else scored.verdicts
    return scored.document.model_copy(update={"claims": None, "passages": None}), claims, verdicts
