"""Judged claims with evidence, as pairs of premise and hypothesis."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from records.formats.conversions import short_hash
from records.formats.declared import Format
from records.formats.label_words import parse_judgement

RELATIONS = ("entailment", "neutral", "contradiction", "not_entailment")
# Finer words that determine the relation.
_RELATION_OF_WORD = {"refuted": "contradiction", "not_enough": "neutral", "irrelevant": "neutral"}
_RELATION_OF_LABEL = {"S": "entailment", "NS": "not_entailment"}


class Pair(NamedTuple):
    """A claim and its judged evidence.

    Attributes:
        premise, hypothesis: stripped; may be empty.
        label: one of our relations, or a probability; ``None`` if the row has no gold label.
        group: key that must not be on both sides of a split: the page or name, else the premise.
        documents: names of further documents that it belongs to.
    """

    premise: str
    hypothesis: str
    label: str | float | None
    group: str
    documents: tuple[str, ...] = ()


def relation_of(word: object, field: str = "label") -> str | None:
    """Return the relation for the word of a dataset, or ``None`` without a gold label."""
    if word in RELATIONS:
        return word
    label, finer = parse_judgement(word, field)
    return _RELATION_OF_WORD.get(finer, _RELATION_OF_LABEL.get(label))


def pairs_of(row: Mapping, format: Format) -> list[Pair]:
    """Return the pairs of a row; the row's label may be missing."""
    rows, group = format.records("pairs", row), format.value("group", row)
    if rows is None:
        rows = [pair for doc in format.documents(row, 0) for pair in _document_pairs(doc)]
        group = None  # the name of the set
    documents = tuple(row.get("documents") or ())
    return [
        Pair(
            pair["premise"].strip(),
            plain(pair["hypothesis"]),
            relation_of(pair["label"]),
            str(pair.get("group") or group or plain(pair["premise"])),
            pair.get("documents", documents),
        )
        for pair in rows
    ]


def probable_pair(row: Mapping, format: Format) -> Pair:
    """Return a row's pair with the probability of its hypothesis."""
    pair = format.records("unli", row)
    value, premise = pair.get("label"), pair["premise"].strip()
    label = None if value in (None, "") else float(value)
    if label is not None and not 0 <= label <= 1:
        raise ValueError(f"label: expected a probability in [0, 1], got {value!r}")
    documents, group = tuple(row.get("documents") or ()), str(row.get("group") or premise)
    return Pair(premise, plain(pair["hypothesis"]), label, group, documents)


def plain(text: str) -> str:
    """Collapse white space."""
    return " ".join(text.split())


def _document_pairs(document: dict) -> Iterator[dict]:
    passages = {passage["id"]: passage for passage in document.get("passages", ())}
    by_passage = any("evidence_label" in passage for passage in passages.values())
    for claim in document.get("claims") or ():
        evidence = [passages[name] for name in claim.get("contexts") or ()]
        if not by_passage:
            premise, unit = "\n".join(p["text"] for p in evidence), document.get("unit")
            unit = claim["text"] if unit is None else unit
            group = None if unit == short_hash(premise) else unit
            pair = {"premise": premise, "hypothesis": claim["text"], "group": group}
            yield pair | {"label": claim["finer"] or claim["label"]}
        for passage in evidence if by_passage else ():
            if "evidence_label" in passage:
                title = passage.get("title")
                yield {
                    "premise": f"{title}. {passage['text']}" if title else passage["text"],
                    "hypothesis": claim["text"],
                    "label": passage["evidence_label"],
                    "group": document["topic"].strip(),  # the claim or the prompt
                    "documents": (title,) if title else (),
                }
