"""QAGS (2004.04228): an article and a summary, each sentence of which some people judged."""

from records.formats.judged_claims import (
    NOT_SUPPORTED,
    SUPPORTED,
    Judgement,
    claim_of,
    parse_judgement,
    passages_of,
    required_text,
    short_hash,
)

_VOTES = {"yes": SUPPORTED, "no": NOT_SUPPORTED}


def qags(row: dict, number: int) -> dict | None:
    """The majority decides; ``share`` is that of the ``people`` who said yes."""
    if not {"article", "summary_sentences"} <= set(row):
        return None
    passages = passages_of(required_text(row, "article"))
    claims = []
    for place, sentence in enumerate(row["summary_sentences"]):
        votes = [
            parse_judgement(r["response"], "response", _VOTES)[0] for r in sentence["responses"]
        ]
        votes = [vote == "S" for vote in votes if vote]
        share = sum(votes) / len(votes) if votes else None
        meant: Judgement = (None, "disputed" if votes else None)
        if share is not None and share != 0.5:
            meant = SUPPORTED if share > 0.5 else NOT_SUPPORTED
        more = {"sentence": place} | ({"share": share, "people": len(votes)} if votes else {})
        claims.append(claim_of(sentence["sentence"], meant, passages, f"c{place}", **more))
    text = " ".join(claim["text"] for claim in claims)
    unit = short_hash(row["article"])
    found = {"id": f"d{number}", "topic": f"article {unit}", "text": text, "unit": unit}
    return found | {"claims": claims, "passages": passages}
