"""ExpertQA (2309.07852): answers of several systems, whose claims experts judged."""

import re

from records.formats.judged_claims import claim_of, parse_judgement, passages_of, required_text

# A piece of evidence: a number, an address, and the passage where there is one.
_ADDRESS = re.compile(r"^\s*(?:\[\d+\]\s*)?(?:https?://\S+)?\s*")


def expertqa(row: dict, number: int) -> list[dict] | None:
    """A document of each answer.

    Supported is a claim whose ``support`` is complete. Evidence that is only an address is none.
    """
    if not isinstance(row.get("answers"), dict) or "question" not in row:
        return None
    documents = []
    for model, answer in row["answers"].items():
        if answer is None:  # a table has a column for every system, and most answered a part
            continue
        claims, passages = [], []
        for claim in answer["claims"]:
            texts = [_ADDRESS.sub("", text) for text in claim.get("evidence") or []]
            evidence = passages_of(texts, f"p{len(claims)}_")
            meant = parse_judgement(claim.get("support"), "support")
            text = required_text(claim, "claim_string")
            claims.append(claim_of(text, meant, evidence, f"c{len(claims)}"))
            passages += evidence
        text = answer.get("answer_string") or " ".join(c["text"] for c in claims)
        shared = {"id": f"d{number}.{model}", "topic": row["question"], "generator": model}
        documents.append(shared | {"text": text, "claims": claims, "passages": passages})
    return documents or None
