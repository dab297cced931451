"""FActScore (2305.14251): labelled biographies and released predictions."""

from records.formats.row_fields import document_of


def factscore(row: dict, number: int) -> dict | None:
    """Read FActScore's labelled biographies: ``annotations`` with atomic facts.

    Human facts become ``claims``; the model's unlabelled facts become ``model_claims``. A text with
    null ``annotations`` is an abstention, regardless of its text: FActScore counts 99.5 % of
    InstructGPT's 183 texts and 90.7 % of PerplexityAI's as responses.
    """
    sentences = row.get("annotations")
    if sentences is None and "annotations" in row and "output" in row:
        return document_of(row, number, row["output"], responds=False)
    if not isinstance(sentences, list) or "output" not in row:
        return None
    claims = {
        "claims": _atomic_facts(sentences, "human-atomic-facts"),
        "model_claims": _atomic_facts(sentences, "model-atomic-facts"),
    }
    return document_of(row, number, row["output"], kind="normal", **claims)


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
    """Read FActScore's released predictions: ``facts`` with labels of two estimators.

    Labels are ChatGPT's if present, else LLAMA+NP's. The files have no texts; the joined facts
    replace them.
    """
    if not isinstance(row.get("facts"), list) or "prompt" not in row:
        return None
    names = (
        f"{estimator}_{initial}abels" for estimator in ("ChatGPT", "LLAMA+NP") for initial in "Ll"
    )
    labels = next((row[name] for name in names if name in row), [None] * len(row["facts"]))
    if len(labels) != len(row["facts"]):
        raise ValueError("facts: number of facts differs from number of labels")
    claims = [
        {"id": f"c{index}", "text": text, "label": label if label in ("S", "NS", "IR") else None}
        for index, (text, label) in enumerate(zip(row["facts"], labels, strict=True))
    ]
    return document_of(row, number, " ".join(row["facts"]), claims=claims)
