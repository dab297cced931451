"""Readers of the projects' files of long texts, by their published field names.

There is one function per format. It converts a row to :class:`~records.Document` records, to a
prompt (a dict) if the source has only questions, or to a reason (a string) if the row is skipped.
Rows with texts are parsed by ``records/formats``.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from records import BadInput, Claim, Document, Passage
from records.formats.declared import formats

Format = Literal[
    "factscore",
    "factreasoner",
    "safe",
    "veriscore",
    "factscore_predictions",
    "ambigbio",
    "halogen",
    "climate_fever",
    "averitec",
    "texts",
    "factor",
    "prompts",
    "longfact",
]


@dataclass(frozen=True)
class Source:
    """One source of long texts.

    Attributes:
        name: folder of its records, and prefix of their ids.
        format: project whose format the files have.
        files: files, or folders of files.
        sample: number of rows to draw; null uses all.
        per_topic: number of rows to draw per topic.
        topics: number of topics to draw.
        topic: field with the topic, if it differs from the format's.
        where: required values of a row's fields.
        generator: model that wrote the texts, if the rows do not name it. Default for HALoGEN: from
            the file name.
        kind: kind of text (info, repetitive, …), if the rows do not name it.
        bins: JSON file that maps topics to frequency bins.
    """

    name: str
    format: Format
    files: list[str]
    sample: int | None = None
    per_topic: int | None = None
    topics: int | None = None
    topic: str | None = None
    where: dict[str, str] = field(default_factory=dict)
    generator: str | None = None
    kind: str | None = "normal"
    bins: str | None = None


@dataclass(frozen=True)
class SourceRow:
    source: Source
    path: Path
    number: int
    fields: dict
    id: str
    seed: int
    dropped: Counter[str]
    bins: dict[str, str] = field(default_factory=dict)

    def topic(self, *names: str) -> str:
        """Return the topic: the source's ``topic`` field, else the first non-empty of ``names``."""
        fields = (self.source.topic,) if self.source.topic else names
        for name in fields:
            value = self.fields.get(name)
            if isinstance(value, str) and value.strip():
                return value.strip()
        raise BadInput([f"{self.path}:{self.number}: {fields[0]}: field required"])


class Project(NamedTuple):
    """A project whose rows ``records`` reads as documents."""

    field: str | None  # a field of all its rows; null in a row is a text without claims
    labels: str | None  # ``label_source`` of its claims


PROJECTS = {
    "factscore": Project("annotations", "human"),
    "factreasoner": Project("atoms", "file"),
    "safe": Project("side1_posthoc_eval_data", "safe"),
    "veriscore": Project("response", "veriscore"),
    "factscore_predictions": Project("facts", "factscore"),
    "ambigbio": Project("atoms_independent", "factscore"),
    "halogen": Project("atoms", "halogen"),
    "climate_fever": Project("evidences", "human"),
    "averitec": Project("questions", "human"),
    "texts": Project(None, None),
}


def documents(row: SourceRow) -> list[Document] | str:
    """Read a row of one of the ``PROJECTS``: its texts, with claims and passages.

    Texts without claims are skipped, except for ``texts``, which has no claims.
    """
    name = row.source.format
    project = PROJECTS[name]
    if project.field and project.field not in row.fields:
        raise KeyError(project.field)
    fields = {**row.fields, "topic": row.topic()} if row.source.topic else row.fields
    texts = formats()[name].documents(fields, row.number)
    read = [_document(row, text, number, len(texts)) for number, text in enumerate(texts, 1)]
    kept = [document for document in read if document.claims or not project.field]
    empty = sum(len(text.get("passages") or ()) for text in texts)
    empty -= sum(len(document.passages or ()) for document in read)
    row.dropped[f"{row.source.name}: context without text"] += empty
    return kept or "text without claims"


def _document(row: SourceRow, parsed: dict, number: int, total: int) -> Document:
    source = row.source
    has_labels = any(claim.get("label") for claim in parsed.get("claims") or [])
    fields = {
        "id": row.id if total == 1 else f"{row.id}.{number}",
        "kind": parsed.get("kind") or source.kind,
        "generator": parsed.get("generator") or source.generator or _generator_of_file(row),
        "prompt": row.fields.get("input") or row.fields.get("prompt"),
        "label_source": PROJECTS[source.format].labels if has_labels else None,
    }
    if row.bins:
        fields["bin"] = row.bins.get(parsed["topic"])
        if fields["bin"] is None:
            row.dropped[f"{source.name}: bin of a topic that the map does not have"] += 1
    return Document.model_validate(parsed | fields)


def _generator_of_file(row: SourceRow) -> str | None:
    stem, separator, _ = row.path.name.rpartition("_biographies")
    return stem if separator and row.source.format == "halogen" else None


def factor(row: SourceRow) -> Document | str:
    """FACTOR (2307.06908), News and Expert: one true and three false completions of a text.

    The prefix is the only passage. The four completions are in random order.
    """
    prefix = row.fields["full_prefix"]
    if not prefix.strip():
        return "row without a prefix"
    completions = [(row.fields["completion"], "S")]
    completions += [(row.fields[f"contradiction_{index}"], "NS") for index in range(3)]
    texts = {text.strip() for text, _ in completions}
    if len(texts) < len(completions) or "" in texts:
        return "row with completions that are equal or empty"
    true = completions[0][0].strip()
    random.Random(f"{row.seed}:{prefix}{true}").shuffle(completions)
    claims = [
        Claim(
            id=f"a{index}", text=text.strip(), source=text.strip(), label=label, contexts=["prefix"]
        )
        for index, (text, label) in enumerate(completions)
    ]
    glue = "" if prefix[-1].isspace() else " "
    return Document(
        id=row.id,
        topic=f"{row.source.name} {row.fields['doc_id']}",
        text=f"{prefix}{glue}{true}",
        claims=claims,
        passages=[Passage(id="prefix", text=prefix, source="prefix")],
        kind="normal",
        label_source="factor",
    )


def prompts(row: SourceRow) -> dict | str:
    """Any table of questions: ``prompt``, ``question``, ``input`` or ``title``.

    ``group`` is the source's topic field, so that every prompt is a topic of its own in
    ``generations``.
    """
    for name in ("prompt", "question", "input", "title"):
        text = row.fields.get(name)
        if isinstance(text, str):
            break
    else:
        raise BadInput([f"{row.path}:{row.number}: prompt: field required"])
    if not text.strip():
        return "row without a question"
    return {"id": row.id, "group": row.topic("topic", name), "prompt": text.strip()}


def longfact(row: SourceRow) -> dict | str:
    """LongFact (2403.18802): ``prompt``; the group is the file name after its first ``_``."""
    if not row.fields["prompt"].strip():
        return "row without a question"
    topic = row.path.name.partition(".")[0].partition("_")[2] or row.path.stem
    return {"id": row.id, "group": topic, "prompt": row.fields["prompt"].strip()}


FORMATS: dict[str, Callable[[SourceRow], list[Document] | Document | dict | str]] = {
    **dict.fromkeys(PROJECTS, documents),
    "factor": factor,
    "prompts": prompts,
    "longfact": longfact,
}
