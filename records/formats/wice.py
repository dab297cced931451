"""WiCE (2303.01432), and VitaminC, HealthVer and Factcheck-Bench's pairs with the same fields.

WiCE's unsupported tokens define an LSS.
"""

from records.formats.judged_claims import document_of_pair, parse_judgement, required_text


def claim_and_evidence(row: dict, number: int) -> dict | None:
    """Read rows of ``claim``, ``evidence``, ``label``.

    WiCE's list of evidence sentences becomes one passage. The unit is WiCE's article, VitaminC's
    ``page`` or HealthVer's ``question``. Factcheck-Bench's pairs (2311.09000) have the label in
    ``stance``.
    """
    field = "stance" if "stance" in row else "label"
    if not {"claim", "evidence"} <= set(row) or isinstance(row["evidence"], dict):
        return None
    evidence = row["evidence"]
    evidence = evidence if isinstance(evidence, str) else "\n".join(evidence)
    unit = _article(row) or row.get("page") or row.get("question")
    claim = required_text(row, "claim")
    return document_of_pair(
        row, number, claim, evidence, parse_judgement(row.get(field), field), unit or claim
    )


def _article(row: dict) -> object:
    meta = row.get("meta") or {}
    return meta.get("claim_title") or meta.get("id")


def to_lss(row: dict) -> dict:
    """Convert a row of WiCE's tokens to an LSS record; other rows are unchanged."""
    if "claim_tokens" not in row or "non_supported_spans" not in row:
        return row
    tokens, dropped = row["claim_tokens"], row["non_supported_spans"]
    if len(tokens) != len(dropped):
        raise ValueError("non_supported_spans: length differs from claim_tokens")
    # Some tokens contain spaces; `keep` has one entry per whitespace token.
    words = [(w, drop) for t, drop in zip(tokens, dropped, strict=True) for w in t.split()]
    evidence = [row["evidence"]] if isinstance(row["evidence"], str) else row["evidence"]
    cited = [evidence[i] for i in sorted({i for s in row["supporting_sentences"] for i in s})]
    return {
        "claim": " ".join(tokens),
        # Cited sentences first, so that truncation keeps them.
        "reference": "\n".join([*cited, *(e for e in evidence if e not in set(cited))]),
        "annotations": [{"lss": " ".join(word for word, drop in words if not drop)}],
        "keep": [not drop for _, drop in words],
        "source": "wice",
        **({"group": str(article)} if (article := _article(row)) else {}),
    }
