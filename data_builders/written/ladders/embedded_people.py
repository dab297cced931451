"""The people of ``profiles.jsonl``, none of whom is in the training data, as a world."""

import random
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from components.english import MONTHS
from data_builders.kb.facts import DATES, Person
from data_builders.kb.kb_pairs.person_texts import page_sentence
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import Fact, values_of
from data_builders.kb.language.wording import Voice, capital, slots_of, speak
from data_builders.splits import SPLITS
from data_builders.written.claims.clauses import name_of
from data_builders.written.claims.knowledge_base import KnownPeople
from data_builders.written.claims.times import Date, dates_in
from data_builders.written.ladders.statement_world import (
    FalseVersion,
    Statement,
    StatementTopic,
    StatementWorld,
)
from records import Document, Passage, UserError, read_records

K = 10
OTHER_VALUES = 4  # false versions of a statement with values of other people
NEAR_YEARS = (-10, -3, -1, 1, 3, 10)


class EmbeddedPeople(StatementWorld):
    """People of a knowledge base with at least ten facts, and all these facts.

    Args:
        profiles: documents whose ``person`` is a topic; these people are not in the training data.
        pages: passages with one page per ``person``.
        endpoint: ``snapshot`` or the URL of a SPARQL service, as for ``kb_pairs``.
    """

    k = K

    def __init__(
        self,
        profiles: str = "data/kb/profiles.jsonl",
        pages: str = "data/kb/passages.jsonl",
        endpoint: str = "snapshot",
    ):
        self.profiles, self.pages, self.endpoint = profiles, pages, endpoint
        self.files = [profiles, pages]

    @property
    def identity(self) -> dict[str, Any]:
        return {"world": type(self).__name__, "endpoint": self.endpoint}

    def topics(self, seed: int) -> list[StatementTopic]:
        people = KnownPeople(self.endpoint).load()
        iris = {(d.model_extra or {}).get("person") for d in read_records(self.profiles, Document)}
        chosen = [person for person in people if person.iri in iris]
        if not chosen:
            raise UserError(f"{self.profiles}: no `person` of the knowledge base {self.endpoint}")
        worlds = [World(chosen, people, split) for split in SPLITS]
        pages = {(p.model_extra or {}).get("person"): p for p in read_records(self.pages, Passage)}
        topics: dict[str, StatementTopic] = {}
        for person in chosen:
            rng = random.Random(f"{seed}:statements:{person.iri}")
            page = pages.get(person.iri)
            statements = list(_statements(rng, worlds, person, page.text if page else ""))
            if sum(bool(statement.false) for statement in statements) >= K:
                topic = _topic(person, statements, page)
                topics.setdefault(topic.name, topic)
        return list(topics.values())


def _topic(person: Person, statements: list[Statement], page: Passage | None) -> StatementTopic:
    return StatementTopic(
        id=person.iri.rsplit("/", 1)[-1],
        # The title is unique, unlike the name.
        name=person.title if name_of(person.title) == person.name else person.name,
        statements=tuple(statements),
        pages=(page,) if page else (),
        pronoun={"male": "he", "female": "she"}.get(person.sex),
        fields={"group": person.group, "bin": person.frequency_name, "person": person.iri},
    )


def _statements(
    rng: random.Random, worlds: list[World], person: Person, page: str
) -> Iterator[Statement]:
    facts = [
        (world, fact)
        for world in worlds
        for of_property in world.known.get(person.iri, {}).values()
        for fact in of_property
        if fact.key in wordings() and not any(fact in other.coarser for other in of_property)
    ]
    # The sex is a fact of last resort: it has one other value.
    without_sex = [pair for pair in facts if pair[1].prop != "P21"]
    values: set[Fact] = set()  # of false versions; each is used for one statement
    for world, fact in without_sex if len(without_sex) >= K else facts:
        templates = [t for t in wordings()[fact.key] if slots_of(t) <= fact.slots.keys()]
        rng.shuffle(templates)
        first, *reworded = [_say(template, person, fact.slots) for template in templates]
        drawn = (world.other_value(rng, person, fact) for _ in range(OTHER_VALUES))
        other_facts = [f for f in dict.fromkeys(drawn) if f is not None and f not in values]
        values.update(other_facts)
        false = tuple(_false_versions(rng, person, fact, other_facts, templates))
        quoted = page_sentence(person, fact, page)
        yield Statement(str(fact), first, tuple(reworded), false, quoted)


def _false_versions(
    rng: random.Random, person: Person, fact: Fact, other_facts: list[Fact], templates: list[str]
) -> Iterator[FalseVersion]:
    slots = [other.slots for other in other_facts]
    is_date = fact.prop in DATES
    if is_date and len(values_of(person, fact.prop)) == 1:
        slots += _near(fact)
    for values in slots:
        template = rng.choice([t for t in templates if slots_of(t) <= values.keys()])
        text, true = (_say(template, person, some) for some in (values, fact.slots))
        yield FalseVersion(text, "number" if is_date else "name", true)


def _near(fact: Fact) -> list[dict[str, str]]:
    """Dates that differ from a date by some years, or by a day."""
    (day,) = dates_in(fact.value) or [Date(int(fact.value))]
    years = [day.year + years for years in NEAR_YEARS]
    if fact.aspect != "day":
        return [{"year": str(year)} for year in years]
    # No date is after the 28th, so that it exists in all years.
    dates = [date(year, day.month, min(day.day, 28)) for year in years]
    dates += [date(day.year, day.month, day.day - 1 if day.day > 1 else 2)]
    return [{"v": f"{d.day} {MONTHS[d.month - 1]} {d.year}"} for d in dates]


def _say(template: str, person: Person, slots: dict[str, str]) -> str:
    return capital(speak(template, person, Voice("full", True), slots))


@cache
def wordings() -> dict[str, list[str]]:
    """Templates by property, each of which starts with the name."""
    text = (Path(__file__).parent / "wording.yaml").read_text(encoding="utf-8")
    return {key: lines.splitlines() for key, lines in yaml.safe_load(text).items()}
