"""AVeriTeC (2305.13117): claims with questions and answers as evidence."""

from records.formats.climate_fever import checked_claim


def averitec(row: dict, number: int) -> dict | None:
    """Read a claim as a document with itself as the only claim; ``claim_label`` is the verdict.

    Each answer is a passage preceded by its question; ``boolean_explanation`` follows a Yes or No.
    """
    if not isinstance(row.get("questions"), list) or "claim" not in row:
        return None
    passages = []
    for question in row["questions"]:
        for answer in question["answers"]:
            parts = (question["question"], answer["answer"], answer.get("boolean_explanation"))
            passages.append(
                {
                    "id": f"p{len(passages)}",
                    "text": " ".join(part.strip() for part in parts if part),
                    "url": answer.get("source_url"),
                    "answer_type": answer.get("answer_type"),
                }
            )
    return checked_claim(row, number, row["label"], passages)
