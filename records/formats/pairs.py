"""Judged claims with evidence, as pairs of premise and hypothesis.

Built from the documents of the same rows, except AmbigBio's citations and LSS.
"""

from collections.abc import Iterator
from typing import NamedTuple

from records.formats.ambigbio import atom_pairs, citation_pairs
from records.formats.documents import to_documents
from records.formats.judged_claims import parse_judgement, short_hash
from records.formats.nli import form_of, other_direction
from records.formats.wice import to_lss

ENTAILMENT, NEUTRAL, CONTRADICTION = "entailment", "neutral", "contradiction"
# Finer words that determine the relation.
_RELATION_OF_WORD = {"refuted": CONTRADICTION, "not_enough": NEUTRAL, "irrelevant": NEUTRAL}
_RELATION_OF_LABEL = {"S": ENTAILMENT, "NS": "not_entailment"}
# Dataset name and required fields; the first match applies.
_DATASETS = (
    ("citations", "citations"),
    ("lss", "claim", "annotations"),
    ("lss", "claim_tokens", "non_supported_spans"),
    ("climate_fever", "claim", "evidences"),
    ("averitec", "claim", "questions"),
    ("attribution_bench", "claim", "references", "attribution_label"),
    ("factcheck_bench", "claim", "evidence", "stance"),
    ("factcheck_bench", "response", "sentences"),
)
# Datasets whose texts, or whose premises, keep their line breaks.
_KEEP_LINES = {"atoms", "averitec", "citations", "climate_fever", "wice"}
_KEEP_PREMISE_LINES = {*_KEEP_LINES, "attribution_bench", "lss", "ours", "unli"}
RELATIONS = (ENTAILMENT, NEUTRAL, CONTRADICTION, "not_entailment")


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


def set_of(row: dict) -> str | None:
    """Return the name of a pair dataset by the row's field names, else ``None``."""
    fields = row.keys()
    for name, *required in _DATASETS:
        if fields >= set(required):
            return name
    if {"claim", "evidence"} <= fields:
        return "vitaminc" if isinstance(row["evidence"], str) else "wice"
    form = form_of({"label": None} | row)
    if form is None:
        return None
    return "ours" if form.name == "hub" and row.get("label") in RELATIONS else form.name


def pairs_of(row: dict, name: str) -> list[Pair]:
    """Return the pairs of a row of dataset ``name``; the row's label may be missing.

    ``atoms`` selects AmbigBio's atoms instead of its ``citations``.
    """
    if name in ("citations", "atoms"):
        rows = citation_pairs(row) if name == "citations" else atom_pairs(row)
    elif name == "lss":
        rows = _lss_pairs(to_lss(row))
    elif set_of(row) is None:
        raise ValueError(f"record: expected the fields of {name}, got {', '.join(row)}")
    else:
        documents = to_documents({"label": None} | row, 0)
        back = other_direction(row) if name == "sick" else None
        rows = [pair for document in documents for pair in _document_pairs(document)]
        rows += [back] if back else []
    documents = tuple(row.get("documents") or ())
    return [
        Pair(
            (str.strip if name in _KEEP_PREMISE_LINES else plain)(pair["premise"]),
            (str.strip if name in _KEEP_LINES else plain)(pair["hypothesis"]),
            pair["label"],
            pair.get("group") or plain(pair["premise"]),
            pair.get("documents", documents),
        )
        for pair in rows
    ]


def plain(text: str) -> str:
    """Collapse white space."""
    return " ".join(text.split())


def _document_pairs(document: dict) -> Iterator[dict]:
    passages = {passage["id"]: passage for passage in document["passages"]}
    by_passage = any("evidence_label" in passage for passage in passages.values())
    for claim in document["claims"]:
        evidence = [passages[name] for name in claim["contexts"]]
        if not by_passage:
            premise, unit = "\n".join(p["text"] for p in evidence), document.get("unit")
            label = _RELATION_OF_WORD.get(claim["finer"], _RELATION_OF_LABEL.get(claim["label"]))
            group = (
                (claim["text"] if unit is None else unit) if unit != short_hash(premise) else None
            )
            yield {"premise": premise, "hypothesis": claim["text"], "label": label, "group": group}
            continue
        for passage in evidence:
            if "evidence_label" in passage:
                label, finer = parse_judgement(passage["evidence_label"], "evidence_label")
                title = passage.get("title")
                yield {
                    "premise": f"{title}. {passage['text']}" if title else passage["text"],
                    "hypothesis": claim["text"],
                    "label": _RELATION_OF_WORD.get(finer, _RELATION_OF_LABEL.get(label)),
                    "group": document["topic"].strip(),  # the claim or the prompt
                    "documents": (title,) if title else (),
                }


def _lss_pairs(row: dict) -> list[dict]:
    """Return one or two pairs from human LSS or WiCE's tokens.

    The supported part is entailed; the claim is entailed if most annotators kept all of it.
    """
    claim = " ".join(row["claim"].split())
    kept = [" ".join(str(a["lss"]).split()) for a in row["annotations"]]
    full = sum(lss == claim for lss in kept)
    label = ENTAILMENT if 2 * full > len(kept) else "not_entailment"
    pairs = [(claim, None if 2 * full == len(kept) else label)]
    if partial := next((lss for lss in kept if lss not in ("", claim)), ""):
        pairs.append((partial, ENTAILMENT))
    shared = {"premise": row["reference"], "group": row.get("group")}
    return [shared | {"hypothesis": text, "label": label} for text, label in pairs]
