"""FaithBench (2410.13210): summaries with annotations; the worst annotation is the label."""

from records.formats.judged_claims import (
    document_of_pair,
    parse_judgement,
    required_text,
    short_hash,
)

_BY_SEVERITY = ("consistent", "benign", "questionable", "unwanted")


def faithbench(row: dict, number: int) -> dict | None:
    """Read a summary as one claim.

    Unwanted and questionable mean not supported, benign means supported, as in the official script.
    The table (``FaithBench.csv``) has the worst label and the summarizer in ``LLM``.
    """
    if not {"source", "summary"} <= set(row) or not {"annotations", "worst-label"} & set(row):
        return None
    if "annotations" in row:
        labels = [label for annotation in row["annotations"] for label in annotation["label"]]
    else:
        labels = [row["worst-label"]]
    words = {label.split(".")[0].lower() for label in labels}
    if unknown := words - set(_BY_SEVERITY):
        expected = ", ".join(word.capitalize() for word in _BY_SEVERITY)
        raise ValueError(f"annotations: label: expected one of {expected}, got {min(unknown)!r}")
    worst = max(words, key=_BY_SEVERITY.index, default="consistent")
    source, summary = required_text(row, "source"), required_text(row, "summary")
    judgement = parse_judgement(worst, "label")
    document = document_of_pair(row, number, summary, source, judgement, short_hash(source))
    meta = row.get("metadata") or {}
    writer = meta.get("summarizer") or row.get("meta_model") or row.get("LLM")
    return document | ({"generator": writer} if writer else {})
