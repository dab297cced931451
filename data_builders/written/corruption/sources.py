"""What a corrupted document is made of: supported claims, and sentences to append."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from components.sentences import split_sentences
from data_builders.kb.facts import Person
from data_builders.kb.language.wording import Voice, bank, bleached
from records import Document, Generation, UserError, iter_rows, read_records

# Names of the kinds: ours, and those of `kb_pairs`; the released files name none.
KINDS = {"info": {"info", "uninformative", None}, "repetitive": {"repetitive", None}}


@dataclass(frozen=True)
class Source:
    """A document's supported claims.

    Attributes:
        id: unique among all files.
        topic, group, bin, generator: as its file has them.
        claims: the texts of the supported claims, in order.
        person: IRI of the topic in the knowledge base, where the row says so.
        labelled_by: who says that they are supported.
    """

    id: str
    topic: str
    claims: tuple[str, ...]
    group: str | None
    bin: str | None
    generator: str | None
    person: str | None
    labelled_by: str


class Padding(NamedTuple):
    """A sentence that is appended, and its truth where its record knows it."""

    text: str
    true: bool | None = None


def read_sources(paths: Sequence[str], kind: str | None, dropped: Counter[str]) -> list[Source]:
    """The supported claims of all documents, in the files' order.

    Args:
        paths: documents with ``claims``, or generations whose ``sentences`` have a truth.
        kind: only rows of this kind; ``None`` for all.
        dropped: counts claims that are not supported and documents without supported ones.

    Raises:
        UserError: a file without labelled claims, or two files of the same name.
    """
    found: list[Source] = []
    stems = [Path(path).stem for path in paths]
    if len(set(stems)) < len(stems):
        raise UserError("documents: two files have the same name, which is part of the ids")
    for path in paths:
        own = [one for one in _rows(path) if kind is None or one[1].kind == kind]
        if not own:
            raise UserError(f"{path}: no row of source_kind {kind}; leave it out or give another")
        if all(not claims for *_, claims in own):
            raise UserError(f"{path}: no labelled claims; give `claims` with labels S and NS")
        for name, row, claims in own:
            texts = tuple(text for text, supported in claims if supported)
            dropped["claim that is not supported"] += len(claims) - len(texts)
            if not texts:
                dropped["document without a supported claim"] += 1
                continue
            extra = row.model_extra or {}
            found.append(
                Source(
                    id=f"{Path(path).stem}/{name}",
                    topic=row.topic,
                    claims=tuple(dict.fromkeys(texts)),
                    group=row.group,
                    bin=row.bin,
                    generator=row.generator or Path(path).stem,
                    person=extra.get("person"),
                    labelled_by="knowledge base" if isinstance(row, Generation) else "human",
                )
            )
    return found


def _rows(path: str) -> Iterator[tuple[str, Document | Generation, list[tuple[str, bool]]]]:
    """Each row with its id and its (claim, supported) pairs."""
    _, first = next(iter_rows(path), (0, {}))
    if "sentences" in first and "claims" not in first:
        for number, row in enumerate(read_records(path, Generation), 1):
            yield f"g{number}", row, [(s.text, s.true) for s in row.sentences or []]
        return
    for row in read_records(path, Document):
        yield row.id, row, [(c.text, c.label == "S") for c in row.claims or [] if c.label]


def told_sentences(paths: Sequence[str], kind: str) -> dict[str, list[Padding]]:
    """Topic to the sentences of its generations of a kind.

    Raises:
        UserError: no generation of the kind.
    """
    found: dict[str, list[Padding]] = {}
    for path in paths:
        for row in read_records(path, Generation):
            if row.kind in KINDS[kind]:
                own = found.setdefault(row.topic, [])
                if row.sentences:
                    own.extend(Padding(s.text, s.true) for s in row.sentences)
                else:
                    own.extend(Padding(text) for text in split_sentences(row.text))
    if not found:
        raise UserError(f"adversarial: the files have no generation of kind {kind}")
    return found


def bleached_sentences(topic: str, number: int, seed: int) -> list[Padding]:
    """Statements that are true of anyone, said of the topic, from the wordings of ``kb_pairs``."""
    rng = random.Random(f"{seed}:bleached:{topic}")
    person = Person(
        iri=topic, name=topic, title=topic, aliases=(), sex="", facts={}, continent=None,
        group="D", frequency=0,
    )  # fmt: skip
    templates = rng.sample(bank("bleached")["train"], 2 * number)
    voice = Voice("full", past=True)
    told = [bleached(rng, "train", person, voice, template) for template in templates]
    return [Padding(text) for text in dict.fromkeys(told)][:number]
