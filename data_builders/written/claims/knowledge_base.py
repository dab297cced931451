"""Check and correct claims about people with a knowledge base."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from components.english import MONTH, has_negation
from data_builders.kb.facts import POPULATION, PROPERTIES, Person, load_people
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import Fact, facts_of
from data_builders.kb.language.wording import Voice, with_article
from data_builders.kb.server import open_client
from data_builders.splits import SPLITS
from data_builders.written.claims.clauses import capitalise, mid_sentence, name_of
from data_builders.written.claims.times import (
    BORN,
    DATE,
    DIED,
    Date,
    dates_in,
    is_within,
    swap_date_format,
)

# Without dates of birth and death, which are compared by ``dates_in`` instead.
VALUED = (*(prop for prop in PROPERTIES if prop not in ("P569", "P570")), "alias")
ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)

# Key facts of a person: occupation, date and place of birth. All other facts are minor.
KEY_PROPERTIES = frozenset({"P106", "P569", "P19"})
KNOWN_FACT = "kb:"  # start of the id of a fact, before its property and value


def fit_article(before: str, new: str) -> str:
    """Change the article at the end of the text before a value to fit a new value."""
    article = ARTICLE.search(before)
    if article is None:
        return before
    fitting = with_article(new).split()[0]
    fitting = fitting.capitalize() if article[1][0].isupper() else fitting
    return f"{before[: article.start()]}{fitting} "


_SEXES = {"male": "female", "man": "woman", "female": "male", "woman": "man"}
_SEX = re.compile(rf"\b(?:{'|'.join(_SEXES)})\b")


class ValueMatch(NamedTuple):
    """A value in a claim: its span, and its possible properties and forms."""

    start: int
    end: int
    kinds: frozenset[tuple[str, str]]


class Statement(NamedTuple):
    """A sentence that states one fact of a person."""

    text: str
    fact: str  # its id, for example ``kb:P166=Nobel Prize``
    is_key: bool
    is_rare: bool  # at most one person of the knowledge base has it


class KnownPeople:
    """The people of a Wikidata-shaped knowledge base, loaded when they are first needed.

    Args:
        endpoint: ``snapshot`` for the embedded file, or the URL of a SPARQL service.
        population: SPARQL patterns that bind ``?person``.
        user_agent: contact sent to a remote endpoint.
        cache_dir: folder of cached answers.
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

    @property
    def identity(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "population": self.population}

    def load(self) -> list[Person]:
        url = None if self.endpoint == "snapshot" else self.endpoint
        with open_client(url, user_agent=self.user_agent, cache_dir=self.cache_dir) as client:
            return load_people(client, self.population)


