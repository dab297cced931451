"""AVeriTeC (2305.13117): a claim with people's questions and the answers they found."""

from records.formats.climate_fever import checked_claim


def averitec(row: dict, number: int) -> dict | None:
    """The claim is the text and its own only claim; ``claim_label`` is the set's verdict.

    Each answer is a passage, its question before it; ``boolean_explanation`` stands behind a Yes or
    No.
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
