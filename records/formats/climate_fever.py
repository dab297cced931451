"""Climate-FEVER (tdiggelm/climate-fever-dataset): a claim and five sentences of Wikipedia."""

from records.formats.judged_claims import claim_of, parse_judgement
from records.formats.row_fields import document_of

# In the order of the numbers that the copy on the Hub has for them.
_LABELS = ("SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO", "DISPUTED")


def climate_fever(row: dict, number: int) -> dict | None:
    """The claim is the text and its own only claim.

    A passage keeps what people said of it (``evidence_label``, ``votes``, ``entropy``), the
    document its ``claim_label``.
    """
    if not isinstance(row.get("evidences"), list) or "claim" not in row:
        return None
    passages = [
        {
            "id": evidence["evidence_id"],
            "title": evidence["article"],
            "text": evidence["evidence"],
            "evidence_label": _word_of(evidence["evidence_label"]),
            **{name: evidence[name] for name in ("votes", "entropy")},
        }
        for evidence in row["evidences"]
    ]
    return checked_claim(
        row | {"id": str(row["claim_id"])}, number, _word_of(row["claim_label"]), passages
    )


def _word_of(label: object) -> object:
    return dict(zip("0123", _LABELS, strict=True)).get(str(label), label)


def checked_claim(row: dict, number: int, label: object, passages: list[dict]) -> dict:
    """A claim as a text that is its own only claim."""
    claim = claim_of(row["claim"], parse_judgement(label, "label"), passages)
    more = {"claims": [claim], "passages": passages, "claim_label": label}
    return document_of({"topic": row["claim"]} | row, number, row["claim"], **more)
