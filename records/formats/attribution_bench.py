"""AttributionBench (2402.15089): ``claim``, ``references``, ``attribution_label``."""

from records.formats.judged_claims import document_of_pair, parse_judgement, required_text


def attribution_bench(row: dict, number: int) -> dict | None:
    """Return a claim with its references; claims of one ``question`` share a unit."""
    if not {"claim", "references", "attribution_label"} <= set(row):
        return None
    judgement = parse_judgement(row["attribution_label"], "attribution_label")
    claim, unit = required_text(row, "claim"), row.get("question")
    source = row.get("src_dataset")
    return document_of_pair(row, number, claim, row["references"], judgement, unit, source)
