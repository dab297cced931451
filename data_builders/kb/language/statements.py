"""Facts of a person: values in words, entailments, SPARQL patterns."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from components.english import MONTHS
from data_builders.kb.facts import DATES, Person
from data_builders.kb.graph import Value
from data_builders.kb.language.wording import lexicon

SEX_IRI = {"male": "wd:Q6581097", "female": "wd:Q6581072"}
# Adjectives that also name a person, in addition to those in -an ("a Russian").
ALSO_NOUNS = frozenset({"Greek", "Swiss", "Thai", "Czech", "Israeli", "Pakistani", "Iraqi"})

# Properties with one true value, of which another value is false. All others can have several.
FUNCTIONAL = frozenset({"P569", "P19", "P20", "P570", "P21"})


@dataclass(frozen=True, slots=True)
class Fact:
    """A property with one value, or one aspect of a date.

    Attributes:
        prop: ``P106``, …, or ``alias``.
        aspect: of dates ``day``, ``year``, ``decade`` or ``century``; otherwise empty.
        value: the value in words; identifies the fact.
        pattern: SPARQL pattern over ``?person``; ``@`` is a placeholder for a number.
        slots: values for templates.
        coarser: coarser facts that it entails.
    """

    prop: str
    aspect: str
    value: str
    pattern: str = field(compare=False)
    slots: dict[str, str] = field(compare=False, hash=False)
    coarser: tuple[Fact, ...] = field(default=(), compare=False, hash=False)

    def __str__(self) -> str:
        return f"{self.key}={self.value}"

    @property
    def key(self) -> str:
        """Key of its templates in the bank."""
        return f"{self.prop}.{self.aspect}" if self.aspect else self.prop

    @property
    def functional(self) -> bool:
        """Whether a person has at most one value of the property, so that two values contradict."""
        return self.prop in FUNCTIONAL


def ordinal(number: int) -> str:
    """``19th`` for 19."""
    tail = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{tail or 'th'}"


@cache  # a million people share a few thousand values
def facts_of_value(prop: str, value: Value) -> tuple[Fact, ...]:
    """Return the facts of one value: several for a date, from fine to coarse."""
    if prop in DATES:
        return tuple(_date_facts(prop, value))
    if prop == "P106":
        return (_occupation(value.label, f"?person wdt:P106 <{value.iri}> ."),)
    slots = {"v": value.label}
    if prop == "P27":
        name, adjective = lexicon("countries").get(value.label, (value.label, ""))
        slots = {"v": name} | ({"adj": adjective} if adjective else {})
        if adjective.endswith("an") or adjective in ALSO_NOUNS:
            slots["one"] = adjective
    elif prop in ("P166", "P54"):
        slots = {"v": value.label.removeprefix("The ")}
    return (Fact(prop, "", value.label, f"?person wdt:{prop} <{value.iri}> .", slots),)


def _occupation(label: str, pattern: str) -> Fact:
    forms = lexicon("occupations").get(label, ())
    slots = {"v": label} | dict(zip(("field", "did", "does", "product"), forms, strict=False))
    # A broader occupation is only stated, never counted: the knowledge base may lack it.
    broader = tuple(_occupation(name, "") for name in lexicon("broader").get(label, ()))
    return Fact("P106", "", label, pattern, slots, broader)


def _date_facts(prop: str, value: Value) -> list[Fact]:
    year = value.year
    spans = [("year", str(year), year, year)]
    if year is None or year < 1000:
        spans = [] if year is None or year < 1 else spans
    else:
        decade, century = year // 10 * 10, (year - 1) // 100
        spans.append(("decade", f"{decade}s", decade, decade + 9))
        spans.append(("century", ordinal(century + 1), century * 100 + 1, century * 100 + 100))
    facts: list[Fact] = []
    # The endpoint counts Gregorian years.
    shift = int(value.gregorian[:4]) - year if spans and value.gregorian else 0
    for aspect, text, low, high in reversed(spans):
        pattern = (
            f"?person wdt:{prop} ?date@ . "
            f"FILTER(YEAR(?date@) >= {low + shift} && YEAR(?date@) <= {high + shift})"
        )
        facts.insert(0, Fact(prop, aspect, text, pattern, {aspect: text}, tuple(facts)))
    parts = value.label.split()
    if facts and len(parts) == 3 and parts[1] in MONTHS:
        day, month = int(parts[0]), MONTHS.index(parts[1]) + 1
        date = value.gregorian or f"{year:04d}-{month:02d}-{day:02d}"
        pattern = f'?person wdt:{prop} ?date@ . FILTER(STRSTARTS(STR(?date@), "{date}"))'
        slots = {"v": value.label, "us": f"{parts[1]} {day}, {year}"}
        facts.insert(0, Fact(prop, "day", value.label, pattern, slots, tuple(facts)))
    return facts


def values_of(person: Person, prop: str) -> tuple[Value, ...]:
    """Return a person's values of a property; sex and aliases count as properties."""
    if prop == "P21":
        return (Value(person.sex, None),) if person.sex else ()
    if prop == "alias":
        return tuple(Value(alias, None) for alias in person.aliases)
    return person.facts.get(prop, ())


def facts_of(person: Person, prop: str) -> list[Fact]:
    """Return all known facts of a person and a property."""
    facts: list[Fact] = []
    for value in values_of(person, prop):
        if prop == "P21":
            noun = {"male": "a man", "female": "a woman"}
            other = "female" if value.label == "male" else "male"
            slots = {
                "sexadj": value.label,
                "sexnoun": noun[value.label],
                "othersex": noun[other],
                "v": noun[value.label],
            }
            facts.append(
                Fact(prop, "", value.label, f"?person wdt:P21 {SEX_IRI[value.label]} .", slots)
            )
        elif prop == "alias":
            text = json.dumps(value.label, ensure_ascii=False)
            pattern = (
                "?person (skos:altLabel|owl:sameAs/rdfs:label) ?name@ . "
                f"FILTER(STR(?name@) = {text})"
            )
            facts.append(Fact(prop, "", value.label, pattern, {"v": value.label}))
        else:
            facts.extend(facts_of_value(prop, value))
    return list(dict.fromkeys(facts))


def implies(left: Fact, right: Fact) -> bool:
    """Whether a fact entails another: equal, a coarser date, or a broader occupation."""
    return left == right or right in left.coarser


def independent(left: Fact, right: Fact) -> bool:
    """Whether two true facts of a person are unrelated."""
    if implies(left, right) or implies(right, left):
        return False
    return left.prop != right.prop or not left.functional  # aspects of one date are related


def overlap(left: str, right: str) -> bool:
    """Whether one text contains the other, ignoring case: Brooklyn, Brooklyn Heights."""
    left, right = left.casefold(), right.casefold()
    return left in right or right in left


def is_another(fact: Fact, known_facts: Iterable[Fact]) -> bool:
    """Whether a fact is false of a person; the definition that all builders share.

    A knowledge base is incomplete, so a value that may be true in addition to a known one does not
    count: a place that contains or is part of a known one, or an occupation that a known one
    implies. A date is false if its year is. ``known_facts`` are those of the person and the
    property.
    """
    if fact.prop == "P21":  # "female" contains "male"
        return fact not in known_facts
    return not any(
        overlap(fact.value, fact_of_person.value)
        or fact in fact_of_person.coarser
        # A date is false even if its decade is true.
        or (not fact.aspect and fact_of_person in fact.coarser)
        for fact_of_person in known_facts
    )
