"""SAFE's results (2403.18802)."""

_SAFE = {"Supported": "S", "Not Supported": "NS", "Irrelevant": "IR"}
# What SAFE's scripts call a side that nobody wrote.
_NO_SIDE = ("none", "placeholder")


def safe(row: dict, number: int) -> list[dict] | None:
    """SAFE's results, one row of ``per_prompt_data``: a document for each side that was rated.

    Where none was, for each side that has a response, without claims. ``side_1`` and ``side_2`` of
    the file say who wrote the sides.
    """
    sides = [side for side in ("side1", "side2") if row.get(f"{side}_posthoc_eval_data")]
    for side in () if sides else ("side1", "side2"):
        if row.get(f"{side}_response") and row.get(f"side_{side[-1]}") not in _NO_SIDE:
            sides.append(side)
    found = []
    for side in sides:
        data = row.get(f"{side}_posthoc_eval_data")
        text = row.get(f"{side}_response") or data["response"]
        name = f"d{number}" if len(sides) == 1 else f"d{number}.{side}"
        found.append({"id": name, "topic": row["prompt"], "text": text})
        claims, passages = _checked(data) if data else (None, None)
        found[-1] |= {"claims": claims} | ({"passages": passages} if passages else {})
        found[-1]["generator"] = row.get(f"side_{side[-1]}") or side
    return found or None


def _checked(data: dict) -> tuple[list[dict], list[dict]]:
    order = {fact["sentence"]: i for i, fact in enumerate(data["all_atomic_facts"])}
    checked, steps = data["checked_statements"], data.get("past_steps_jsonified_all") or []
    # Some files have the steps of the rated facts only; then nobody can say whose they are.
    told = len(steps) == len(checked)
    claims, passages = [], []
    for place, (fact, step) in enumerate(
        zip(checked, steps if told else [{}] * len(checked), strict=True)
    ):
        searches = [s for s in step.get("google_searches") or [] if (s.get("result") or "").strip()]
        found = [
            {"id": f"c{place}_{index}", "text": search["result"], "source": "google"}
            for index, search in enumerate(searches)
        ]
        passages += [
            one | {"query": s.get("query")} for one, s in zip(found, searches, strict=True)
        ]
        claims.append(
            {
                "id": f"c{place}",
                "text": fact["self_contained_atomic_fact"],
                "original": fact["atomic_fact"],
                "sentence": order.get(fact["sentence"], 0),
                "source": fact["sentence"],
                "label": _SAFE.get(fact["annotation"]),
            }
            | ({"contexts": [one["id"] for one in found]} if told else {})
        )
    return claims, passages
