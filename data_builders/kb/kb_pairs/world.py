"""The people of one split, true and false facts about them, and their wordings."""

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from clients.sparql import SparqlClient
from components.words import name_key
from data_builders.kb.facts import POPULATION, Person, count_people
from data_builders.kb.language.statements import Fact, facts_of, is_another, values_of
from data_builders.kb.language.wording import Voice, bank, capital, frame, slots_of, speak
from data_builders.splits import SPLITS
from records import UserError

# Occupations have the most wordings, sexes the fewest. Default weight: 2.
PROPERTY_WEIGHTS = {"P106": 3, "P21": 1}
# Cached other values over all people; of a million people each has 80,000 dates.
CACHE_SIZE = 2_000_000


class World:
    """The people of one split, their facts of the split's properties, and the pool of values."""

    def __init__(self, people: Sequence[Person], everyone: Sequence[Person], split: str):
        self.split = split
        self.everyone = everyone
        self.properties = SPLIT_PROPERTIES[split]
        self.known = {
            person.iri: {prop: facts_of(person, prop) for prop in self.properties}
            for person in people
        }
        self.people = [p for p in people if any(self.known[p.iri].values())]
        # With repetitions, in proportion to their frequency.
        self._by_key: dict[str, list[Fact]] = {}
        for person in everyone:
            for fact in (f for prop in self.properties for f in facts_of(person, prop)):
                self._by_key.setdefault(fact.key, []).append(fact)
        self._distinct = {key: list(dict.fromkeys(facts)) for key, facts in self._by_key.items()}
        self._others: dict[tuple[str, str], list[Fact]] = {}
        self._cache_left = CACHE_SIZE

    def facts(self, person: Person) -> list[Fact]:
        """List all facts of a person."""
        return [fact for facts in self.known[person.iri].values() for fact in facts]

    def other_value(self, rng: random.Random, person: Person, fact: Fact) -> Fact | None:
        """Draw a fact of the same property that is false of the person, or ``None``.

        A functional property with two values in the knowledge base has none.
        """
        if fact.functional and len(values_of(person, fact.prop)) > 1:
            return None
        true_facts = self.known[person.iri][fact.prop]
        if (person.iri, fact.key) not in self._others:
            false_facts = [
                other for other in self._distinct[fact.key] if is_another(other, true_facts)
            ]
            if len(false_facts) > self._cache_left:
                self._others.clear()
                self._cache_left = CACHE_SIZE
            self._others[person.iri, fact.key] = false_facts
            self._cache_left -= len(false_facts)
        false_facts = self._others[person.iri, fact.key]
        return rng.choice(false_facts) if false_facts else None

    def any_value(self, rng: random.Random) -> Fact:
        """Draw a fact of anyone, half of the time in proportion to its frequency."""
        keys = sorted(self._by_key)
        key = rng.choices(keys, [_weight(key.partition(".")[0]) for key in keys])[0]
        return rng.choice((self._by_key if rng.random() < 0.5 else self._distinct)[key])

    def own_value(self, rng: random.Random, person: Person) -> Fact:
        """Draw one of the person's facts by the weights of the properties."""
        nonempty = {prop: facts for prop, facts in self.known[person.iri].items() if facts}
        props = sorted(nonempty)
        return rng.choice(nonempty[rng.choices(props, [_weight(prop) for prop in props])[0]])

    @cached_property
    def clauses(self) -> dict[str, tuple[str, ...]]:
        """Subjectless clauses of the split, by property."""
        return bank("clauses")[self.split]

    def templates(self, fact: Fact) -> list[str]:
        """List the templates for a fact."""
        slots = fact.slots.keys()
        lines = bank("facts")[self.split].get(fact.key) or bank("common")[self.split][fact.key]
        return [t for t in lines if slots_of(t) <= slots]

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
        """State a fact in one sentence, optionally with an uninformative embellishment."""
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
    # "{a v}" occurs at most once in a template.
    return template, slots | {"v": f"{rng.choice(words['adjectives'])} {slots['v']}"}


def _weight(prop: str) -> int:
    return PROPERTY_WEIGHTS.get(prop, 2)


class Shares:
    """Conditional frequencies p(asked | given) as SPARQL counts; each is queried once."""

    def __init__(self, client: SparqlClient, population: str = POPULATION):
        self._client = client
        self._population = population
        self._counts: dict[tuple[str, ...], int] = {}

    def count(self, facts: Sequence[Fact]) -> int:
        """Count the people for whom all facts hold."""
        patterns = sorted({fact.pattern for fact in facts})
        numbered = tuple(
            re.sub(r"(\?\w+)@", rf"\g<1>{i}", pattern) for i, pattern in enumerate(patterns)
        )
        if numbered not in self._counts:
            self._counts[numbered] = count_people(self._client, list(numbered), self._population)
        return self._counts[numbered]

    def counts(self, condition: Sequence[Fact], target: Fact) -> tuple[int, int]:
        """Count the people with condition and target, and with the condition."""
        return self.count([*condition, target]), self.count(condition)


def paragraph(rng: random.Random, world: World, person: Person, facts: Sequence[Fact]) -> str:
    """Write several facts as running text: first the name, then pronouns or surnames."""
    sentences = []
    for index, fact in enumerate(facts):
        form = "full" if index == 0 else rng.choices(("pronoun", "surname", "full"), (6, 3, 1))[0]
        sentences.append(world.say(rng, person, fact, Voice(form, True)))
    return " ".join(sentences)


# People, properties and wordings never cross splits: a model that knows a template or a property
# from training could use surface cues.
# ``P21`` (sex) and ``alias`` extend the two evaluation splits.
SPLIT_PROPERTIES = {
    "train": ("P106", "P27", "P569", "P19", "P69"),
    "dev": ("P20", "P21"),
    "test": ("P570", "P166", "P54", "alias"),
}


def split_people(
    people: Sequence[Person], shares: Sequence[int], seed: int
) -> dict[str, list[Person]]:
    """Split people by share, e.g. ``(8, 1, 1)``, sorted by IRI within a split.

    Namesakes (people with the same label) stay together.
    """
    if len(shares) != len(SPLITS) or min(shares) <= 0:
        raise UserError(f"shares: expected three positive numbers for {', '.join(SPLITS)}")
    families: dict[str, list[Person]] = defaultdict(list)
    for person in people:
        families[name_key(person.name)].append(person)
    names = sorted(families)
    random.Random(f"{seed}:people").shuffle(names)
    people_of: dict[str, list[Person]] = {split: [] for split in SPLITS}
    for name in names:
        # To the split furthest below its share, so large families do not distort the shares.
        split = min(SPLITS, key=lambda s: len(people_of[s]) / shares[SPLITS.index(s)])
        people_of[split].extend(families[name])
    if min(len(members) for members in people_of.values()) < 2:
        raise UserError(f"{len(people)} people are too few for three splits; widen the population")
    return {split: sorted(members, key=lambda p: p.iri) for split, members in people_of.items()}
