"""LSS (2308.12157): the published table, facebookresearch/lss_eval's ``LSS_test.csv``."""

import re
from collections.abc import Iterator

from pydantic import ValidationError

from records.errors import BadInput
from records.reading import iter_rows, to_bad_input
from records.types import Annotation, LssExample

# Columns of the published table; its questions follow `Reference` in this order.
TABLE = ("worker_id", "Statement", "Reference")
QUESTIONS = ("unrelated", "lss", "lss_star", "difficult", "rating")
# Values of a flag that is not set; any other value sets it.
UNSET = {"", "0", "[]", "f", "false", "n", "no", "nan", "none", "null"}
# "4 - Almost Supported" in the published table; some tools write the number alone.
_RATING = re.compile(r"([1-5](?:\.\d+)?)\s*(?:[-–—:.].*)?", re.DOTALL)


def read_published_table(path: str) -> Iterator[LssExample]:
    """Read the table: one record per answer, whole questions as column names."""
    for number, row in iter_rows(path):
        where = f"{path}:{number}"
        columns = list(row)
        questions = columns[columns.index("Reference") + 1 :]
        if len(questions) < len(QUESTIONS):
            raise BadInput(
                [f"{where}: expected five questions after `Reference`, got {len(questions)}"]
            )
        cells = dict(zip(QUESTIONS, (row[column].strip() for column in questions), strict=False))
        flags = {
            flag: True for flag in ("unrelated", "difficult") if cells[flag].lower() not in UNSET
        }
        try:
            yield LssExample(
                reference=row["Reference"],
                claim=row["Statement"],
                annotations=[
                    Annotation(
                        lss=cells["lss"],
                        lss_star=cells["lss_star"],
                        rating=_rating(cells["rating"], where),
                        annotator=row["worker_id"],
                        **flags,
                    )
                ],
                **({"id": row["task_id"]} if row.get("task_id") else {}),
            )
        except ValidationError as error:
            raise to_bad_input(where, error) from None


def _rating(cell: str, where: str) -> float | None:
    if cell.lower() in UNSET:
        return None
    match = _RATING.fullmatch(cell)
    if match is None:
        raise BadInput([f"{where}: rating: expected a number from 1 to 5, got {cell[:40]!r}"])
    return float(match[1])
