"""Claims with evidence that was judged, as pairs of premise and hypothesis.

They come from the documents that the same rows are read as, but for AmbigBio's citations and LSS.
"""

from collections.abc import Iterator
from typing import NamedTuple

from records.formats.ambigbio import atom_pairs, citation_pairs
from records.formats.documents import to_documents
from records.formats.judged_claims import parse_judgement, short_hash
from records.formats.nli import form_of, other_direction
from records.formats.wice import to_lss

ENTAILMENT, NEUTRAL, CONTRADICTION = "entailment", "neutral", "contradiction"
# Finer words that say more than supported or not.
_RELATION_OF = {"refuted": CONTRADICTION, "not_enough": NEUTRAL, "irrelevant": NEUTRAL}
_OF_LABEL = {"S": ENTAILMENT, "NS": "not_entailment"}
# A set's name and the fields that tell it; the first that fits counts.
_SETS = (
    ("citations", "citations"),
    ("lss", "claim", "annotations"),
    ("lss", "claim_tokens", "non_supported_spans"),
    ("climate_fever", "claim", "evidences"),
    ("averitec", "claim", "questions"),
    ("attribution_bench", "claim", "references", "attribution_label"),
    ("factcheck_bench", "claim", "evidence", "stance"),
    ("factcheck_bench", "response", "sentences"),
)
# Sets whose texts are kept as they are written, and those of whose texts the premises are.
_AS_WRITTEN = {"atoms", "averitec", "citations", "climate_fever", "wice"}
_WITH_LINES = {*_AS_WRITTEN, "attribution_bench", "lss", "ours", "unli"}
RELATIONS = (ENTAILMENT, NEUTRAL, CONTRADICTION, "not_entailment")


class Pair(NamedTuple):
    """A claim and evidence that was judged.

    Attributes:
        premise, hypothesis: without blanks around them; may be empty.
        label: one of our relations, or a probability; ``None`` where the row has no gold label.
        group: what must not stand on both sides of a split: the page, the name, else the premise.
        documents: names of the documents that it belongs to besides.
    """

    premise: str
    hypothesis: str
    label: str | float | None
    group: str
    documents: tuple[str, ...] = ()


def set_of(row: dict) -> str | None:
    """The name of the set of pairs that a row is of, by its field names; ``None`` of any other."""
    fields = row.keys()
    for name, *wanted in _SETS:
        if fields >= set(wanted):
            return name
    if {"claim", "evidence"} <= fields:
        return "vitaminc" if isinstance(row["evidence"], str) else "wice"
    form = form_of({"label": None} | row)
    if form is None:
        return None
    return "ours" if form.name == "hub" and row.get("label") in RELATIONS else form.name


def pairs_of(row: dict, name: str) -> list[Pair]:
    """The pairs of a row.

    Args:
        row: of a set of pairs; its label may be missing.
        name: of the set; or ``atoms``, which are AmbigBio's besides its ``citations``.

    Raises:
        ValueError: it is not as its set has it; the message starts with the field.
    """
    if name in ("citations", "atoms"):
        rows = citation_pairs(row) if name == "citations" else atom_pairs(row)
    elif name == "lss":
        rows = _lss_pairs(to_lss(row))
    elif set_of(row) is None:
        raise ValueError(f"record: expected the fields of {name}, got {', '.join(row)}")
    else:
        document = to_documents({"label": None} | row, 0)
        back = other_direction(row) if name == "sick" else None
        rows = [*_document_pairs(document), *([back] if back else [])]
    documents = tuple(row.get("documents") or ())
    return [
        Pair(
            (str.strip if name in _WITH_LINES else plain)(pair["premise"]),
            (str.strip if name in _AS_WRITTEN else plain)(pair["hypothesis"]),
            pair["label"],
            pair.get("group") or plain(pair["premise"]),
            pair.get("documents", documents),
        )
        for pair in rows
    ]


def plain(text: str) -> str:
    """A text without superfluous blanks."""
    return " ".join(text.split())


def _document_pairs(document: dict) -> Iterator[dict]:
    passages = {passage["id"]: passage for passage in document["passages"]}
    by_passage = any("evidence_label" in passage for passage in passages.values())
    for claim in document["claims"]:
        evidence = [passages[name] for name in claim["contexts"]]
        if not by_passage:
            premise, unit = "\n".join(p["text"] for p in evidence), document.get("unit")
            label = _RELATION_OF.get(claim["finer"], _OF_LABEL.get(claim["label"]))
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
                    "label": _RELATION_OF.get(finer, _OF_LABEL.get(label)),
                    "group": document["topic"].strip(),  # the claim, or the prompt of its response
                    "documents": (title,) if title else (),
                }


def _lss_pairs(row: dict) -> list[dict]:
    """Human LSS (2308.12157) and WiCE's tokens, each a pair or two of nearly equal words.

    What the reference supports of a claim is entailed; the claim is, where most kept all of it.
    """
    claim = " ".join(row["claim"].split())
    kept = [" ".join(str(a["lss"]).split()) for a in row["annotations"]]
    whole = sum(lss == claim for lss in kept)
    label = ENTAILMENT if 2 * whole > len(kept) else "not_entailment"
    pairs = [(claim, None if 2 * whole == len(kept) else label)]
    if part := next((lss for lss in kept if lss not in ("", claim)), ""):
        pairs.append((part, ENTAILMENT))
    shared = {"premise": row["reference"], "group": row.get("group")}
    return [shared | {"hypothesis": text, "label": label} for text, label in pairs]
