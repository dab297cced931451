"""Read human annotations from all supported files as LSS records, one per pair.

Label Studio exports (``JSON``, ``JSON-MIN``), the published table of 2308.12157
(facebookresearch/lss_eval: one row per answer, whole questions as column names), and LSS records.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from data_builders.annotated.labelstudio_exports import SHORT, Task, read_tasks
from data_builders.annotated.lss.lss_tasks import Unreadable, example_of, from_values
from records import (
    Annotation,
    BadInput,
    LssExample,
    UserError,
    iter_rows,
    read_records,
    to_bad_input,
)

# Columns of the published table; its questions follow `Reference` in this order.
TABLE = ("worker_id", "Statement", "Reference")
QUESTIONS = ("unrelated", "lss", "lss_star", "difficult", "rating")
# Values of a flag that is not set; any other value sets it.
UNSET = {"", "0", "[]", "f", "false", "n", "no", "nan", "none", "null"}
# "4 - Almost Supported" in the published table; some tools write the number alone.
_RATING = re.compile(r"([1-5](?:\.\d+)?)\s*(?:[-–—:.].*)?", re.DOTALL)

Pair = tuple[str, str]
Repeats = Literal["latest", "all"]


def read_answers(path: str, dropped: Counter[str]) -> list[LssExample]:
    """Read the pairs of a file with their annotations.

    ``.json`` is Label Studio, ``.csv`` or ``.tsv`` with ``Statement`` and ``Reference`` the
    published table, everything else LSS records.
    """
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; expected a Label Studio export or LSS records")
    name = path.lower().removesuffix(".gz")
    if name.endswith(".json"):
        return list(_exported(path, dropped))
    if name.endswith((".csv", ".tsv")):
        first = next(iter_rows(path), (1, {}))[1]
        if all(column in first for column in TABLE):
            return list(_table(path))
        if SHORT in first:
            raise UserError(
                f"{path}: Label Studio export as a table; export again as JSON or JSON-MIN"
            )
    return read_records(path, LssExample)


def _exported(path: str, dropped: Counter[str]) -> Iterator[LssExample]:
    for task in read_tasks(path, dropped):
        claim = task.data.get("claim")
        if not isinstance(claim, str):
            raise BadInput([f"{task.where}: claim: field required; use an export of this project"])
        if not isinstance(task.data.get("record"), dict | None):
            raise BadInput(
                [f"{task.where}: record: expected an object; use an export of this project"]
            )
        annotations = list(_annotations(task, claim, dropped))
        if not annotations:
            dropped["task without a usable annotation"] += 1
            continue
        try:
            yield example_of(task.data, annotations)
        except ValidationError as error:
            raise to_bad_input(task.where, error) from None


def _annotations(task: Task, claim: str, dropped: Counter[str]) -> Iterator[Annotation]:
    for answer in task.answers:
        try:
            yield from_values(answer.values, claim, answer.annotator)
        except Unreadable as error:
            dropped[str(error)] += 1


def _table(path: str) -> Iterator[LssExample]:
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


def pair_of(example: LssExample) -> Pair:
    """Return the key of a pair: reference and claim with normalized whitespace."""
    return " ".join(example.reference.split()), " ".join(example.claim.split())


def merge(
    examples: Iterable[LssExample], dropped: Counter[str], repeats: Repeats = "latest"
) -> list[LssExample]:
    """Merge records into one per pair, in the order of first occurrence, with all annotations.

    ``repeats`` keeps the ``latest`` answer of a named annotator to a pair, or ``all``.
    """
    merged: dict[Pair, LssExample] = {}
    for example in examples:
        pair = pair_of(example)
        first = merged.get(pair)
        annotations = list(first.annotations) if first else []
        for annotation in example.annotations:
            name = (annotation.model_extra or {}).get("annotator") if repeats == "latest" else None
            same = [
                a for a in annotations if name and (a.model_extra or {}).get("annotator") == name
            ]
            dropped["annotation replaced by a later one"] += len(same)
            annotations = [a for a in annotations if a not in same] + [annotation]
        merged[pair] = (first or example).model_copy(update={"annotations": annotations})
    return list(merged.values())
