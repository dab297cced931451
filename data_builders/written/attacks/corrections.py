"""What is true of a person by the knowledge base, and the promise of a correction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from data_builders.kb.facts import POPULATION, Person, load_people
from data_builders.kb.graph import MONTHS
from data_builders.kb.language.statements import facts_of
from data_builders.kb.server import open_client
from data_builders.written.attacks.attacked import Attacked
from data_builders.written.attacks.clauses import inside, name_of, opened
from data_builders.written.attacks.times import (
    BORN,
    DATE,
    DIED,
    Date,
    dates_in,
    within,
    written_otherwise,
)
from data_builders.written.attacks.validity import (
    Asked,
    Fault,
    Promise,
    listed,
    rests_on,
    untold,
)
from data_builders.written.attacks.world import World
from data_builders.written.corruption.sources import Source
from data_builders.written.corruption.swap import VALUED, fitted
from data_builders.written.corruption.texts import denies

_SEXES = {"male": "female", "man": "woman", "female": "male", "woman": "man"}
_MEN = ("male", "man")


class Find(NamedTuple):
    """A value in a claim: its place, and the properties and forms whose it may be."""

    start: int
    end: int
    kinds: frozenset[tuple[str, str]]


@dataclass
class KnowledgeBase:
    """Corrects claims about people, and tells whether they are true.

    Args:
        endpoint: ``snapshot`` for the embedded file behind a local server, or the URL of a SPARQL
            service.
        population: SPARQL patterns that bind ``?person``.
        user_agent: who asks, for a remote endpoint.
        cache_dir: folder of kept answers.
    """

    endpoint: str = "snapshot"
    population: str = POPULATION
    user_agent: str | None = None
    cache_dir: Path | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """The knowledge base and whom of it."""
        return {"endpoint": self.endpoint, "population": self.population}

    def corrected(self, person: str, topic: str, text: str) -> str | None:
        """A false claim with the value that is false exchanged for a true one; none if none is."""
        who = self._people.get(person)
        if who is None:
            return None
        if dates_in(text):
            return _date_corrected(who, text)
        if who.sex and (found := _wrong_sex(who, text)):
            return text[: found.start()] + _SEXES[found[0]] + text[found.end() :]
        own = self._own(who)
        text = inside(text)
        for find in self._finds(topic, text):
            kinds = sorted(kind for kind in find.kinds if _fits(kind[0], text))
            if any(text[find.start : find.end] in own.get(kind, ()) for kind in kinds):
                continue
            for kind in kinds:
                for new in sorted(own.get(kind, ())):
                    made = opened(f"{_exchanged(text, find, new)}.")
                    if new not in text and self.is_true(person, topic, made):
                        return made
        return None

    def is_true(self, person: str, topic: str, text: str) -> bool:
        """Whether a claim holds a value, and every date, sex and value that it holds is true."""
        who = self._people.get(person)
        if who is None or denies(text):
            return False
        dates, wrong = dates_in(text), who.sex and _wrong_sex(who, text)
        own = self._own(who)
        text = inside(text)
        true = [
            any(text[find.start : find.end] in own.get(kind, ()) for kind in find.kinds)
            for find in self._finds(topic, text)
        ]
        right = _sexes(who, text)
        there = bool(dates or true or right)
        return there and all(true) and not wrong and all(_has(who, text, d) for d in dates)

    @cached_property
    def _people(self) -> dict[str, Person]:
        url = None if self.endpoint == "snapshot" else self.endpoint
        with open_client(url, user_agent=self.user_agent, cache_dir=self.cache_dir) as client:
            return {person.iri: person for person in load_people(client, self.population)}

    def _own(self, who: Person) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = {}
        for prop in VALUED:
            for fact in facts_of(who, prop):
                for one in (fact, *fact.coarser):
                    for form, text in one.slots.items():
                        found.setdefault((prop, form), set()).add(text)
        return found

    @cached_property
    def _forms(self) -> dict[str, set[tuple[str, str]]]:
        found: dict[str, set[tuple[str, str]]] = {}
        for who in self._people.values():
            for kind, texts in self._own(who).items():
                for text in texts:
                    if len(text) > 2:
                        found.setdefault(text, set()).add(kind)
        return found

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self._forms, key=lambda text: (-len(text), text))
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)")

    def _finds(self, topic: str, text: str) -> Iterator[Find]:
        own = [m.span() for m in re.finditer(re.escape(name_of(topic)), text)]
        text = inside(text)  # "The United States was her country."
        for match in self._pattern.finditer(text):
            if not any(a <= match.start() and match.end() <= b for a, b in own):
                kinds = {kind for kind in self._forms[match[0]] if _fits(kind[0], text)}
                if kinds:
                    yield Find(*match.span(), frozenset(kinds))


class Corrected(Promise):
    """What was true stays, and at least one false claim is true: a metric should rise.

    Args:
        knowledge: tells whether a claim that it corrected is true.
    """

    name = "truth, with falsehoods made true"

    def __init__(self, knowledge: KnowledgeBase | None):
        super().__init__()
        self.knowledge = knowledge

    def faults(self, source: Source, attacked: Attacked, world: World) -> Iterator[Fault]:
        """Claims that changed without becoming true, or a correction that is none."""
        told = {claim.id: claim for claim in attacked.claims}
        made = {one["claim"]: one for one in attacked.more.get("corrections") or ()}
        if not made:
            yield Fault("nothing is corrected")
        for claim in source.claims:
            new = told.get(claim.id)
            if new is None:
                yield Fault("a fact is lost", claim.text)
            elif claim.id not in made:
                if (new.text, new.label) != (claim.text, claim.label):
                    yield Fault("another claim changed", claim.text)
            elif (claim.label, new.label) != ("NS", "S") or new.text == claim.text:
                yield Fault("what was corrected was not false, or is not true", claim.text)
            elif not self._true(source, made[claim.id]["by"], new.text, rests_on(new), world):
                yield Fault("what is corrected is not known to be true", new.text)
        changed = [one["old"] for one in made.values()]
        if any(old in attacked.text for old in changed):
            yield Fault("what was false is still said", listed(changed))
        yield from untold(source, attacked)

    def asked(self, source: Source, attacked: Attacked, world: World) -> Iterator[Asked]:
        """That a false claim does not entail what is put in its place."""
        known = {claim.id: claim.text for claim in source.claims}
        for claim in attacked.claims:
            if claim.text != known.get(claim.id, claim.text):
                yield Asked(known[claim.id], claim.text, must=False)

    def _true(self, source: Source, by: str, text: str, bases: list[str], world: World) -> bool:
        if by in world.facts:
            fact, page = world.facts[by]
            own = {world.own(source).key, source.person or source.topic}
            true = page.key in own and fact.document != source.id and by in bases
            return true and not self.new_words(text, [fact.text], source.topic)
        person = source.person
        return bool(
            self.knowledge and person and self.knowledge.is_true(person, source.topic, text)
        )


def _fits(prop: str, text: str) -> bool:
    if BORN.search(text):
        return prop == "P19"
    if DIED.search(text):
        return prop == "P20"
    if re.search(r"(?i)\bname\b|\bcalled\b|appeared in print|went by", text):
        return prop == "alias"
    return prop not in ("P19", "P20", "alias")


def _date_of(who: Person, text: str) -> list[str]:
    if bool(BORN.search(text)) == bool(DIED.search(text)):
        return []
    return [value.label for value in who.facts.get("P569" if BORN.search(text) else "P570", ())]


def _has(who: Person, text: str, date: Date) -> bool:
    return any(within(known, date) for label in _date_of(who, text) for known in dates_in(label))


def _date_corrected(who: Person, text: str) -> str | None:
    labels, dates = _date_of(who, text), dates_in(text)
    if len(labels) != 1 or len(dates) != 1 or _has(who, text, dates[0]):
        return None
    own, false = dates_in(labels[0]), dates[0]
    if not own or own[0].year == false.year or (own[0].day is None and false.day is not None):
        return None
    new = labels[0] if false.day else str(own[0].year)
    if false.day is None and false.month is not None:
        return None
    american = re.search(rf"(?:{'|'.join(MONTHS)}) \d\d?, ", text)
    return DATE.sub(lambda _: written_otherwise(new) if american else new, text)


def _sexes(who: Person, text: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"\b(?:{'|'.join(_SEXES)})\b", text.replace(who.name, "")))


def _wrong_sex(who: Person, text: str) -> re.Match[str] | None:
    for found in re.finditer(rf"\b(?:{'|'.join(_SEXES)})\b", text):
        if (found[0] in _MEN) != (who.sex == "male"):
            return found
    return None


def _exchanged(text: str, find: Find, new: str) -> str:
    return fitted(text[: find.start], new) + new + text[find.end :]