class KnowledgeBase(KnownPeople):
    """Checks and corrects claims about people."""

    def correct_claim(self, person: str, topic: str, text: str) -> str | None:
        """Replace the false value of a claim by a true one; ``None`` if no value is false."""
        entry = self._people.get(person)
        if entry is None:
            return None
        if dates_in(text):
            return _correct_date(entry, text)
        if entry.sex and (wrong := _wrong_sex(entry, text)):
            return text[: wrong.start()] + _SEXES[wrong[0]] + text[wrong.end() :]
        values = self._values(entry)
        text = mid_sentence(text)
        for match in self._matches(topic, text):
            kinds = sorted(kind for kind in match.kinds if _fits(kind[0], text))
            if any(text[match.start : match.end] in values.get(kind, ()) for kind in kinds):
                continue
            for kind in kinds:
                for new in sorted(values.get(kind, ())):
                    before, after = text[: match.start], text[match.end :]
                    corrected = capitalise(f"{fit_article(before, new)}{new}{after}.")
                    if new not in text and self.is_true(person, topic, corrected):
                        return corrected
        return None

    def is_true(self, person: str, topic: str, text: str) -> bool:
        """Return whether a claim has a value and all its dates, sexes and values are true."""
        entry = self._people.get(person)
        if entry is None or has_negation(text):
            return False
        dates, wrong = dates_in(text), entry.sex and _wrong_sex(entry, text)
        values = self._values(entry)
        text = mid_sentence(text)
        true = [
            any(text[match.start : match.end] in values.get(kind, ()) for kind in match.kinds)
            for match in self._matches(topic, text)
        ]
        right = _SEX.search(text.replace(entry.name, ""))
        if wrong or not (dates or true or right):
            return False
        return all(true) and all(_has_date(entry, text, date) for date in dates)

    def states_key_fact(self, topic: str, text: str) -> bool:
        """Return whether a claim states an occupation, a date or a place of birth."""
        if dates_in(text):
            return BORN.search(text) is not None
        matches = self._matches(topic, mid_sentence(text))
        return any(prop in KEY_PROPERTIES for match in matches for prop, _ in match.kinds)

    def true_statements(self, person: str, rng: random.Random) -> list[Statement]:
        """State each fact of a person, only the most specific of those that entail each other."""
        entry = self._people.get(person)
        return [self._state(*pair, entry, rng) for pair in self._finest(entry)] if entry else []

    def false_key_facts(self, person: str, number: int, rng: random.Random) -> list[Statement]:
        """State key facts that are false of a person, each once; a date and a place at most."""
        entry = self._people[person]
        keys = [(w, f) for w, f in self._finest(entry) if f.prop in KEY_PROPERTIES]
        keys += [(w, f) for w, f in keys if not f.functional] * (5 * number)
        statements: dict[str, Statement] = {}
        for world, fact in keys:
            other = world.other_value(rng, entry, fact)
            if other is not None and len(statements) < number:
                statement = self._state(world, other, entry, rng)
                statements.setdefault(statement.fact, statement)
        return list(statements.values())

    def _finest(self, person: Person) -> list[tuple[World, Fact]]:
        facts = [(world, fact) for world in self._worlds for fact in world.facts(person)]
        return [(w, f) for w, f in facts if not any(f in other.coarser for _, other in facts)]

    def _state(self, world: World, fact: Fact, person: Person, rng: random.Random) -> Statement:
        text = world.say(rng, person, fact, Voice("full", True))
        is_key, is_rare = fact.prop in KEY_PROPERTIES, self._frequencies[fact] <= 1
        return Statement(text, f"{KNOWN_FACT}{fact}", is_key, is_rare)

    @cached_property
    def _worlds(self) -> list[World]:
        people = list(self._people.values())
        return [World(people, people, split) for split in SPLITS]

    @cached_property
    def _frequencies(self) -> Counter[Fact]:
        people = self._people.values()
        return Counter(f for world in self._worlds for p in people for f in set(world.facts(p)))

    @cached_property
    def _people(self) -> dict[str, Person]:
        return {person.iri: person for person in self.load()}

    def _values(self, person: Person) -> dict[tuple[str, str], set[str]]:
        values: dict[tuple[str, str], set[str]] = {}
        for prop in VALUED:
            for fact in facts_of(person, prop):
                for version in (fact, *fact.coarser):
                    for form, text in version.slots.items():
                        values.setdefault((prop, form), set()).add(text)
        return values

    @cached_property
    def _forms(self) -> dict[str, set[tuple[str, str]]]:
        forms: dict[str, set[tuple[str, str]]] = {}
        for person in self._people.values():
            for kind, texts in self._values(person).items():
                for text in texts:
                    if len(text) > 2:
                        forms.setdefault(text, set()).add(kind)
        return forms

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self._forms, key=lambda text: (-len(text), text))
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)")

    def _matches(self, topic: str, text: str) -> Iterator[ValueMatch]:
        name_spans = [m.span() for m in re.finditer(re.escape(name_of(topic)), text)]
        for match in self._pattern.finditer(text):
            if not any(a <= match.start() and match.end() <= b for a, b in name_spans):
                kinds = {kind for kind in self._forms[match[0]] if _fits(kind[0], text)}
                if kinds:
                    yield ValueMatch(*match.span(), frozenset(kinds))


def _fits(prop: str, text: str) -> bool:
    if BORN.search(text):
        return prop == "P19"
    if DIED.search(text):
        return prop == "P20"
    if re.search(r"(?i)\bname\b|\bcalled\b|appeared in print|went by", text):
        return prop == "alias"
    return prop not in ("P19", "P20", "alias")


def _known_dates(person: Person, text: str) -> list[str]:
    if bool(BORN.search(text)) == bool(DIED.search(text)):
        return []
    return [value.label for value in person.facts.get("P569" if BORN.search(text) else "P570", ())]


def _has_date(person: Person, text: str, date: Date) -> bool:
    return any(is_within(d, date) for label in _known_dates(person, text) for d in dates_in(label))


def _correct_date(person: Person, text: str) -> str | None:
    labels, dates = _known_dates(person, text), dates_in(text)
    if len(labels) != 1 or len(dates) != 1 or _has_date(person, text, dates[0]):
        return None
    true, false = dates_in(labels[0]), dates[0]
    if not true or true[0].year == false.year or (true[0].day is None and false.day is not None):
        return None
    new = labels[0] if false.day else str(true[0].year)
    if false.day is None and false.month is not None:
        return None
    american = re.search(rf"{MONTH} \d\d?, ", text)
    return DATE.sub(lambda _: swap_date_format(new) if american else new, text)


def _wrong_sex(person: Person, text: str) -> re.Match[str] | None:
    wrong = (m for m in _SEX.finditer(text) if (m[0] in ("male", "man")) != (person.sex == "male"))
    return next(wrong, None)
