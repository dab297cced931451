"""Write Label Studio projects and read annotations from exports.

The export as ``JSON`` has tasks with ``annotations``, each with a ``result`` of items that name
their control. Format: https://labelstud.io/guide/task_format and https://labelstud.io/guide/export.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from records import BadInput, UserError
from records.reading import load_json

CONFIG, INSTRUCTIONS = "label_config.xml", "instructions.html"
# Keys that wrap a control's values, and the fields of a mark, which is kept as an object.
WRAPS = ("choices", "rating", "text")
MARK = {"start", "end", "labels"}


@dataclass(frozen=True)
class Answer:
    """The annotation of a task: the annotator's e-mail or number, and control to values."""

    annotator: str | None
    values: dict[str, list]


@dataclass(frozen=True)
class Task:
    """A task with its annotations; ``where`` is ``file:number``, for error messages."""

    where: str
    data: dict
    answers: list[Answer]


def project_pages(form: Path, tasks: Sequence[dict], into: str = "") -> dict[str, str]:
    """Return the three files of a project: path to text.

    Args:
        form: folder with ``label_config.xml`` and ``instructions.html``.
        into: subfolder in the dataset's folder, ending in ``/``.
    """
    pages = {n: (form / n).read_text(encoding="utf-8") for n in (CONFIG, INSTRUCTIONS)}
    texts = pages | {"tasks.json": json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"}
    return {f"{into}{name}": text for name, text in texts.items()}


def read_tasks(path: str, dropped: Counter[str]) -> list[Task]:
    """Read the tasks of a ``.json`` export, in the order of their annotations."""
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; expected a Label Studio export")
    try:
        rows = load_json(path)
    except UserError as error:
        raise UserError(f"{error}; export again as JSON") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path}: not a list of tasks; export from Label Studio as JSON")
    try:
        numbered = sorted(enumerate(rows, 1), key=lambda entry: _id(entry[1]))
        return [_task(f"{path}:{number}", row, dropped) for number, row in numbered]
    except (AttributeError, TypeError):
        raise BadInput([f"{path}: annotations: malformed; export again as JSON"]) from None


def _task(where: str, row: dict, dropped: Counter[str]) -> Task:
    if not isinstance(row.get("data"), dict):
        raise BadInput([f"{where}: data: field required; export again as JSON"])
    kept = []
    for entry in sorted(row.get("annotations") or [], key=_id):
        if entry.get("was_cancelled"):
            dropped["annotation that was skipped"] += 1
        else:
            kept.append(Answer(_annotator(entry.get("completed_by")), values_of(entry)))
    return Task(where, row["data"], kept)


def values_of(annotation: dict) -> dict[str, list]:
    """Map each control of an annotation to its values."""
    values: dict[str, list] = {}
    for item in annotation.get("result") or []:
        name = item.get("from_name")
        if isinstance(name, str):  # an arrow between two marks has no control
            values.setdefault(name, []).extend(_unwrapped(item.get("value")))
    return values


def _unwrapped(value: object) -> list:
    if isinstance(value, list):
        return [item for part in value for item in _unwrapped(part)]
    if isinstance(value, dict) and not value.keys() & MARK:
        return _unwrapped(next((value[name] for name in WRAPS if name in value), None))
    return [] if value is None else [value]


def _annotator(entry: object) -> str | None:
    if isinstance(entry, dict):
        entry = entry.get("email") or entry.get("id")
    return None if entry is None else str(entry)


def _id(row: dict) -> int:
    return row["id"] if isinstance(row.get("id"), int) else 0
