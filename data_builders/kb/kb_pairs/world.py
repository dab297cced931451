"""The people of one split, what is true and what is false of them, and how it is said."""

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from clients.sparql import SparqlClient
from data_builders.kb.facts import POPULATION, Person, count_people
from data_builders.kb.language.statements import Fact, facts_of, is_another, values_of
from data_builders.kb.language.wording import Voice, bank, capital, frame, slots_of, speak
from data_builders.splits import SPLITS
from records import UserError

# Occupations have the most wordings; of two sexes there is little to say. The others weigh 2.
PROPERTY_WEIGHTS = {"P106": 3, "P21": 1}
# Other values that a world remembers, over all people; of a million people each has 80,000 dates.
REMEMBERED = 2_000_000


class World:
    """The people of one split, their facts of the split's properties, and the pool of values.

    Args:
        people: members of the split.
        everyone: the whole population; other values are drawn from all of it.
        split: whose properties and wordings are used.
    """

    def __init__(self, people: Sequence[Person], everyone: Sequence[Person], split: str):
        self.split = split
        self.everyone = everyone
        self.properties = SPLIT_PROPERTIES[split]
        self.known = {
            person.iri: {prop: facts_of(person, prop) for prop in self.properties}
            for person in people
        }
        self.people = [p for p in people if any(self.known[p.iri].values())]
        # With repeats: as often as they are true of somebody.
        self._by_key: dict[str, list[Fact]] = {}
        for one in everyone:
            for fact in (f for prop in self.properties for f in facts_of(one, prop)):
                self._by_key.setdefault(fact.key, []).append(fact)
        self._distinct = {key: list(dict.fromkeys(found)) for key, found in self._by_key.items()}
        self._others: dict[tuple[str, str], list[Fact]] = {}
        self._room = REMEMBERED

    def facts(self, person: Person) -> list[Fact]:
        """All facts of a person."""
        return [fact for facts in self.known[person.iri].values() for fact in facts]

    def other_value(self, rng: random.Random, person: Person, fact: Fact) -> Fact | None:
        """A fact of the same property that is not true of the person, or ``None``.

        There is none of a functional property of which the knowledge base holds two values.
        """
        if fact.functional and len(values_of(person, fact.prop)) > 1:
            return None
        own = self.known[person.iri][fact.prop]
        if (person.iri, fact.key) not in self._others:
            others = [other for other in self._distinct[fact.key] if is_another(other, own)]
            if len(others) > self._room:
                self._others.clear()
                self._room = REMEMBERED
            self._others[person.iri, fact.key] = others
            self._room -= len(others)
        others = self._others[person.iri, fact.key]
        return rng.choice(others) if others else None

    def any_value(self, rng: random.Random) -> Fact:
        """Any fact of any person, half the time as likely as it is true."""
        keys = sorted(self._by_key)
        key = rng.choices(keys, [_weight(key.partition(".")[0]) for key in keys])[0]
        return rng.choice((self._by_key if rng.random() < 0.5 else self._distinct)[key])

    def own_value(self, rng: random.Random, person: Person) -> Fact:
        """One of the person's facts, by the weights of the properties."""
        known = {prop: facts for prop, facts in self.known[person.iri].items() if facts}
        props = sorted(known)
        return rng.choice(known[rng.choices(props, [_weight(prop) for prop in props])[0]])

    @cached_property
    def clauses(self) -> dict[str, tuple[str, ...]]:
        """Subjectless clauses of the split, by property."""
        return bank("clauses")[self.split]

    def templates(self, fact: Fact) -> list[str]:
        """The templates that can say a fact."""
        there = fact.slots.keys()
        lines = bank("facts")[self.split].get(fact.key) or bank("common")[self.split][fact.key]
        return [t for t in lines if slots_of(t) <= there]

    def say(
        self,
        rng: random.Random,
        person: Person,
        fact: Fact,
        voice: Voice,
        *,
        embellished: bool = False,
        template: str | None = None,
    ) -> str:
        """A fact in one sentence, if asked for with an empty embellishment."""
        slots = dict(fact.slots)
        if "us" in slots and rng.random() < 0.5:
            slots["v"] = slots["us"]
        chosen = template or rng.choice(self.templates(fact))
        words = bank("embellishments")[self.split]
        plain = not embellished
        if embellished and "adjectives" in words and fact.key == "P106" and rng.random() < 0.85:
            chosen, slots = _embellished_occupation(rng, words, chosen, slots)
            plain = True
        text = speak(chosen, person, voice, slots)
        if not plain:
            text = frame(rng.choice(words["frames"]), text, person, tuple(slots.values()))
        return capital(text)


