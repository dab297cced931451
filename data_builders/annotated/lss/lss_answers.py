"""Read human annotations from all supported files as LSS records, one per pair.

Label Studio exports (``JSON``), the published table of 2308.12157
(facebookresearch/lss_eval), and LSS records.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from data_builders.annotated.labelstudio_exports import Task, read_tasks
from data_builders.annotated.lss.lss_tasks import Unreadable, example_of, from_values
from eval.metrics.lss_agreement import read_published_table
from records import (
    Annotation,
    BadInput,
    LssExample,
    UserError,
    iter_rows,
    read_records,
    to_bad_input,
)
from records.formats.lss import TABLE


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
            return list(read_published_table(path))
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
