"""Documents with labelled claims, from document files, generations, or scored texts."""

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

# Verdict to label; a failed verdict gives none.
LABELS = {
    "supported": "S",
    "not_supported": "NS",
    "contradicted": "NS",
    "undecided": "NS",
    "irrelevant": "IR",
}


class ScoredText(Record):
    document: Document
    claims: list[Claim]
    passages: list[Passage] | None = None
    verdicts: list[Verdict]


@dataclass(frozen=True)
class Source:
    """A document with claims and an id that is unique among all files."""

    id: str
    document: Document

    @property
    def topic(self) -> str:
        return self.document.topic

    @property
    def claims(self) -> list[Claim]:
        return self.document.claims or []

    @property
    def person(self) -> str | None:
        """IRI of the topic in the knowledge base, if the row has one."""
        return (self.document.model_extra or {}).get("person")

    @cached_property
    def supported(self) -> dict[str, str]:
        """Text of each supported claim to the id of the first claim with that text."""
        ids: dict[str, str] = {}
        for claim in self.claims:
            if claim.label == "S":
                ids.setdefault(claim.text, claim.id)
        return ids


def read_sources(
    paths: Sequence[str], kind: str | None, verdict: str | None, dropped: Counter[str] | None = None
) -> list[Source]:
    """Read all documents, in the order of the files.

    Args:
        paths: documents with ``claims``, generations with labelled ``sentences``, or the
            ``scored.jsonl`` of ``eval score``.
        kind: use only rows of this kind; ``None`` uses all.
        verdict: assessor whose verdicts label scored texts, if there are several.
        dropped: if set, documents without claims are skipped and counted here, and each file must
            have labels.
    """
    sources: dict[str, Source] = {}
    for path in paths:
        documents = [
            document
            for document in read_labelled(path, verdict)
            if kind is None or (document.kind or "normal") == kind
        ]
        if not documents:
            rows = "row" if kind is None else f"row of source_kind {kind}"
            raise UserError(f"{path}: no {rows}; remove the file or use another one")
        labels = (claim.label for document in documents for claim in document.claims or [])
        if dropped is not None and not any(labels):
            raise UserError(
                f"{path}: no labelled claims; expected `claims` with labels S and NS, or a "
                "scored.jsonl of `python -m eval score`"
            )
        for document in documents:
            if dropped is not None and not document.claims:
                dropped["document without claims"] += 1
                continue
            generator = {"generator": document.generator or Path(path).stem}
            name = f"{Path(path).stem}/{document.id}"
            if name in sources:
                raise UserError(f"documents: duplicate id {name}; rename a file or change the id")
            sources[name] = Source(name, document.model_copy(update=generator))
    return list(sources.values())


def read_labelled(path: str, verdict: str | None = None) -> Iterator[Document]:
    """Yield the documents of a file; their claims have ``label`` and ``labelled_by``.

    Args:
        path: documents, generations, or scored texts.
        verdict: ``assessor`` or ``assessor.name`` whose verdicts label scored texts.
    """
    _, first = next(iter_rows(path), (0, {}))
    if "verdicts" in first and "document" in first:
        rows = read_records(path, ScoredText)
        chosen = _assessor(path, rows, verdict)
        yield from (_from_verdicts(row, chosen) for row in rows)
    elif "sentences" in first and "claims" not in first:
        for number, row in enumerate(read_records(path, Generation), 1):
            yield _from_sentences(row, f"g{number}")
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
    pairs = dict.fromkeys((v.assessor, v.name) for row in rows for v in row.verdicts)
    by_name = {named(*pair): pair for pair in pairs}
    if verdict is None and len(by_name) == 1:
        return next(iter(pairs))
    assessor = by_name.get((verdict or "").removesuffix(".default"))
    if assessor is None:
        problem = "several verdicts" if verdict is None else f"no verdict {verdict!r}"
        raise UserError(
            f"{path}: {problem}; choose one with --verdict: {', '.join(by_name) or 'none'}"
        )
    return assessor


def _from_verdicts(row: ScoredText, chosen: tuple[str, str]) -> Document:
    verdicts = {v.claim: v for v in row.verdicts if (v.assessor, v.name) == chosen}
    claims = []
    for claim in row.claims:
        claim_verdict = verdicts.get(claim.id)
        label = LABELS.get(claim_verdict.label) if claim_verdict else None
        labelled_by = named(*chosen) if label else "none"
        claims.append(claim.model_copy(update={"label": label, "labelled_by": labelled_by}))
    passages = row.passages or row.document.passages
    return row.document.model_copy(update={"claims": claims, "passages": passages})


def _from_sentences(row: Generation, name: str) -> Document:
    claims = row.sentences and [
        {"id": f"c{index}", "text": s.text, "sentence": index, "source": s.text}
        | {"label": "S" if s.true else "NS", "labelled_by": "knowledge base"}
        for index, s in enumerate(row.sentences)
    ]
    fields = row.model_dump(exclude={"sentences", "citations"}, exclude_none=True)
    return Document.model_validate({"id": name, **fields, "claims": claims})


def _labelled_by(claim: Claim) -> str | None:
    return (claim.model_extra or {}).get("labelled_by")
