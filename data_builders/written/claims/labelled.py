"""Documents whose claims have labels: their files' own, a knowledge base's, or an assessor's."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from eval.metrics.document import named
from records import (
    Claim,
    Document,
    Generation,
    Passage,
    UserError,
    Verdict,
    iter_rows,
    read_records,
)
from records.types import Record

# What a verdict makes of a claim; one that failed leaves it without a label.
LABELS = {
    "supported": "S",
    "not_supported": "NS",
    "contradicted": "NS",
    "undecided": "NS",
    "irrelevant": "IR",
}


class ScoredText(Record):
    """What is read of a line of ``scored.jsonl``."""

    document: Document
    claims: list[Claim]
    passages: list[Passage] | None = None
    verdicts: list[Verdict]


@dataclass(frozen=True)
class Source:
    """A document with labelled claims.

    Attributes:
        id: unique among all files.
        document: the text, its claims with their labels where they have any, and passages.
    """

    id: str
    document: Document

    @property
    def topic(self) -> str:
        """Whom or what it is about."""
        return self.document.topic

    @property
    def claims(self) -> list[Claim]:
        """All claims, whatever their labels."""
        return self.document.claims or []

    @property
    def person(self) -> str | None:
        """IRI of the topic in the knowledge base, where the row says so."""
        return (self.document.model_extra or {}).get("person")

    @cached_property
    def supported(self) -> dict[str, str]:
        """Text of each supported claim to the id of the first that says it."""
        found: dict[str, str] = {}
        for claim in self.claims:
            if claim.label == "S":
                found.setdefault(claim.text, claim.id)
        return found


def read_sources(
    paths: Sequence[str],
    kind: str | None,
    verdict: str | None,
    dropped: Counter[str] | None = None,
) -> list[Source]:
    """All documents, in the files' order.

    Args:
        paths: documents with ``claims``, generations whose ``sentences`` have a truth, or the
            ``scored.jsonl`` of ``eval score``.
        kind: only rows of this kind; ``None`` for all.
        verdict: whose verdicts are the labels of scored texts, where there are several.
        dropped: counts documents without claims, which are skipped, and each file must have
            labels; ``None`` takes all documents.
    """
    sources: dict[str, Source] = {}
    for path in paths:
        documents = [d for d in read_labelled(path, verdict) if kind is None or d.kind == kind]
        if not documents:
            what = "row" if kind is None else f"row of source_kind {kind}"
            raise UserError(f"{path}: no {what}; leave it out or give another")
        labels = (claim.label for document in documents for claim in document.claims or [])
        if dropped is not None and not any(labels):
            raise UserError(
                f"{path}: no labelled claims; give `claims` with labels S and NS, or the "
                "scored.jsonl that `python -m eval score` wrote"
            )
        for document in documents:
            if dropped is not None and not document.claims:
                dropped["document without claims"] += 1
                continue
            generator = {"generator": document.generator or Path(path).stem}
            name = f"{Path(path).stem}/{document.id}"
            if name in sources:  # the file's name is part of the id
                raise UserError(
                    f"documents: {name} stands twice; rename a file, or give it another id"
                )
            sources[name] = Source(name, document.model_copy(update=generator))
    return list(sources.values())


def read_labelled(path: str, verdict: str | None = None) -> Iterator[Document]:
    """The documents of a file, their claims with labels and, as ``labelled_by``, who says so.

    Args:
        path: documents, generations, or scored texts.
        verdict: an assessor, or ``assessor.name``, of scored texts.
    """
    _, first = next(iter_rows(path), (0, {}))
    if "verdicts" in first and "document" in first:
        rows = read_records(path, ScoredText)
        chosen = _assessor(path, rows, verdict)
        yield from (_of_verdicts(row, chosen) for row in rows)
    elif "sentences" in first and "claims" not in first:
        for number, row in enumerate(read_records(path, Generation), 1):
            yield _of_sentences(row, f"g{number}")
    else:
        for document in read_records(path, Document):
            claims = document.claims and [
                c.model_copy(
                    update={"labelled_by": _labelled_by(c) or ("given" if c.label else "none")}
                )
                for c in document.claims
            ]
            yield document.model_copy(update={"claims": claims})


def _assessor(path: str, rows: Sequence[ScoredText], verdict: str | None) -> tuple[str, str]:
    there = dict.fromkeys((v.assessor, v.name) for row in rows for v in row.verdicts)
    known = {named(*one): one for one in there}
    if verdict is None and len(known) == 1:
        return next(iter(there))
    found = known.get((verdict or "").removesuffix(".default"))
    if found is None:
        what = "several verdicts" if verdict is None else f"no verdict {verdict!r}"
        raise UserError(
            f"{path}: {what}; choose one with --verdict: {', '.join(known) or 'there is none'}"
        )
    return found


def _of_verdicts(row: ScoredText, chosen: tuple[str, str]) -> Document:
    verdicts = {v.claim: v for v in row.verdicts if (v.assessor, v.name) == chosen}
    claims = []
    for claim in row.claims:
        said = verdicts.get(claim.id)
        label = LABELS.get(said.label) if said else None
        who = named(*chosen) if label else "none"
        claims.append(claim.model_copy(update={"label": label, "labelled_by": who}))
    # After a retrieval ``contexts`` is always there, and the passages are those it speaks of.
    passages = row.passages or row.document.passages
    return row.document.model_copy(update={"claims": claims, "passages": passages})


def _of_sentences(row: Generation, name: str) -> Document:
    claims = row.sentences and [
        {"id": f"c{place}", "text": s.text, "sentence": place, "source": s.text}
        | {"label": "S" if s.true else "NS", "labelled_by": "knowledge base"}
        for place, s in enumerate(row.sentences)
    ]
    told = row.model_dump(exclude={"sentences", "citations"}, exclude_none=True)
    return Document.model_validate({"id": name, **told, "claims": claims})


def _labelled_by(claim: Claim) -> str | None:
    return (claim.model_extra or {}).get("labelled_by")
