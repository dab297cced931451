"""Texts with claims of which it may be known whether they are true."""

from pydantic import BaseModel

from eval.decompose.given import Given
from eval.decompose.sentences import Sentences
from eval.metrics.document import Scored, named
from eval.verify.labels import Labels
from records import Claim, Document, UserError, Verdict, iter_rows, read_records


class Text(BaseModel):
    """A text with its claims, and what is known of their truth.

    Attributes:
        id: unique among all kinds.
        verdicts: of its claims; empty where nothing is known.
    """

    id: str
    kind: str
    document: Document
    claims: list[Claim]
    verdicts: list[Verdict] = []


def read_texts(path: str, kind: str, assessor: str | None) -> list[Text]:
    """Documents with their claims and what is known of them.

    Args:
        path: documents, or ``scored.jsonl`` of a run.
        kind: goes into the texts' ids.
        assessor: whose verdicts of a run are taken; ``None`` where it has one.
    """
    _, first = next(iter_rows(path), (0, {}))
    if {"document", "claims", "verdicts"} <= first.keys():
        found = [_judged(one, path, assessor) for one in read_records(path, Scored)]
    else:
        documents = read_records(path, Document)
        split = [document for document in documents if not Given().has(document)]
        sentences = dict(zip((d.id for d in split), Sentences()(split), strict=True))
        found = []
        for document in documents:
            given = Given().has(document)
            claims = Given()([document])[0] if given else sentences[document.id]
            claims = [claim for claim in claims if claim.failed is None]
            labelled = [claim for claim in claims if claim.label is not None]
            (verdicts,) = Labels()([document], [labelled], [[]])
            found.append((document.model_copy(update={"claims": None}), claims, verdicts))
    return [
        Text(id=f"{kind}-{place}", kind=kind, document=document, claims=claims, verdicts=verdicts)
        for place, (document, claims, verdicts) in enumerate(found)
    ]


def _judged(
    scored: Scored, path: str, assessor: str | None
) -> tuple[Document, list[Claim], list[Verdict]]:
    whose: dict[str, list[Verdict]] = {}
    for verdict in scored.verdicts:
        whose.setdefault(named(verdict.assessor, verdict.name), []).append(verdict)
    several = assessor is None and len(whose) > 1
    if several or (assessor is not None and whose and assessor not in whose):
        raise UserError(f"{path}: assessor: {assessor!r}; give one of {', '.join(whose)}")
    claims = [claim for claim in scored.claims if claim.failed is None]
    own = whose.get(assessor, []) if assessor else [v for one in whose.values() for v in one]
    return scored.document.model_copy(update={"claims": None, "passages": None}), claims, own
