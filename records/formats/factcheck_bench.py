"""Factcheck-Bench (2311.09000): a response, its sentences, their claims, evidence and verdicts."""

import re

from records.formats.judged_claims import claim_of, passages_of, required_text

# People quote a page and give its address, before it or behind it.
_ADDRESSES = re.compile(r"(?:\b(?:URL|Link):\s*)?https?://\S+")


def factcheck_bench(row: dict, number: int) -> dict | None:
    """A response with its claims.

    A claim that is no factual one is irrelevant (IR); one that people could not decide has no
    label. Its contexts are what was found (``evidence_label``: the stance), and what people quoted
    for it, without addresses. ``sentences`` keeps each sentence with its form that stands alone.
    """
    if not isinstance(row.get("sentences"), dict) or "response" not in row:
        return None
    claims, passages, sentences = [], [], []
    for index, sentence in enumerate(row["sentences"].values()):
        kept = ("text", "decontext", "sentence_checkworthiness")
        sentences.append({name: sentence[name] for name in kept})
        columns = ("claims", "claim_checkworthiness", "claims_factuality_label", "auto_evidence")
        columns += ("stance_claim_autoEvid", "human_evidence")
        every = zip(*(sentence[name] for name in columns), strict=True)
        for text, worth, verdict, texts, stances, quoted in every:
            prefix = f"p{len(claims)}_"
            evidence = passages_of(texts, prefix)
            evidence = evidence if len(evidence) == len(texts) else []
            for passage, stance in zip(evidence, stances, strict=False):
                passage["evidence_label"] = stance
            if quoted and quoted.strip().upper() != "NA":
                evidence += passages_of(_ADDRESSES.sub("", quoted), f"{prefix}h")
            passages += evidence
            label = {"true": "S", "false": "NS"}.get(str(verdict).lower())
            finer = {"S": "supported", "NS": "refuted"}.get(label, "unknown")
            meant = ("IR", "irrelevant") if worth != "factual" else (label, finer)
            more = {"sentence": index, "source": sentence["text"], "checkworthiness": worth}
            claims.append(claim_of(text, meant, evidence, f"c{len(claims)}", **more))
    return {
        "id": f"d{number}",
        "topic": required_text(row, "prompt"),
        "text": row["response"],
        "claims": claims,
        "passages": passages,
        "sentences": sentences,
    }
