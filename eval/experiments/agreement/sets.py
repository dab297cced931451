"""Labelled sets of claims as documents for verifiers.

Fields are parsed by ``records/formats``. The level is what a label refers to:

- ``passages``: a claim and one passage (Climate-FEVER's sentences, Factcheck-Bench's stances);
- ``claims``: a claim and all its evidence;
- ``citations``: a sentence and its cited passages (AmbigBio's verdicts by an NLI model);
- ``relevance``: whether a passage is about the claim (Factcheck-Bench's stances), for retrieval;
- ``checkworthiness``: whether a claim is a checkable fact (Factcheck-Bench), for selection.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from records import (
    BadInput,
    Claim,
    Document,
    Passage,
    RelationPair,
    UserError,
    group_of,
    read_records,
)
from records.formats.label_words import parse_judgement

Level = Literal["passages", "claims", "citations", "relevance", "checkworthiness"]
# Default levels; the others evaluate retrieval and selection.
LEVELS: tuple[Level, ...] = ("passages", "claims", "citations")
# Default fine-grained labels.
_WORDS = {"S": "supported", "NS": "not_supported"}
_EXPECTED_FORMAT = (
    "expected claims with a label and evidence, e.g. in the columns of LLM-AggreFact (doc, "
    "claim, label 1 or 0) or of WiCE (claim, evidence, label), or documents with labelled claims"
)


class LabelledSet(NamedTuple):
    """A set, or the part of it whose labels are of one level.

    Attributes:
        name: name of the set; the level is appended except for the set's first level.
        documents: with claims that have a label or a fine-grained label (``finer``).
    """

    name: str
    documents: list[Document]


def read_sets(
    name: str,
    files: Sequence[str],
    levels: Sequence[Level],
    left_out: Counter,
    options: Mapping[str, object] | None = None,
) -> list[LabelledSet]:
    """Read a set from its files, one entry per level.

    Args:
        name: of the set.
        files: in any of the formats; RAGTruth has one file of responses and one of sources.
        levels: levels to return.
        left_out: counter of skipped claims by reason.
        options: ``labels`` and ``format`` of ``read_records``.
    """
    if not files:
        raise UserError(f"sets: {name}: no file; add a file, or remove the set")
    read = [document for file in files for document in _read(file, options or {})]
    documents = _joined(read)
    by_passage = list(_by_passage(documents))
    parts: dict[Level, list[Document]] = {
        "passages": by_passage,
        "claims": _by_claim(name, documents, left_out),
        "citations": list(_by_citation(files, documents)),
        "relevance": list(_by_relevance(by_passage)),
        "checkworthiness": list(_by_checkworthiness(documents)),
    }
    valid = [level for level, docs in parts.items() if any(_labelled(d) for d in docs)]
    if not valid:
        raise UserError(f"{', '.join(files)}: label: no labelled claim; {_EXPECTED_FORMAT}")
    chosen = [level for level in valid if level in levels]
    if not chosen:
        raise UserError(f"levels: {name} has labels of {', '.join(valid)} only; add one of them")
    return [
        LabelledSet(name if level == valid[0] else f"{name}, {level}", _numbered(parts[level]))
        for level in chosen
    ]


def _read(file: str, options: Mapping[str, object]) -> list[Document]:
    try:
        return read_records(file, Document, **options)
    except BadInput as error:
        raise UserError(f"{error.faults[0]}; {_EXPECTED_FORMAT}") from None


def unit_of(document: Document) -> str:
    """Return the sampling unit: an article, a question or a topic."""
    return str(getattr(document, "unit", None) or document.topic)


def finer_of(claim: Claim) -> str | None:
    """Return the fine-grained label of a claim, else its label."""
    word = getattr(claim, "finer", None)
    return word if word and isinstance(word, str) else _WORDS.get(claim.label)


def share_of(claim: Claim) -> float | None:
    """Return the share of people who labelled a claim supported."""
    share = getattr(claim, "share", None)
    return float(share) if isinstance(share, int | float) and 0 <= share <= 1 else None


def people_of(claim: Claim) -> int | None:
    """Return the number of people who labelled a claim, if known."""
    people = getattr(claim, "people", None)
    return people if isinstance(people, int) and people > 0 else None


def _labelled(document: Document) -> bool:
    return any(claim.label in _WORDS for claim in document.claims or [])


def _joined(documents: Sequence[Document]) -> list[Document]:
    sources = {d.source_id: d for d in documents if _source(d) and d.claims is None}
    joined = []
    for document in documents:
        # A document with evidence needs no source file, even if it has a ``source_id``.
        if not _source(document) or (document.claims is not None and document.passages):
            joined.append(document)
        elif document.claims is not None:
            source = sources.get(document.source_id)
            if source is None:
                raise UserError(
                    f"source_id: {document.source_id!r} is in no file; set both files, e.g. "
                    "[response.jsonl, source_info.jsonl]"
                )
            more = {"passages": source.passages, "group": source.group}
            joined.append(document.model_copy(update=more))
    return joined


def _source(document: Document) -> bool:
    return hasattr(document, "source_id")


def _by_claim(name: str, documents: Sequence[Document], left_out: Counter) -> list[Document]:
    labelled = []
    for document in documents:
        kept = []
        for claim in document.claims or []:
            if claim.label == "IR":
                left_out[f"{name}: claims that are irrelevant"] += 1
            elif finer_of(claim) in (None, "unknown") or claim.failed is not None:
                left_out[f"{name}: claims without a label"] += 1
            else:
                kept.append(claim)
        if kept:
            labelled.append(document.model_copy(update={"claims": kept}))
    return labelled


def _by_passage(documents: Sequence[Document]) -> Iterator[Document]:
    for document in documents:
        passages_by_id = {passage.id: passage for passage in document.passages or []}
        for claim in document.claims or []:
            for context in claim.contexts or []:
                passage = passages_by_id.get(context)
                label, finer = parse_judgement(
                    getattr(passage, "evidence_label", None), "evidence_label"
                )
                if finer in (None, "unknown"):
                    continue
                update = {"id": "c0", "label": label, "contexts": [passage.id], "finer": finer}
                update |= _votes(getattr(passage, "votes", None))
                more = {"text": claim.text, "claims": [claim.model_copy(update=update)]}
                more |= {"passages": [passage], "unit": unit_of(document)}
                yield document.model_copy(update=more)


def _by_relevance(by_passage: Sequence[Document]) -> Iterator[Document]:
    if not any(finer_of(claim) == "irrelevant" for d in by_passage for claim in d.claims):
        return
    for document in by_passage:
        (claim,) = document.claims
        label = "NS" if finer_of(claim) == "irrelevant" else "S"
        update = {
            "claims": [claim.model_copy(update={"label": label, "share": None, "people": None})]
        }
        yield document.model_copy(update=update)


def _by_checkworthiness(documents: Sequence[Document]) -> Iterator[Document]:
    for document in documents:
        kept = []
        for claim in document.claims or []:
            worth = getattr(claim, "checkworthiness", None)
            if worth is not None and claim.failed is None:
                label = "S" if worth == "factual" else "NS"
                kept.append(claim.model_copy(update={"label": label, "finer": worth}))
        if kept:
            yield document.model_copy(update={"claims": kept})


def _votes(votes: Sequence[str | None] | None) -> dict:
    labels = [parse_judgement(vote, "votes")[0] for vote in votes or [] if vote]
    share = labels.count("S") / len(labels) if labels else None
    return {"share": share, "people": len(labels) or None}


def _by_citation(files: Sequence[str], documents: Sequence[Document]) -> Iterator[Document]:
    if not any(getattr(document, "citations", None) for document in documents):
        return
    for pair in (pair for file in files for pair in read_records(file, RelationPair)):
        label = "S" if pair.label == "entailment" else "NS"
        topic = group_of(pair)
        yield Document(
            id="citation",
            topic=topic,
            text=pair.hypothesis,
            claims=[Claim(id="c0", text=pair.hypothesis, label=label, contexts=["p0"])],
            passages=[Passage(id="p0", text=pair.premise)],
        )


def _numbered(documents: Sequence[Document]) -> list[Document]:
    return [
        document.model_copy(update={"id": f"{place} {document.id}".strip()})
        for place, document in enumerate(documents)
    ]
