"""Projects of Label Studio and the answers in its exports, whatever is asked.

Two exports are read. The full one (``JSON``) has a task with ``annotations``, each with a
``result`` of items that name their control; the short one (``JSON-MIN``) has a row an annotation,
with a column a control. Format: https://labelstud.io/guide/task_format and
https://labelstud.io/guide/export.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from records import BadInput, UserError
from records.reading import load_json

CONFIG, INSTRUCTIONS = "label_config.xml", "instructions.html"
SHORT = "annotation_id"  # that only a row of the short export has
# In what an export wraps a control's values, and the fields of a mark, which stays as it is.
WRAPS = ("choices", "rating", "text")
MARK = {"start", "end", "labels"}


@dataclass(frozen=True)
class Answer:
    """What one annotator said.

    Attributes:
        annotator: an e-mail address where the export has it, else the user's number.
        values: control to its values: texts, choices, stars, or marks as objects.
    """

    annotator: str | None
    values: dict[str, list]


@dataclass(frozen=True)
class Task:
    """A task with its answers; in the short export, with the one of its row.

    Attributes:
        where: ``file:number``, for messages.
        data: what the task was imported with.
        answers: in the order in which they were given.
    """

    where: str
    data: dict
    answers: list[Answer]


def project_pages(form: Path, tasks: Sequence[dict], into: str = "") -> dict[str, str]:
    """The three files of a project: path to text.

    Args:
        form: folder that holds its ``label_config.xml`` and ``instructions.html``.
        tasks: what is imported.
        into: where in the dataset's folder, ending in ``/``.
    """
    shown = {n: (form / n).read_text(encoding="utf-8") for n in (CONFIG, INSTRUCTIONS)}
    pages = shown | {"tasks.json": json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"}
    return {f"{into}{name}": text for name, text in pages.items()}


def read_tasks(path: str, dropped: Counter[str]) -> list[Task]:
    """The tasks of an export, in the order in which their answers were made.

    Args:
        path: its ``.json``.
        dropped: reason to how many answers were left out; added to.

    Raises:
        BadInput: annotations that are none.
    """
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; give an export of Label Studio")
    try:
        rows = load_json(path)
    except UserError as error:
        raise UserError(f"{error}; export again as JSON or JSON-MIN") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(
            f"{path}: not a list of tasks; export from Label Studio as JSON or JSON-MIN"
        )
    try:
        # The short export has an annotator's newest answer first.
        numbered = sorted(enumerate(rows, 1), key=lambda e: (_id(e[1], "id"), _id(e[1], SHORT)))
        return [_task(f"{path}:{number}", row, dropped) for number, row in numbered]
    except (AttributeError, TypeError):
        raise BadInput(
            [f"{path}: annotations: not as Label Studio has them; export again as JSON"]
        ) from None


def _task(where: str, row: dict, dropped: Counter[str]) -> Task:
    if not isinstance(row.get("data"), dict):
        values = {name: _unwrapped(value) for name, value in row.items()}
        own = [Answer(_annotator(row.get("annotator")), values)]
        return Task(where, row, own if row.get(SHORT) is not None else [])
    answers = []
    for entry in sorted(row.get("annotations") or [], key=lambda entry: _id(entry, "id")):
        if entry.get("was_cancelled"):
            dropped["annotation that was skipped"] += 1
        else:
            answers.append(Answer(_annotator(entry.get("completed_by")), values_of(entry)))
    return Task(where, row["data"], answers)


def values_of(annotation: dict) -> dict[str, list]:
    """Control to its values, of an annotation of the full export."""
    found: dict[str, list] = {}
    for item in annotation.get("result") or []:
        name = item.get("from_name")
        if isinstance(name, str):  # an arrow between two marks is of no control
            found.setdefault(name, []).extend(_unwrapped(item.get("value")))
    return found


def _unwrapped(value: object) -> list:
    if isinstance(value, list):
        return [one for part in value for one in _unwrapped(part)]
    if isinstance(value, dict) and not value.keys() & MARK:
        return _unwrapped(next((value[name] for name in WRAPS if name in value), None))
    return [] if value is None else [value]


def _annotator(entry: object) -> str | None:
    if isinstance(entry, dict):
        entry = entry.get("email") or entry.get("id")
    return None if entry is None else str(entry)


def _id(row: dict, name: str) -> int:
    return row[name] if isinstance(row.get(name), int) else 0
