"""Climate-FEVER (tdiggelm/climate-fever-dataset): claims with five Wikipedia sentences."""

from records.formats.judged_claims import claim_of, parse_judgement
from records.formats.row_fields import document_of

# In the order of the label numbers on the Hub.
_LABELS = ("SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO", "DISPUTED")


def climate_fever(row: dict, number: int) -> dict | None:
    """Read a claim as a document with itself as the only claim.

    Passages keep ``evidence_label``, ``votes`` and ``entropy``, the document ``claim_label``.
    """
    if not isinstance(row.get("evidences"), list) or "claim" not in row:
        return None
    passages = [
        {
            "id": evidence["evidence_id"],
            "title": evidence["article"],
            "text": evidence["evidence"],
            "evidence_label": _label_word(evidence["evidence_label"]),
            **{name: evidence[name] for name in ("votes", "entropy")},
        }
        for evidence in row["evidences"]
    ]
    return checked_claim(
        row | {"id": str(row["claim_id"])}, number, _label_word(row["claim_label"]), passages
    )


def _label_word(label: object) -> object:
    return dict(zip("0123", _LABELS, strict=True)).get(str(label), label)


def checked_claim(row: dict, number: int, label: object, passages: list[dict]) -> dict:
    """Return a document whose text is its only claim."""
    claim = claim_of(row["claim"], parse_judgement(label, "label"), passages)
    more = {"claims": [claim], "passages": passages, "claim_label": label}
    return document_of({"topic": row["claim"]} | row, number, row["claim"], **more)
