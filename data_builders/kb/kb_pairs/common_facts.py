"""Facts that many people share: a time span, a continent, an area of work, "won an award".

They fill the range between facts true of anyone and facts true of one person, with counted shares;
without them a model learns that a statement is either bleached or rare. They occur only as
hypotheses of UNLI pairs. "Before 1950" and "after 1800" are excluded: a small encoder does not
compare numbers, and learned from them that any statement with a year is likely.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from data_builders.kb.facts import Person
from data_builders.kb.graph import IS_ENGLISH, Value
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import Fact, ordinal, values_of
from data_builders.kb.language.wording import lexicon

AGES = (40, 50, 60, 70, 80)
FREQUENT = 8  # values of a property used in alternatives, "a writer or a poet"


class Common:
    """Facts that are true of many people of a world; templates are in ``wording/common.yaml``."""

    def __init__(self, world: World):
        self._split = world.split
        self._frequent = _frequent(world.everyone)
        unique: dict[tuple[Fact, str], Fact] = {}  # shared, to save memory
        self._known = {
            person.iri: [unique.setdefault((f, f.pattern), f) for f in self._facts(person)]
            for person in world.people
        }
        by_key: dict[str, list[Fact]] = {}
        for facts_of_person in self._known.values():
            for fact in facts_of_person:
                by_key.setdefault(fact.key, []).append(fact)
        self._by_key = {key: list(dict.fromkeys(facts)) for key, facts in sorted(by_key.items())}

    def all_of(self, person: Person) -> list[Fact]:
        """Return all common facts of a person."""
        return self._known[person.iri]

    def draw(self, rng: random.Random, person: Person) -> Fact | None:
        """Draw a fact of the person or, equally often, of anyone; keys are equally likely."""
        facts = self._known[person.iri]
        if facts and rng.random() < 0.5:
            key = rng.choice(sorted({fact.key for fact in facts}))
            return rng.choice([fact for fact in facts if fact.key == key])
        if not self._by_key:
            return None
        return rng.choice(self._by_key[rng.choice(list(self._by_key))])

    def _facts(self, person: Person) -> list[Fact]:
        frequent = self._frequent
        if self._split == "train":
            spans = [*_half(person, "P569"), *_continent(person), *_any(person, "P69")]
            work = [*_several(person, "P106"), *_either(person, "P106", frequent), *_areas(person)]
            return [*spans, *work, *_either(person, "P27", frequent)]
        if self._split == "dev":
            places = [*_any(person, "P20"), *_elsewhere(person)]
            return [*places, *_either(person, "P20", frequent)]
        spans = [*_half(person, "P570"), *_ages(person)]
        honours = [*_any(person, "P166"), *_several(person, "P166")]
        return [*spans, *honours, *_any(person, "P54"), *_any(person, "alias")]


def _frequent(people: Sequence[Person]) -> dict[str, list[Value]]:
    frequent = {}
    for prop in ("P106", "P27", "P20"):
        counts = Counter(value for person in people for value in values_of(person, prop))
        ordered = sorted(counts, key=lambda value: (-counts[value], value.label, value.iri or ""))
        frequent[prop] = ordered[:FREQUENT]
    return frequent


def _year(person: Person, prop: str) -> int | None:
    dates = person.facts.get(prop, ())
    return dates[0].year if len(dates) == 1 else None


def _half(person: Person, prop: str) -> Iterator[Fact]:
    year = _year(person, prop)
    if year is None or year < 1000:
        return
    low = (year - 1) // 50 * 50 + 1
    half = "first" if low % 100 == 1 else "second"
    text = f"the {half} half of the {ordinal((low - 1) // 100 + 1)} century"
    pattern = (
        f"?person wdt:{prop} ?date@ . FILTER(YEAR(?date@) >= {low} && YEAR(?date@) <= {low + 49})"
    )
    yield Fact(prop, "half", text, pattern, {"v": text})


def _ages(person: Person) -> Iterator[Fact]:
    born, died = _year(person, "P569"), _year(person, "P570")
    for age in AGES:
        if born and died and died - born > age:
            pattern = (
                "?person wdt:P569 ?born@ ; wdt:P570 ?died@ . "
                f"FILTER(YEAR(?died@) - YEAR(?born@) > {age})"
            )
            yield Fact("P570", "age", str(age), pattern, {"n": str(age)})


def _any(person: Person, prop: str) -> Iterator[Fact]:
    if values_of(person, prop):
        pattern = f"?person wdt:{prop} ?value@ ."
        if prop == "alias":
            pattern = (
                "?person (skos:altLabel|owl:sameAs/rdfs:label) ?value@ ; rdfs:label ?name@ . "
                f"FILTER(LCASE(LANG(?value@)) {IS_ENGLISH} && LCASE(LANG(?name@)) {IS_ENGLISH} "
                "&& STR(?value@) != STR(?name@))"
            )
        yield Fact(prop, "any", "", pattern, {})


def _several(person: Person, prop: str) -> Iterator[Fact]:
    if len(values_of(person, prop)) > 1:
        pattern = f"?person wdt:{prop} ?value@, ?other@ . FILTER(?value@ != ?other@)"
        yield Fact(prop, "several", "", pattern, {})


def _either(person: Person, prop: str, frequent: dict[str, list[Value]]) -> Iterator[Fact]:
    for known_value in values_of(person, prop):
        for other in frequent[prop]:
            if other.iri == known_value.iri:
                continue
            left, right = sorted((known_value, other), key=lambda value: value.label)
            pattern = (
                f"?person wdt:{prop} ?value@ . FILTER(?value@ IN (<{left.iri}>, <{right.iri}>))"
            )
            names = [left.label, right.label]
            if prop == "P27":
                names = [lexicon("countries").get(name, (name,))[0] for name in names]
            slots = dict(zip("vw", names, strict=True))
            yield Fact(prop, "either", " / ".join(names), pattern, slots)


def _areas(person: Person) -> Iterator[Fact]:
    occupations = {value.label for value in values_of(person, "P106")}
    for area, labels in lexicon("areas").items():
        if occupations & set(labels):
            names = ", ".join(f'"{label}"' for label in labels)
            pattern = (
                "?person wdt:P106/rdfs:label ?label@ . "
                f"FILTER(LCASE(LANG(?label@)) {IS_ENGLISH} && STR(?label@) IN ({names}))"
            )
            yield Fact("P106", "area", area, pattern, {"v": area})


def _continent(person: Person) -> Iterator[Fact]:
    name = person.continent
    if name in lexicon("continents"):
        pattern = f'?person wdt:P27/wdt:P30/rdfs:label "{name}"@en .'
        slots = {"v": name, "adj": lexicon("continents")[name][0]}
        yield Fact("P27", "continent", name, pattern, slots)


def _elsewhere(person: Person) -> Iterator[Fact]:
    born, died = values_of(person, "P19"), values_of(person, "P20")
    if len(born) == len(died) == 1 and born[0].iri != died[0].iri:
        pattern = "?person wdt:P19 ?born@ ; wdt:P20 ?died@ . FILTER(?born@ != ?died@)"
        yield Fact("P20", "elsewhere", "", pattern, {})
