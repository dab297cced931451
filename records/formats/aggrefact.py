"""LLM-AggreFact (2404.10774): ``doc``, ``claim``, ``label`` 1 or 0 or empty, ``dataset``."""

from records.formats.judged_claims import (
    JUDGEMENT_OF_WORD,
    NOT_SUPPORTED,
    SUPPORTED,
    document_of_pair,
    parse_judgement,
    required_text,
    short_hash,
)

_WORDS = JUDGEMENT_OF_WORD | {
    "1": SUPPORTED,
    "0": NOT_SUPPORTED,
    "True": SUPPORTED,
    "False": NOT_SUPPORTED,
}


def aggrefact(row: dict, number: int) -> dict | None:
    """Return a document with its claim; claims of one ``doc`` share a unit."""
    if not {"doc", "claim"} <= set(row) or "text" in row:
        return None
    judgement, doc = parse_judgement(row.get("label"), "label", _WORDS), required_text(row, "doc")
    claim = required_text(row, "claim")
    return document_of_pair(row, number, claim, doc, judgement, short_hash(doc), row.get("dataset"))
