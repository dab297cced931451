"""``dfactscore_project``: the Label Studio project in which people judge biographies."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from data_builders.annotated.dfactscore.labelstudio import CONFIG, INSTRUCTIONS, to_task
from data_builders.dataset import Card, write_dataset
from data_builders.plan import Step
from eval.decompose.given import Given
from eval.experiments.dfactscore import read_texts
from eval.retrieve.given import Given as GivenPassages
from eval.stages import Decomposer, Retriever
from records import UserError
from records.abstention import responds


class DFActScoreProject:
    """A Label Studio project (config, tasks, instructions) to judge biographies by person.

    In Label Studio: make a project, paste ``label_config.xml`` under Labeling Setup → Code and
    ``instructions.html`` under Instructions, import ``tasks.json``. Export as JSON or JSON-MIN, and
    give the file to ``python -m data_builders dfactscore_labels``.

    Args:
        output: folder of the project.
        documents: generator (or prompt) to its file of texts; or files whose records name their
            ``generator`` themselves. As for ``eval experiment dfactscore``.
        decompose: texts to claims; the documents' own where null.
        retrieve: finds the people's pages; the documents' own passages where null.
        limit: only the texts of the first so many names, all generators' texts of each.

    Raises:
        UserError: no file, or a limit below 1.
    """

    def __init__(
        self,
        output: Path,
        documents: dict[str, str] | list[str],
        decompose: Decomposer | None = None,
        retrieve: Retriever | None = None,
        limit: int | None = None,
    ):
        if not documents:
            raise UserError("documents: no file; give files of texts")
        if limit is not None and limit < 1:
            raise UserError(f"limit: {limit}; give at least 1, or null for all names")
        self.output = Path(output)
        self.documents = documents
        self.decompose = decompose or Given()
        self.retrieve = retrieve or GivenPassages()
        self.limit = limit

    def plan(self) -> list[Step]:
        """The files that are read."""
        return [Step("documents", str(path), None, "texts") for path in self._paths()]

    def writes(self) -> list[str]:
        """Names of the files of records that a build writes."""
        return ["texts.jsonl"]

    def build(self) -> Path:
        """Write the project's folder; returns the manifest's path."""
        dropped: Counter[str] = Counter()
        every = read_texts(self.documents)
        names = list(dict.fromkeys(document.topic for document in every))[: self.limit]
        drawn = [document for document in every if document.topic in set(names)]
        documents = [document for document in drawn if responds(document)]
        dropped["text that does not respond"] += len(drawn) - len(documents)
        claims, passages = self.retrieve(
            documents,
            [[c for c in own if c.failed is None] for own in self.decompose(documents)],
        )
        tasks = []
        for document, own, found in zip(documents, claims, passages, strict=True):
            if own:
                tasks.append(to_task(document, own, found))
            dropped["text without a claim"] += not own
        return write_dataset(
            self.output,
            {"texts.jsonl": [{**task["data"]["record"], **task["data"]} for task in tasks]},
            declared=self.writes(),
            card=CARD,
            clients=[],
            dropped=dropped,
            config={
                "documents": [Path(path).name for path in self._paths()],
                "decompose": type(self.decompose).__name__,
                "retrieve": type(self.retrieve).__name__,
                "limit": self.limit,
            },
            seed=0,
            inputs=self._paths(),
            pages={
                "label_config.xml": CONFIG,
                "instructions.html": INSTRUCTIONS,
                "tasks.json": json.dumps(tasks, ensure_ascii=False, indent=1) + "\n",
            },
        )

    def _paths(self) -> list[str]:
        own = self.documents
        return list(own.values()) if isinstance(own, dict) else list(own)


CARD = Card(
    pretty_name="Annotation project: whose facts are these?",
    configs={"texts": {"test": "texts.jsonl"}},
    license="other",
    tags=("factuality", "entity-ambiguity", "annotation", "label-studio"),
    text="""\
A project for Label Studio in which people judge biographies of names that several people share
(2402.05629, section 4.2): they group the claims by person (Step 1), choose each person's page
(Step 2) and judge each claim by it (Step 3). Unlike in the paper they also say where only somebody
else's page supports a claim, so that FActScore comes of the same answers.

- `label_config.xml`: Labeling Setup → Code;
- `instructions.html`: Instructions;
- `tasks.json`: Import; each task's `data` has the text, its claims, the pages, and in `record` the
  text's id, topic and generator, which come back with the export;
- `texts.jsonl`: the same as a table.

Not labelled data. Let several people annotate each task. Export as JSON or JSON-MIN; `python -m
data_builders dfactscore_labels` makes the dataset of it. The licence is that of the texts.
""",
)
