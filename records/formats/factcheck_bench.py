"""Factcheck-Bench (2311.09000): responses with sentences, claims, evidence and verdicts."""

import re

from records.formats.judged_claims import claim_of, passages_of, required_text

# Annotators quote pages with their URL before or after the quote.
_URLS = re.compile(r"(?:\b(?:URL|Link):\s*)?https?://\S+")


def factcheck_bench(row: dict, number: int) -> dict | None:
    """Read a response with its claims.

    Claims that are not factual are irrelevant (IR); undecided claims have no label. Contexts are
    the retrieved evidence (``evidence_label``: the stance) and the annotators' quotes without URLs.
    ``sentences`` keeps each sentence with its decontextualised form.
    """
    if not isinstance(row.get("sentences"), dict) or "response" not in row:
        return None
    claims, passages, sentences = [], [], []
    for index, sentence in enumerate(row["sentences"].values()):
        kept = ("text", "decontext", "sentence_checkworthiness")
        sentences.append({name: sentence[name] for name in kept})
        columns = ("claims", "claim_checkworthiness", "claims_factuality_label", "auto_evidence")
        columns += ("stance_claim_autoEvid", "human_evidence")
        claim_rows = zip(*(sentence[name] for name in columns), strict=True)
        for text, worth, verdict, texts, stances, quoted in claim_rows:
            prefix = f"p{len(claims)}_"
            evidence = passages_of(texts, prefix)
            evidence = evidence if len(evidence) == len(texts) else []
            for passage, stance in zip(evidence, stances, strict=False):
                passage["evidence_label"] = stance
            if quoted and quoted.strip().upper() != "NA":
                evidence += passages_of(_URLS.sub("", quoted), f"{prefix}h")
            passages += evidence
            label = {"true": "S", "false": "NS"}.get(str(verdict).lower())
            finer = {"S": "supported", "NS": "refuted"}.get(label, "unknown")
            judgement = ("IR", "irrelevant") if worth != "factual" else (label, finer)
            more = {"sentence": index, "source": sentence["text"], "checkworthiness": worth}
            claims.append(claim_of(text, judgement, evidence, f"c{len(claims)}", **more))
    return {
        "id": f"d{number}",
        "topic": required_text(row, "prompt"),
        "text": row["response"],
        "claims": claims,
        "passages": passages,
        "sentences": sentences,
    }
