"""SAFE (2403.18802): results."""

_SAFE = {"Supported": "S", "Not Supported": "NS", "Irrelevant": "IR"}
# Names of absent sides in SAFE's scripts.
_NO_SIDE = ("none", "placeholder")


def safe(row: dict, number: int) -> list[dict] | None:
    """Read one row of ``per_prompt_data``: a document per rated side.

    If no side was rated, a document without claims per response. ``side_1`` and ``side_2`` of the
    file name the generators.
    """
    sides = [side for side in ("side1", "side2") if row.get(f"{side}_posthoc_eval_data")]
    for side in () if sides else ("side1", "side2"):
        if row.get(f"{side}_response") and row.get(f"side_{side[-1]}") not in _NO_SIDE:
            sides.append(side)
    documents = []
    for side in sides:
        data = row.get(f"{side}_posthoc_eval_data")
        text = row.get(f"{side}_response") or data["response"]
        name = f"d{number}" if len(sides) == 1 else f"d{number}.{side}"
        documents.append({"id": name, "topic": row["prompt"], "text": text})
        claims, passages = _claims_and_passages(data) if data else (None, None)
        documents[-1] |= {"claims": claims} | ({"passages": passages} if passages else {})
        documents[-1]["generator"] = row.get(f"side_{side[-1]}") or side
    return documents or None


def _claims_and_passages(data: dict) -> tuple[list[dict], list[dict]]:
    order = {fact["sentence"]: i for i, fact in enumerate(data["all_atomic_facts"])}
    checked, steps = data["checked_statements"], data.get("past_steps_jsonified_all") or []
    # Some files have steps of rated facts only; they cannot be assigned to facts.
    has_steps = len(steps) == len(checked)
    claims, passages = [], []
    for place, (fact, step) in enumerate(
        zip(checked, steps if has_steps else [{}] * len(checked), strict=True)
    ):
        searches = [s for s in step.get("google_searches") or [] if (s.get("result") or "").strip()]
        hits = [
            {"id": f"c{place}_{index}", "text": search["result"], "source": "google"}
            for index, search in enumerate(searches)
        ]
        passages += [hit | {"query": s.get("query")} for hit, s in zip(hits, searches, strict=True)]
        claims.append(
            {
                "id": f"c{place}",
                "text": fact["self_contained_atomic_fact"],
                "original": fact["atomic_fact"],
                "sentence": order.get(fact["sentence"], 0),
                "source": fact["sentence"],
                "label": _SAFE.get(fact["annotation"]),
            }
            | ({"contexts": [hit["id"] for hit in hits]} if has_steps else {})
        )
    return claims, passages
