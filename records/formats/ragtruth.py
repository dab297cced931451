"""RAGTruth (2401.00396): responses with annotated unsupported spans."""

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
    """Read a response, or a source.

    The response is the claim, as in the official response-level metric; it is supported if no span
    is marked. Responses whose ``quality`` is not good (wrong refusal, truncated) have no label; the
    official scripts exclude them. ``response.jsonl`` has no sources: each row of
    ``source_info.jsonl`` is a document without claims, to be joined by ``source_id``. The copy on
    the Hub has both in one row (``context``, ``output``, ``hallucination_labels``).
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
        judgement, unit = judge_spans(labels, row.get("quality")), short_hash(context)
        document = document_of_pair(
            row, number, text, context, judgement, unit, row.get("task_type")
        )
    elif {"response", "source_id", "labels"} <= set(row):
        unit = str(row["source_id"])
        judgement = judge_spans(row["labels"], row.get("quality"))
        document = document_of_pair(
            row, number, required_text(row, "response"), (), judgement, unit
        )
        document |= {"source_id": unit}
        del document["claims"][0]["contexts"]  # set when the source is joined
    else:
        return None
    return document | ({"generator": row["model"]} if row.get("model") else {})


def judge_spans(spans: list[dict] | None, quality: str | None = None) -> Judgement:
    """Return the judgement of a text by its marked spans; without any it is supported."""
    if quality not in (None, "good"):
        return None, "unknown"
    if spans is None:  # not annotated
        return None, None
    if not spans:
        return SUPPORTED
    conflict = any(
        "conflict" in str(span.get("label_type", span.get("label"))).lower() for span in spans
    )
    return "NS", "refuted" if conflict else "not_enough"
