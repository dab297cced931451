"""RAGTruth (2401.00396): a response whose unsupported spans people marked."""

import json

from records.formats.judged_claims import (
    SUPPORTED,
    Judgement,
    document_of_pair,
    passages_of,
    required_text,
    short_hash,
)


def ragtruth(row: dict, number: int) -> dict | None:
    """A response, or what it was written from.

    The response is the claim, as in the set's own measure of responses: supported where no span is
    marked. One whose ``quality`` is not good (a wrong refusal, cut off) has no label: the set's own
    scripts leave it out. ``response.jsonl`` has no sources: each of ``source_info.jsonl`` is a
    document without claims, and who reads both joins them by ``source_id``. In the copy on the Hub
    a row has both (``context``, ``output``, ``hallucination_labels``).
    """
    if {"source_info", "source_id"} <= set(row) and "response" not in row:
        info = row["source_info"]
        if isinstance(info, dict):
            info = info.get("passages") or json.dumps(info, ensure_ascii=False)
        source = {"topic": str(row["source_id"]), "text": "", "passages": passages_of(info)}
        source |= {"id": f"source {row['source_id']}", "source_id": str(row["source_id"])}
        return source | ({"group": row["task_type"]} if row.get("task_type") else {})
    if {"context", "output", "hallucination_labels"} <= set(row):
        labels = row["hallucination_labels"]
        try:
            labels = json.loads(labels) if isinstance(labels, str) else labels
        except ValueError:
            raise ValueError(f"hallucination_labels: expected JSON, got {labels[:60]!r}") from None
        text, context = required_text(row, "output"), required_text(row, "context")
        meant, unit = _marked(labels, row.get("quality")), short_hash(context)
        found = document_of_pair(row, number, text, context, meant, unit, row.get("task_type"))
    elif {"response", "source_id", "labels"} <= set(row):
        unit = str(row["source_id"])
        meant = _marked(row["labels"], row.get("quality"))
        found = document_of_pair(row, number, required_text(row, "response"), (), meant, unit)
        found |= {"source_id": unit}
        del found["claims"][0]["contexts"]  # all of the source that is joined
    else:
        return None
    return found | ({"generator": row["model"]} if row.get("model") else {})


def _marked(spans: list[dict] | None, quality: str | None) -> Judgement:
    if quality not in (None, "good"):
        return None, "unknown"
    if spans is None:  # nobody looked for spans, which is not that none was found
        return None, None
    if not spans:
        return SUPPORTED
    conflict = any("conflict" in str(span["label_type"]).lower() for span in spans)
    return "NS", "refuted" if conflict else "not_enough"
