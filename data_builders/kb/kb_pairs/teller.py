"""Random statements about people of one split, for makers of pairs and examples."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from data_builders.kb.facts import Person
from data_builders.kb.kb_pairs.world import World, paragraph
from data_builders.kb.language.statements import Fact
from data_builders.kb.language.wording import (
    any_voice,
    bank,
    bleached,
    capital,
    fillers,
    frame,
    reveals_sex,
    slots_of,
    speak,
    unlisted,
)

TRIES = 30  # attempts per pair
_SEX = re.compile(r"\b(?:(?:fe)?male|(?:wo)?man)\b")
FRAMED = 0.08  # probability of a frame ("Of course, …")

# Kind to its weight and its maker: (teller, person) -> (premise, hypothesis, …) or None.
Kinds = Mapping[str, tuple[int, Callable]]


class Teller:
    """Makes random statements about people of one split.

    ``stated_facts`` are the facts stated since it was last cleared, in order.
    """

    def __init__(self, world: World, rng: random.Random):
        self.world = world
        self.rng = rng
        self.split = world.split
        self.stated_facts: list[Fact] = []

    def person(self) -> Person:
        """Draw a person of the split."""
        return self.rng.choice(self.world.people)

    def fact(self, person: Person) -> Fact:
        """Draw one of the person's facts."""
        return self.world.own_value(self.rng, person)

    def occupation(self, person: Person) -> Fact:
        """Draw mostly occupations, which texts often embellish; otherwise any fact."""
        occupations = self.world.known[person.iri].get("P106")
        return (
            self.rng.choice(occupations)
            if occupations and self.rng.random() < 0.6
            else self.fact(person)
        )

    def say(
        self, person: Person, fact: Fact, named: bool = False, embellished: float = 0.12
    ) -> str:
        """State a fact; ``named`` avoids pronouns, ``embellished`` is a probability."""
        # A pronoun would reveal the sex.
        voice = any_voice(self.rng, named or fact.prop == "P21")
        self.stated_facts.append(fact)
        dressed = self.rng.random() < embellished
        return self.world.say(self.rng, person, fact, voice, embellished=dressed)

    def bleached(self, person: Person, named: bool = False) -> str:
        """Write a sentence that is true of anyone, sometimes in a frame."""
        text = bleached(self.rng, self.split, person, any_voice(self.rng, named))
        if self.rng.random() < FRAMED:
            frames = bank("embellishments")[self.split]["frames"]
            text = capital(frame(self.rng.choice(frames), text, person))
        return text

    def bleached_list(self, person: Person) -> str:
        """Write one bleached statement, sometimes up to four."""
        count = self.rng.choices((1, 2, 3, 4), (7, 1, 1, 1))[0]
        statements = [self.bleached(person, named=index == 0) for index in range(count)]
        return " ".join(statements)

    def unlisted(self, person: Person) -> tuple[str, str, float]:
        """Return a specific statement outside the knowledge base, its kind and its prior."""
        entry = self.rng.choice(unlisted(self.split))
        slots = fillers(self.rng, self.split)
        text = speak(self.rng.choice(entry.paraphrases), person, any_voice(self.rng), slots)
        return capital(text), entry.kind, entry.prior

    def unlisted_pair(self, person: Person) -> tuple[str, str] | None:
        """Return two paraphrases of one unlisted statement."""
        entry = self.rng.choice(unlisted(self.split))
        if len(entry.paraphrases) < 2:
            return None
        slots = fillers(self.rng, self.split)
        first, second = self.rng.sample(entry.paraphrases, 2)
        left = speak(first, person, any_voice(self.rng, named=True), slots)
        return capital(left), capital(speak(second, person, any_voice(self.rng), slots))

    def compound(self, person: Person) -> tuple[str, list[Fact]] | None:
        """Return one sentence with several facts of the person, and those facts."""
        facts_of = self.world.known[person.iri]
        template = self.rng.choice(bank("compounds")[self.split])
        slots, facts = {}, []
        for name in sorted(slots_of(template)):
            prop, _, form = name.partition(".")
            aspect = form if form == "year" else ""
            fitting = [f for f in facts_of[prop] if f.aspect == aspect]
            if not fitting:
                return None
            fact = next((f for f in facts if f.prop == prop), None) or self.rng.choice(fitting)
            if form == "adj" and "adj" not in fact.slots:
                return None
            slots[name] = fact.slots[form or "v"]
            facts.append(fact)
        text = speak(template, person, any_voice(self.rng, named=True), slots)
        facts = list(dict.fromkeys(facts))
        self.stated_facts.extend(facts)
        return capital(text), facts

    def page(self, person: Person) -> tuple[str, list[Fact]]:
        """Return a paragraph with some of the person's facts, and those facts."""
        facts = self.world.facts(person)
        chosen = self.rng.sample(facts, min(len(facts), self.rng.randint(2, 6)))
        self.stated_facts.extend(chosen)
        return paragraph(self.rng, self.world, person, chosen), chosen

    def contradiction(self, person: Person) -> tuple[str, str] | None:
        """Return a functional fact of the person and another value, in either order."""
        fact = self.fact(person)
        other = self.world.other_value(self.rng, person, fact) if fact.functional else None
        if other is None:
            return None
        left, right = (fact, other) if self.rng.random() < 0.5 else (other, fact)
        return self.say(person, left, True), self.say(person, right)

    def specific(self, person: Person) -> str:
        """State a fact of the person, sometimes an unlisted statement."""
        text = self.say(person, self.fact(person), True)
        return self.unlisted(person)[0] if self.rng.random() < 0.35 else text


def labelled(method: Callable, *label: object) -> Callable:
    """Make a pair maker with a constant label from a method that returns premise and hypothesis."""

    def make(teller: Teller, person: Person) -> tuple | None:
        pair = method(teller, person)
        return pair and (*pair, *label)

    return make


def distinct_pairs(
    teller: Teller, kinds: Kinds, number: int, name: str, dropped: Counter[str]
) -> Iterator[tuple[str, Person, tuple]]:
    """Yield kind, person and content of about ``number`` pairs, without duplicates.

    The ``stated_facts`` of the teller are those of the last pair. ``dropped`` counts missing pairs.
    """
    total = sum(weight for weight, _ in kinds.values())
    seen: set[tuple[str, str]] = set()
    for kind, (weight, make) in kinds.items():
        quota = round(number * weight / total)
        made = 0
        for _ in range(quota * TRIES):
            if made == quota:
                break
            person = teller.person()
            teller.stated_facts.clear()
            pair = make(teller, person)
            if pair is None or pair[:2] in seen or pair[0] == pair[1]:
                continue
            if _reveals_sex(teller.stated_facts, pair[0]):
                continue
            seen.add(pair[:2])
            made += 1
            yield kind, person, pair
        dropped[f"{name} pair not found: {kind}"] += quota - made


def _reveals_sex(facts: list[Fact], premise: str) -> bool:
    stated = any(fact.prop == "P21" for fact in facts) and not _SEX.search(premise)
    return stated and reveals_sex(premise)
