"""People's answers from every file that they come in, as LSS records, one a pair.

Label Studio's exports (``JSON``, ``JSON-MIN``), the published table of 2308.12157 (facebookresearch
/lss_eval: a row an answer, with whole questions as column names), and LSS records, WiCE's among
them.
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

# The published table's short column names; the questions follow `Reference` in this order.
TABLE = ("worker_id", "Statement", "Reference")
QUESTIONS = ("unrelated", "lss", "lss_star", "difficult", "rating")
# What a flag's cell holds when it is not set; anything else sets it.
UNSET = {"", "0", "[]", "f", "false", "n", "no", "nan", "none", "null"}
# "4 - Almost Supported", as the published table has it; some tools give the number alone.
_RATING = re.compile(r"([1-5](?:\.\d+)?)\s*(?:[-–—:.].*)?", re.DOTALL)

Pair = tuple[str, str]
Repeats = Literal["latest", "all"]


def read_answers(path: str, dropped: Counter[str]) -> list[LssExample]:
    """The pairs of one file with their annotations.

    Args:
        path: ``.json`` for Label Studio; ``.csv`` or ``.tsv`` with ``Statement`` and ``Reference``
            for the published table; anything else holds LSS records.
        dropped: reason to how many annotations were left out; added to.

    Raises:
        BadInput: a row that is not as its project writes it.
    """
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; give an export of Label Studio or LSS records")
    name = path.lower().removesuffix(".gz")
    if name.endswith(".json"):
        return list(_exported(path, dropped))
    if name.endswith((".csv", ".tsv")):
        first = next(iter_rows(path), (1, {}))[1]
        if all(column in first for column in TABLE):
            return list(_table(path))
        if SHORT in first:
            raise UserError(
                f"{path}: Label Studio's export as a table; export again as JSON or JSON-MIN"
            )
    return read_records(path, LssExample)


def _exported(path: str, dropped: Counter[str]) -> Iterator[LssExample]:
    for task in read_tasks(path, dropped):
        claim = task.data.get("claim")
        if not isinstance(claim, str):
            raise BadInput([f"{task.where}: claim: field required; is it a task of this project?"])
        if not isinstance(task.data.get("record"), dict | None):
            raise BadInput([f"{task.where}: record: expected an object, as the project has it"])
        found = list(_annotations(task, claim, dropped))
        if not found:
            dropped["task without a usable annotation"] += 1
            continue
        try:
            yield example_of(task.data, found)
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
        asked = columns[columns.index("Reference") + 1 :]
        if len(asked) < len(QUESTIONS):
            raise BadInput(
                [f"{where}: expected five questions after `Reference`, got {len(asked)}"]
            )
        cells = dict(zip(QUESTIONS, (row[column].strip() for column in asked), strict=False))
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
    found = _RATING.fullmatch(cell)
    if found is None:
        raise BadInput(
            [f"{where}: rating: expected a number from 1 to 5 before its words, got {cell[:40]!r}"]
        )
    return float(found[1])


def pair_of(example: LssExample) -> Pair:
    """What makes two records the same pair: reference and claim, whatever their blanks."""
    return " ".join(example.reference.split()), " ".join(example.claim.split())


def merge(
    examples: Iterable[LssExample], dropped: Counter[str], repeats: Repeats = "latest"
) -> list[LssExample]:
    """One record a pair, in the order of first sight, with all annotations.

    Args:
        examples: records, a pair any number of times.
        dropped: reason to how many annotations were left out; added to.
        repeats: of a named annotator who answers the same pair again the ``latest`` answer counts,
            for they have changed their mind, and the earlier ones are counted in ``dropped``; or
            ``all`` do, as in the published table, where some were given a pair in two tasks.
    """
    found: dict[Pair, LssExample] = {}
    for example in examples:
        pair = pair_of(example)
        first = found.get(pair)
        own = list(first.annotations) if first else []
        for annotation in example.annotations:
            who = (annotation.model_extra or {}).get("annotator") if repeats == "latest" else None
            same = [a for a in own if who and (a.model_extra or {}).get("annotator") == who]
            dropped["answer that its annotator gave anew"] += len(same)
            own = [a for a in own if a not in same] + [annotation]
        found[pair] = (first or example).model_copy(update={"annotations": own})
    return list(found.values())
