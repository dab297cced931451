"""FActScore's files (2305.14251): labelled biographies, and the released predictions."""

from records.formats.row_fields import document_of


def factscore(row: dict, number: int) -> dict | None:
    """FActScore's labelled biographies: ``annotations`` with atomic facts.

    The humans' facts become ``claims``, the model's, which have no labels, ``model_claims``. A text
    whose ``annotations`` are null does not respond, whatever it says: so FActScore (2305.14251)
    counts 99.5 % of InstructGPT's 183 texts and 90.7 % of PerplexityAI's as responses.
    """
    sentences = row.get("annotations")
    if sentences is None and "annotations" in row and "output" in row:
        return document_of(row, number, row["output"], responds=False)
    if not isinstance(sentences, list) or "output" not in row:
        return None
    found = {
        "claims": _atomic_facts(sentences, "human-atomic-facts"),
        "model_claims": _atomic_facts(sentences, "model-atomic-facts"),
    }
    return document_of(row, number, row["output"], kind="normal", **found)


def _atomic_facts(sentences: list[dict], field: str) -> list[dict]:
    claims = []
    for index, sentence in enumerate(sentences):
        for fact in sentence.get(field) or []:
            claim = {"id": f"c{len(claims)}", "text": fact["text"], "sentence": index}
            claim["source"] = sentence["text"]
            if field.startswith("human"):
                claim["label"] = fact["label"]
            claims.append(claim)
    return claims


def factscore_predictions(row: dict, number: int) -> dict | None:
    """FActScore's released predictions: ``facts`` with the labels of two estimators.

    The labels are those of ChatGPT where they are there, else of LLAMA+NP; the text, which these
    files lack, is the facts one after the other.
    """
    if not isinstance(row.get("facts"), list) or "prompt" not in row:
        return None
    names = (f"{who}_{word}abels" for who in ("ChatGPT", "LLAMA+NP") for word in "Ll")
    labels = next((row[name] for name in names if name in row), [None] * len(row["facts"]))
    if len(labels) != len(row["facts"]):
        raise ValueError("facts: must be as many as their labels")
    claims = [
        {"id": f"c{place}", "text": text, "label": label if label in ("S", "NS", "IR") else None}
        for place, (text, label) in enumerate(zip(row["facts"], labels, strict=True))
    ]
    return document_of(row, number, " ".join(row["facts"]), claims=claims)
