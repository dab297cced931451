"""``lss_project``: a Label Studio project to annotate the LSS of pairs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from pydantic import ValidationError

from data_builders.annotated.labelstudio_exports import project_pages
from data_builders.annotated.lss.lss_tasks import FORM, to_task
from data_builders.builder import Builder, Made, Work
from data_builders.dataset import read_card
from eval.metrics.lss_agreement import pair_of
from records import Annotation, BadInput, LssExample, iter_rows, read_records, to_bad_input


@dataclass
class LssProject(Builder):
    """A Label Studio project (config, tasks, instructions) to annotate the LSS of pairs.

    In Label Studio: create a project, paste ``label_config.xml`` under Labeling Setup → Code and
    ``instructions.html`` under Instructions, import ``tasks.json``. Export as JSON and
    pass the file to ``python -m data_builders lss``.

    Args:
        output: folder of the project.
        pairs: files with ``claim`` and ``reference``, e.g. of ``wafer``, or LSS records.
        existing: existing annotations are excluded (``none``), imported as suggestions
            (``predictions``) or as annotations (``annotations``).
        limit: use only the first N pairs, for a trial.
        seed: has no effect: nothing is random.
    """

    pairs: list[str]
    existing: Literal["none", "predictions", "annotations"] = "none"

    reads = ("pairs",)

    def files(self) -> dict[str, dict[str, str]]:
        return {"pairs": {"train": "pairs.jsonl"}}

    def make(self, work: Work) -> Made:
        rows = list(islice((row for path in self.pairs for row in _pairs(path)), self.limit))
        examples = _deduplicate(rows, work.dropped)
        files = {"pairs.jsonl": (_table_row(example) for example in examples)}
        tasks = [to_task(example, self.existing) for example in examples]
        return Made(files, read_card("lss_project"), project_pages(FORM, tasks))


def _pairs(path: str) -> list[LssExample]:
    first = next(iter_rows(path), (1, {}))[1]
    if not {"claim", "reference"} <= first.keys() or "annotations" in first:
        return read_records(path, LssExample)
    pairs = []
    for number, row in iter_rows(path):
        for field in ("claim", "reference"):
            if not isinstance(row.get(field), str) or not row[field].strip():
                raise BadInput([f"{path}:{number}: {field}: field required"])
        fields = {name: value for name, value in row.items() if value is not None}
        if "id" in fields:
            fields["id"] = str(fields["id"])
        try:
            pair = LssExample.model_validate({**fields, "annotations": [Annotation(lss="")]})
        except ValidationError as error:
            raise to_bad_input(f"{path}:{number}", error) from None
        pairs.append(pair.model_copy(update={"annotations": []}))
    return pairs


def _deduplicate(rows: Sequence[LssExample], dropped: Counter[str]) -> list[LssExample]:
    unique: dict[tuple[str, str], LssExample] = {}
    for row in rows:
        dropped["duplicate pair"] += pair_of(row) in unique
        unique.setdefault(pair_of(row), row)
    return list(unique.values())


def _table_row(example: LssExample) -> dict:
    fields = example.model_dump(mode="json", exclude={"annotations", "keep"})
    return {**fields, "annotations": len(example.annotations)}
