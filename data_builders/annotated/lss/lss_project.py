"""``lss_project``: the Label Studio project in which people annotate LSS, from pairs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Literal

from pydantic import ValidationError

from data_builders.annotated.labelstudio_exports import project_pages
from data_builders.annotated.lss.lss_tasks import FORM, to_task
from data_builders.annotated.lss.sources import pair_of
from data_builders.builder import Builder, Made, Work
from data_builders.dataset import Card
from records import Annotation, BadInput, LssExample, iter_rows, read_records, to_bad_input


@dataclass
class LssProject(Builder):
    """A Label Studio project (config, tasks, instructions) to annotate the LSS of pairs.

    In Label Studio: make a project, paste ``label_config.xml`` under Labeling Setup → Code and
    ``instructions.html`` under Instructions, import ``tasks.json``. Export as JSON or JSON-MIN, and
    give the file to ``python -m data_builders lss``.

    Args:
        output: folder of the project.
        pairs: files with ``claim`` and ``reference``, e.g. of ``wafer``; or LSS records.
        existing: what becomes of annotations that the pairs have: left out, shown as suggestions
            (``predictions``), or put where people's answers are (``annotations``).
        limit: only the first so many pairs, for a trial.
    """

    pairs: list[str]
    existing: Literal["none", "predictions", "annotations"] = "none"

    seed: ClassVar[int] = 0  # nothing is drawn
    reads = ("pairs",)

    def files(self) -> dict[str, dict[str, str]]:
        return {"pairs": {"train": "pairs.jsonl"}}

    def make(self, work: Work) -> Made:
        rows = list(islice((row for path in self.pairs for row in _pairs(path)), self.limit))
        examples = _once(rows, work.dropped)
        files = {"pairs.jsonl": (_shown(example) for example in examples)}
        tasks = [to_task(example, self.existing) for example in examples]
        return Made(files, CARD, project_pages(FORM, tasks))


def _pairs(path: str) -> list[LssExample]:
    first = next(iter_rows(path), (1, {}))[1]
    if not {"claim", "reference"} <= first.keys() or "annotations" in first:
        return read_records(path, LssExample)
    found = []
    for number, row in iter_rows(path):
        for field in ("claim", "reference"):
            if not isinstance(row.get(field), str) or not row[field].strip():
                raise BadInput([f"{path}:{number}: {field}: field required"])
        own = {name: value for name, value in row.items() if value is not None}
        if "id" in own:
            own["id"] = str(own["id"])
        try:
            pair = LssExample.model_validate({**own, "annotations": [Annotation(lss="")]})
        except ValidationError as error:
            raise to_bad_input(f"{path}:{number}", error) from None
        found.append(pair.model_copy(update={"annotations": []}))  # nobody has judged it yet
    return found


def _once(rows: Sequence[LssExample], dropped: Counter[str]) -> list[LssExample]:
    found: dict[tuple[str, str], LssExample] = {}
    for row in rows:
        dropped["pair that is there already"] += pair_of(row) in found
        found.setdefault(pair_of(row), row)
    return list(found.values())


def _shown(example: LssExample) -> dict:
    own = example.model_dump(mode="json", exclude={"annotations", "keep"})
    return {**own, "annotations": len(example.annotations)}


CARD = Card(
    pretty_name="Annotation project: longest supported subsequences",
    license="other",
    tags=("factuality", "annotation", "label-studio"),
    text="""\
A project for Label Studio in which people mark what a reference supports of a claim (2308.12157,
section 4): the words that have to go (LSS), the rest as a good sentence (LSS*), a rating from 1 to
5, and two flags.

- `label_config.xml`: Labeling Setup → Code;
- `instructions.html`: Instructions;
- `tasks.json`: Import; each task's `data` has the claim, the reference, the claim's words, and in
  `record` the other fields of the pair, which come back with the export;
- `pairs.jsonl`: the same pairs as a table.

Not labelled data. Let several people annotate each task. Export as JSON or JSON-MIN; `python -m
data_builders lss` makes the dataset of it. The licence is that of the texts.
""",
)
