"""LSS (2308.12157): the published table, facebookresearch/lss_eval's ``LSS_test.csv``."""

import re

# Columns of the published table; its questions follow `Reference` in this order.
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
