"""The projects' files that long texts come in, each by its published field names.

One function a format: a row to one or more :class:`~records.Document`, or to a prompt (a dict)
where the source has only questions; a text where there is nothing to score, which says why. Rows
with texts are read by ``records/formats``, as everywhere.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from records import BadInput, Claim, Document, Passage
from records.formats.documents import READERS

Format = Literal[
    *("factscore", "factreasoner", "safe", "veriscore", "factscore_predictions", "ambigbio"),
    *("halogen", "climate_fever", "averitec", "texts", "factor", "prompts", "longfact"),
]


@dataclass(frozen=True)
class Source:
    """One source of long texts.

    Attributes:
        name: folder of its records, and the beginning of their ids.
        format: whose field names its files have.
        files: files, or folders of files.
        sample: how many rows are drawn; all where it is null.
        per_topic: how many rows of each topic are drawn.
        topics: how many topics are drawn.
        topic: field that holds the topic, where it is not the format's own.
        where: values that a row's fields must have.
        generator: who wrote the texts, where the rows do not say; HALoGEN's files are named after
            theirs.
        kind: of the texts (info, repetitive, …), where the rows do not say.
        bins: JSON file of topics and the frequency bin of each.
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
class Row:
    """A row on its way: what it is, and where it stands, for ids and messages."""

    source: Source
    path: Path
    number: int
    fields: dict
    id: str
    seed: int
    dropped: Counter[str]
    bins: dict[str, str] = field(default_factory=dict)

    def topic(self, *names: str) -> str:
        """The topic: the source's field, else the first of ``names`` that holds a text."""
        own = (self.source.topic,) if self.source.topic else names
        for name in own:
            value = self.fields.get(name)
            if isinstance(value, str) and value.strip():
                return value.strip()
        raise BadInput([f"{self.path}:{self.number}: {own[0]}: field required"])


class Project(NamedTuple):
    """A project whose rows ``records`` reads as documents.

    Attributes:
        field: that every one of its rows has; null there is a text without claims.
        labels: whose the claims' labels are (``label_source``).
    """

    field: str | None
    labels: str | None


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


def documents(row: Row) -> list[Document] | str:
    """A row of one of the ``PROJECTS``: its texts, with claims and passages.

    A text without claims is left out, but for a project that has none (``texts``).
    """
    name = row.source.format
    project = PROJECTS[name]
    if project.field and project.field not in row.fields:
        raise KeyError(project.field)
    fields = {**row.fields, "topic": row.topic()} if row.source.topic else row.fields
    found = READERS[name](fields, row.number)
    many = found if isinstance(found, list) else [found] if found else []
    read = [_document(row, one, place, len(many)) for place, one in enumerate(many, 1)]
    kept = [one for one in read if one.claims or not project.field]
    empty = sum((one.model_extra or {}).get("contexts_left_out", 0) for one in read)
    row.dropped[f"{row.source.name}: context without text"] += empty
    return kept or "text without claims"


def _document(row: Row, found: dict, place: int, of: int) -> Document:
    source = row.source
    labelled = any(claim.get("label") for claim in found.get("claims") or [])
    own = {
        "id": row.id if of == 1 else f"{row.id}.{place}",
        "kind": found.get("kind") or source.kind,
        "generator": found.get("generator") or source.generator or _named(row),
        "prompt": row.fields.get("input") or row.fields.get("prompt"),
        "label_source": PROJECTS[source.format].labels if labelled else None,
    }
    if row.bins:
        own["bin"] = row.bins.get(found["topic"])
        if own["bin"] is None:
            row.dropped[f"{source.name}: bin of a topic that the map does not have"] += 1
    return Document.model_validate(found | own)


def _named(row: Row) -> str | None:
    stem, found, _ = row.path.name.rpartition("_biographies")
    return stem if found and row.source.format == "halogen" else None


def factor(row: Row) -> Document | str:
    """FACTOR (2307.06908), News and Expert: one true and three false ways to go on with a text.

    The text so far is the only passage. The order of the four is drawn, so that it tells nothing.
    """
    prefix = row.fields["full_prefix"]
    if not prefix.strip():
        return "row without a prefix"
    told = [(row.fields["completion"], "S")]
    told += [(row.fields[f"contradiction_{index}"], "NS") for index in range(3)]
    if len({text.strip() for text, _ in told}) < len(told) or not all(t.strip() for t, _ in told):
        return "row with completions that are equal or empty"
    true = told[0][0].strip()
    random.Random(f"{row.seed}:{prefix}{true}").shuffle(told)
    claims = [
        Claim(
            id=f"a{index}",
            text=text.strip(),
            source=text.strip(),
            label=label,
            contexts=["prefix"],
        )
        for index, (text, label) in enumerate(told)
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


def prompts(row: Row) -> dict | str:
    """Any table of questions: ``prompt``, ``question``, ``input`` or ``title``."""
    for name in ("prompt", "question", "input", "title"):
        text = row.fields.get(name)
        if isinstance(text, str):
            break
    else:
        raise BadInput([f"{row.path}:{row.number}: prompt: field required"])
    if not text.strip():
        return "row without a question"
    return {"id": row.id, "topic": row.topic("topic", name), "prompt": text.strip()}


def longfact(row: Row) -> dict | str:
    """LongFact (2403.18802): ``prompt``; the topic is the file's name behind its first ``_``."""
    if not row.fields["prompt"].strip():
        return "row without a question"
    topic = row.path.name.partition(".")[0].partition("_")[2] or row.path.stem
    return {"id": row.id, "topic": topic, "prompt": row.fields["prompt"].strip()}


FORMATS: dict[str, Callable[[Row], list[Document] | Document | dict | str]] = {
    **dict.fromkeys(PROJECTS, documents),
    "factor": factor,
    "prompts": prompts,
    "longfact": longfact,
}