def _embellished_occupation(
    rng: random.Random, words: dict, template: str, slots: dict[str, str]
) -> tuple[str, dict[str, str]]:
    kind = rng.choices(("adjective", "tail", "sentence"), (5, 3, 3))[0]
    if kind == "sentence" and "field" in slots:
        return rng.choice(words["sentences"]), slots
    if kind == "tail" and "field" in slots:
        return f"{{X}} {{was}} {{a v}} {rng.choice(words['tails'])}.", slots
    if "{a v}" not in template:
        template = "{X} {was} {a v}."
    # Only the noun changes: "{a v}" occurs once in every template that has it.
    return template, slots | {"v": f"{rng.choice(words['adjectives'])} {slots['v']}"}


def _weight(prop: str) -> int:
    return PROPERTY_WEIGHTS.get(prop, 2)


class Shares:
    """Conditional frequencies p(asked | given) as counts over SPARQL.

    Args:
        client: the endpoint; each distinct set of patterns is asked for once.
        population: patterns that bind ``?person``.
    """

    def __init__(self, client: SparqlClient, population: str = POPULATION):
        self._client = client
        self._population = population
        self._counts: dict[tuple[str, ...], int] = {}

    def count(self, facts: Sequence[Fact]) -> int:
        """How many people have all the facts."""
        patterns = sorted({fact.pattern for fact in facts})
        numbered = tuple(
            re.sub(r"(\?\w+)@", rf"\g<1>{i}", pattern) for i, pattern in enumerate(patterns)
        )
        if numbered not in self._counts:
            self._counts[numbered] = count_people(self._client, list(numbered), self._population)
        return self._counts[numbered]

    def counts(self, given: Sequence[Fact], asked: Fact) -> tuple[int, int]:
        """People with all the given facts and the asked one, and people with the given ones."""
        return self.count([*given, asked]), self.count(given)


def paragraph(rng: random.Random, world: World, person: Person, facts: Sequence[Fact]) -> str:
    """Several facts as running text: the name first, then pronoun or surname."""
    sentences = []
    for index, fact in enumerate(facts):
        form = "full" if index == 0 else rng.choices(("pronoun", "surname", "full"), (6, 3, 1))[0]
        sentences.append(world.say(rng, person, fact, Voice(form, True)))
    return " ".join(sentences)


# People, properties and wordings never cross splits: a model that has seen a template or a property
# in training could do well on the evaluation text by its surface.
# ``P21`` (sex) and ``alias`` (other names) fill up the two evaluation splits.
SPLIT_PROPERTIES = {
    "train": ("P106", "P27", "P569", "P19", "P69"),
    "dev": ("P20", "P21"),
    "test": ("P570", "P166", "P54", "alias"),
}


def split_people(
    people: Sequence[Person], shares: Sequence[int], seed: int
) -> dict[str, list[Person]]:
    """Divide people by share; namesakes (people with the same label) stay together.

    Args:
        people: all people.
        shares: of train, dev and test, e.g. ``(8, 1, 1)``.
        seed: of the shuffle.

    Returns:
        Split to its people, in the order of their identifiers.
    """
    if len(shares) != len(SPLITS) or min(shares) <= 0:
        raise UserError(f"shares: give three positive numbers for {', '.join(SPLITS)}")
    families: dict[str, list[Person]] = defaultdict(list)
    for person in people:
        families[person.name.casefold()].append(person)
    names = sorted(families)
    random.Random(f"{seed}:people").shuffle(names)
    found: dict[str, list[Person]] = {split: [] for split in SPLITS}
    for name in names:
        # Always to the split that is furthest below its share, so that big families do no harm.
        split = min(SPLITS, key=lambda s: len(found[s]) / shares[SPLITS.index(s)])
        found[split].extend(families[name])
    if min(len(members) for members in found.values()) < 2:
        raise UserError(f"{len(people)} people are too few for three splits; widen the population")
    return {split: sorted(members, key=lambda p: p.iri) for split, members in found.items()}
