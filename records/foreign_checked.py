"""Facts that others have checked: HALoGEN's atoms, Climate-FEVER's and AVeriTeC's claims.

One function a project turns its row into a document, as those of ``foreign_documents.py`` do.
"""

from __future__ import annotations

import re

from records.foreign_labelled import meant_by
from records.foreign_text import document_of

# HALoGEN's tables: ``| An atom. <tab> True |``, one a line.
_ATOM = re.compile(r"^\|?\s*(.+?)\s*(?:\t\s*(True|False))?\s*\|?$")
_VERDICTS = {"True": "S", "False": "NS"}
# The topics of one of its files stand in quotation marks, all of them.
_QUOTED = re.compile(r"""\s*(['"])\s*(.+?)\s*\1\s*""")


def halogen(row: dict, number: int) -> dict | None:
    """HALoGEN's biographies (AbhilashaRavichander/HALoGEN): atoms with a model's verdicts.

    ``atoms`` is the release's table of lines, or a list of ``text`` and ``label``. An atom without
    a verdict has no label. A row whose tables are empty is a text without atoms. Where a
    copy has nothing but the topic's name for a text, its atoms, joined, stand for it. A topic in
    quotation marks is the one without, as the other files have it.
    """
    atoms = row.get("atoms")
    listed = isinstance(atoms, list) and "contexts" not in row
    if not (isinstance(atoms, str) or listed or "hallucinated atoms" in row):
        return None
    if listed:
        told = [(atom["text"], atom.get("label")) for atom in atoms]
    else:
        lines = [line.strip() for line in (atoms or "").splitlines() if line.strip("| \t")]
        told = [_ATOM.match(line).groups() for line in lines]
        told = [(text, _VERDICTS.get(verdict)) for text, verdict in told]
    claims = [
        {"id": f"c{place}", "text": text, "label": label}
        for place, (text, label) in enumerate(told)
    ]
    text = row.get("output", row.get("response"))
    if claims and isinstance(text, str) and text.strip() == str(row.get("topic", "")).strip():
        text = " ".join(claim["text"] for claim in claims)
    found = document_of(row, number, text, claims=claims)
    quoted = _QUOTED.fullmatch(str(found["topic"]))
    return found | ({"topic": quoted[2]} if quoted else {})


# A claim that its evidence does not decide is not supported by it; one on which the evidence
# conflicts has no label. In the order of the Hub's numbers.
_CLIMATE = {"SUPPORTS": "S", "REFUTES": "NS", "NOT_ENOUGH_INFO": "NS", "DISPUTED": None}


def climate_fever(row: dict, number: int) -> dict | None:
    """Climate-FEVER (tdiggelm/climate-fever-dataset): a claim and five sentences of Wikipedia.

    The claim is the text and its own only claim. A passage keeps what people said of it
    (``evidence_label``, ``votes``, ``entropy``), the document its ``claim_label``. The copy on the
    Hub has numbers for the labels' words.

    Raises:
        ValueError: a label that the set does not have.
    """
    if not isinstance(row.get("evidences"), list) or "claim" not in row:
        return None
    passages = [
        {
            "id": found["evidence_id"],
            "title": found["article"],
            "text": found["evidence"],
            "evidence_label": _word_of(found["evidence_label"]),
            **{name: found[name] for name in ("votes", "entropy")},
        }
        for found in row["evidences"]
    ]
    name, label = str(row["claim_id"]), _word_of(row["claim_label"])
    return _claim(row | {"id": name}, number, _known(label, _CLIMATE), label, passages)


def _word_of(label: object) -> object:
    return dict(zip("0123", _CLIMATE, strict=True)).get(str(label), label)


_AVERITEC = {
    "Supported": "S",
    "Refuted": "NS",
    "Not Enough Evidence": "NS",
    "Conflicting Evidence/Cherrypicking": None,
}


def averitec(row: dict, number: int) -> dict | None:
    """AVeriTeC (2305.13117): a claim with people's questions and the answers they found.

    Each answer is a passage, its question before it; ``boolean_explanation`` stands behind a Yes or
    No. The claim is the text and its own only claim; ``claim_label`` is the set's verdict.

    Raises:
        ValueError: a label that the set does not have.
    """
    if not isinstance(row.get("questions"), list) or "claim" not in row:
        return None
    passages = []
    for asked in row["questions"]:
        for answer in asked["answers"]:
            told = (asked["question"], answer["answer"], answer.get("boolean_explanation"))
            passages.append(
                {
                    "id": f"p{len(passages)}",
                    "text": " ".join(part.strip() for part in told if part),
                    "url": answer.get("source_url"),
                    "answer_type": answer.get("answer_type"),
                }
            )
    label = row["label"]
    return _claim(row, number, _known(label, _AVERITEC), label, passages)


def _known(label: str, labels: dict[str, str | None]) -> str | None:
    if label not in labels:
        raise ValueError(f"label: expected one of {', '.join(labels)}, got {label!r}")
    return labels[label]


def _claim(row: dict, number: int, label: str | None, said: str, passages: list[dict]) -> dict:
    text = row["claim"]
    contexts = [passage["id"] for passage in passages]
    claim = {"id": "c0", "text": text, "label": label, "contexts": contexts}
    claim["finer"] = meant_by(said, "label")[1]
    more = {"claims": [claim], "passages": passages, "claim_label": said}
    return document_of({"topic": text} | row, number, text, **more)
