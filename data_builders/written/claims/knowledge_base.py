"""What is true of a person by the knowledge base."""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from data_builders.kb.facts import POPULATION, PROPERTIES, Person, load_people
from data_builders.kb.graph import MONTHS
from data_builders.kb.language.statements import facts_of
from data_builders.kb.language.wording import with_article
from data_builders.kb.server import open_client
from data_builders.written.claims.clauses import capitalise, has_negation, mid_sentence, name_of
from data_builders.written.claims.times import (
    BORN,
    DATE,
    DIED,
    Date,
    dates_in,
    is_within,
    swap_date_format,
)

# Dates of the knowledge base are found as years and months instead, which other dates have too.
VALUED = (*(prop for prop in PROPERTIES if prop not in ("P569", "P570")), "alias")


ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)


def fit_article(before: str, new: str) -> str:
    """What stands before a value, with the article at its end, if any, that fits a new one."""
    article = ARTICLE.search(before)
    if article is None:
        return before
    fitting = with_article(new).split()[0]
    fitting = fitting.capitalize() if article[1][0].isupper() else fitting
    return f"{before[: article.start()]}{fitting} "


_SEXES = {"male": "female", "man": "woman", "female": "male", "woman": "man"}
_SEX = re.compile(rf"\b(?:{'|'.join(_SEXES)})\b")


class Find(NamedTuple):
    """A value in a claim: its place, and the properties and forms whose it may be."""

    start: int
    end: int
    kinds: frozenset[tuple[str, str]]


class KnownPeople:
    """The people of a Wikidata-shaped knowledge base, loaded when they are first needed.

    Args:
        endpoint: ``snapshot`` for the embedded file behind a local server, or the URL of a SPARQL
            service.
        population: SPARQL patterns that bind ``?person``.
        user_agent: who asks, for a remote endpoint.
        cache_dir: folder of kept answers.
    """

    def __init__(
        self,
        endpoint: str = "snapshot",
        population: str = POPULATION,
        user_agent: str | None = None,
        cache_dir: Path | None = None,
    ):
        self.endpoint = endpoint
        self.population = population
        self.user_agent = user_agent
        self.cache_dir = cache_dir

    def load(self) -> list[Person]:
        """The people and their facts."""
        url = None if self.endpoint == "snapshot" else self.endpoint
        with open_client(url, user_agent=self.user_agent, cache_dir=self.cache_dir) as client:
            return load_people(client, self.population)


class KnowledgeBase(KnownPeople):
    """Corrects claims about people, and tells whether they are true."""

    @property
    def identity(self) -> dict[str, Any]:
        """The knowledge base and whom of it."""
        return {"endpoint": self.endpoint, "population": self.population}

    def correct_claim(self, person: str, topic: str, text: str) -> str | None:
        """A false claim with the value that is false exchanged for a true one; none if none is."""
        who = self._people.get(person)
        if who is None:
            return None
        if dates_in(text):
            return _date_corrected(who, text)
        if who.sex and (found := _wrong_sex(who, text)):
            return text[: found.start()] + _SEXES[found[0]] + text[found.end() :]
        own = self._own(who)
        text = mid_sentence(text)
        for find in self._finds(topic, text):
            kinds = sorted(kind for kind in find.kinds if _fits(kind[0], text))
            if any(text[find.start : find.end] in own.get(kind, ()) for kind in kinds):
                continue
            for kind in kinds:
                for new in sorted(own.get(kind, ())):
                    before, after = text[: find.start], text[find.end :]
                    made = capitalise(f"{fit_article(before, new)}{new}{after}.")
                    if new not in text and self.is_true(person, topic, made):
                        return made
        return None

    def is_true(self, person: str, topic: str, text: str) -> bool:
        """Whether a claim holds a value, and every date, sex and value that it holds is true."""
        who = self._people.get(person)
        if who is None or has_negation(text):
            return False
        dates, wrong = dates_in(text), who.sex and _wrong_sex(who, text)
        own = self._own(who)
        text = mid_sentence(text)
        true = [
            any(text[find.start : find.end] in own.get(kind, ()) for kind in find.kinds)
            for find in self._finds(topic, text)
        ]
        right = _SEX.search(text.replace(who.name, ""))
        there = bool(dates or true or right)
        return there and all(true) and not wrong and all(_has(who, text, d) for d in dates)

    @cached_property
    def _people(self) -> dict[str, Person]:
        return {person.iri: person for person in self.load()}

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
        for match in self._pattern.finditer(text):
            if not any(a <= match.start() and match.end() <= b for a, b in own):
                kinds = {kind for kind in self._forms[match[0]] if _fits(kind[0], text)}
                if kinds:
                    yield Find(*match.span(), frozenset(kinds))


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
    return any(is_within(known, date) for label in _date_of(who, text) for known in dates_in(label))


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
    return DATE.sub(lambda _: swap_date_format(new) if american else new, text)


def _wrong_sex(who: Person, text: str) -> re.Match[str] | None:
    wrong = (m for m in _SEX.finditer(text) if (m[0] in ("male", "man")) != (who.sex == "male"))
    return next(wrong, None)
