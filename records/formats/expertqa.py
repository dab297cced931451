"""ExpertQA (2309.07852): answers of several systems with expert judgements of their claims."""

import re

from records.formats.judged_claims import claim_of, parse_judgement, passages_of, required_text

# Prefix of evidence: an optional number and URL.
_URL_PREFIX = re.compile(r"^\s*(?:\[\d+\]\s*)?(?:https?://\S+)?\s*")


def expertqa(row: dict, number: int) -> list[dict] | None:
    """Return one document per answer.

    A claim is supported if its ``support`` is complete. Evidence that is only a URL is ignored.
    """
    if not isinstance(row.get("answers"), dict) or "question" not in row:
        return None
    documents = []
    for model, answer in row["answers"].items():
        if answer is None:  # in tables, systems that did not answer are null
            continue
        claims, passages = [], []
        for claim in answer["claims"]:
            texts = [_URL_PREFIX.sub("", text) for text in claim.get("evidence") or []]
            evidence = passages_of(texts, f"p{len(claims)}_")
            judgement = parse_judgement(claim.get("support"), "support")
            text = required_text(claim, "claim_string")
            claims.append(claim_of(text, judgement, evidence, f"c{len(claims)}"))
            passages += evidence
        text = answer.get("answer_string") or " ".join(c["text"] for c in claims)
        shared = {"id": f"d{number}.{model}", "topic": row["question"], "generator": model}
        documents.append(shared | {"text": text, "claims": claims, "passages": passages})
    return documents or None
