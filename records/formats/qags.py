"""QAGS (2004.04228): articles and summaries with votes on each summary sentence."""

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
    """Read a summary; the majority vote is the label, ``share`` the share of yes votes."""
    if not {"article", "summary_sentences"} <= set(row):
        return None
    passages = passages_of(required_text(row, "article"))
    claims = []
    for index, sentence in enumerate(row["summary_sentences"]):
        votes = [
            parse_judgement(r["response"], "response", _VOTES)[0] for r in sentence["responses"]
        ]
        votes = [vote == "S" for vote in votes if vote]
        share = sum(votes) / len(votes) if votes else None
        judgement: Judgement = (None, "disputed" if votes else None)
        if share is not None and share != 0.5:
            judgement = SUPPORTED if share > 0.5 else NOT_SUPPORTED
        more = {"sentence": index} | ({"share": share, "people": len(votes)} if votes else {})
        claims.append(claim_of(sentence["sentence"], judgement, passages, f"c{index}", **more))
    text = " ".join(claim["text"] for claim in claims)
    unit = short_hash(row["article"])
    document = {"id": f"d{number}", "topic": f"article {unit}", "text": text, "unit": unit}
    return document | {"claims": claims, "passages": passages}
