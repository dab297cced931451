"""Longest supported subsequences (2308.12157): the published table, WiCE's tokens, and pairs."""

import re

# Columns of lss_eval's ``LSS_test.csv``; its questions follow `Reference` in this order.
TABLE = ("worker_id", "Statement", "Reference")
QUESTIONS = ("unrelated", "lss", "lss_star", "difficult", "rating")
# Values of a flag that is not set; any other value sets it.
UNSET = {"", "0", "[]", "f", "false", "n", "no", "nan", "none", "null"}
# "4 - Almost Supported" in the published table; some tools write the number alone.
_RATING = re.compile(r"([1-5](?:\.\d+)?)\s*(?:[-–—:.].*)?", re.DOTALL)


def published_answer(row: dict) -> dict:
    """Convert a row, the answer of one annotator with whole questions as column names.

    Raises:
        ValueError: a question or the rating cannot be read.
    """
    columns = list(row)
    questions = columns[columns.index("Reference") + 1 :]
    if len(questions) < len(QUESTIONS):
        raise ValueError(f"expected five questions after `Reference`, got {len(questions)}")
    cells = dict(zip(QUESTIONS, (row[column].strip() for column in questions), strict=False))
    flags = {flag: True for flag in ("unrelated", "difficult") if cells[flag].lower() not in UNSET}
    answer = {"lss": cells["lss"], "lss_star": cells["lss_star"], "annotator": row["worker_id"]}
    return {
        "reference": row["Reference"],
        "claim": row["Statement"],
        "annotations": [answer | {"rating": _rating(cells["rating"])} | flags],
        **({"id": row["task_id"]} if row.get("task_id") else {}),
    }


def _rating(cell: str) -> float | None:
    if cell.lower() in UNSET:
        return None
    match = _RATING.fullmatch(cell)
    if match is None:
        raise ValueError(f"rating: expected a number from 1 to 5, got {cell[:40]!r}")
    return float(match[1])


def of_wice_tokens(row: dict) -> dict:
    """Return the LSS record of a row of WiCE's tokens: the tokens that are supported."""
    tokens, dropped = row["claim_tokens"], row["non_supported_spans"]
    if len(tokens) != len(dropped):
        raise ValueError("non_supported_spans: length differs from claim_tokens")
    # Some tokens contain spaces; `keep` has one entry per whitespace token.
    words = [(w, drop) for t, drop in zip(tokens, dropped, strict=True) for w in t.split()]
    evidence = [row["evidence"]] if isinstance(row["evidence"], str) else row["evidence"]
    cited = [evidence[i] for i in sorted({i for s in row["supporting_sentences"] for i in s})]
    meta = row.get("meta") or {}
    article = meta.get("claim_title") or meta.get("id")
    return {
        "claim": " ".join(tokens),
        # Cited sentences first, so that truncation keeps them.
        "reference": "\n".join([*cited, *(e for e in evidence if e not in set(cited))]),
        "annotations": [{"lss": " ".join(word for word, drop in words if not drop)}],
        "keep": [not drop for _, drop in words],
        "source": "wice",
        **({"group": str(article)} if article else {}),
    }


def pairs_of_lss(row: dict) -> list[dict]:
    """Return one or two pairs from human LSS or WiCE's tokens.

    The supported part is entailed; the claim is entailed if most annotators kept all of it.
    """
    row = of_wice_tokens(row) if "claim_tokens" in row else row
    claim = " ".join(row["claim"].split())
    kept = [" ".join(str(a["lss"]).split()) for a in row["annotations"]]
    full = sum(lss == claim for lss in kept)
    label = "entailment" if 2 * full > len(kept) else "not_entailment"
    pairs = [(claim, None if 2 * full == len(kept) else label)]
    if partial := next((lss for lss in kept if lss not in ("", claim)), ""):
        pairs.append((partial, "entailment"))
    shared = {"premise": row["reference"], "group": row.get("group")}
    return [shared | {"hypothesis": text, "label": label} for text, label in pairs]
