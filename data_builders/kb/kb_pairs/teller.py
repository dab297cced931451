"""What is said at random about people of one split, for the makers of pairs and examples."""

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
    slots_of,
    speak,
    tells_sex,
    unlisted,
)

# How often a kind is tried for each pair that it should give, before it is given up.
TRIES = 30
# How the sex of somebody is stated.
_SEX = re.compile(r"\b(?:(?:fe)?male|(?:wo)?man)\b")
# How often a bleached statement stands in an empty frame ("Of course, …").
FRAMED = 0.08

# Name of a kind of pair to its weight and its maker: a function of the teller and a person that
# gives (premise, hypothesis, …) or None.
Kinds = Mapping[str, tuple[int, Callable]]


class Teller:
    """Says things about people of one split at random.

    Args:
        world: the split's people, facts and values.
        rng: source of all choices.

    Attributes:
        told: the facts that were said since it was last cleared, in their order.
    """

    def __init__(self, world: World, rng: random.Random):
        self.world = world
        self.rng = rng
        self.split = world.split
        self.stated_facts: list[Fact] = []

    def person(self) -> Person:
        """Any person of the split."""
        return self.rng.choice(self.world.people)

    def fact(self, person: Person) -> Fact:
        """One of the person's facts."""
        return self.world.own_value(self.rng, person)

    def occupation(self, person: Person) -> Fact:
        """Mostly an occupation, since those are what texts embellish; else any fact."""
        known = self.world.known[person.iri].get("P106")
        return self.rng.choice(known) if known and self.rng.random() < 0.6 else self.fact(person)

    def say(
        self, person: Person, fact: Fact, named: bool = False, embellished: float = 0.12
    ) -> str:
        """A sentence that states a fact of the person.

        Args:
            person: whom it is about.
            fact: what it states.
            named: use the name, never a pronoun alone.
            embellished: probability of an addition that says nothing.
        """
        # Of the two sexes the pronoun would tell.
        voice = any_voice(self.rng, named or fact.prop == "P21")
        self.stated_facts.append(fact)
        dressed = self.rng.random() < embellished
        return self.world.say(self.rng, person, fact, voice, embellished=dressed)

    def bleached(self, person: Person, named: bool = False) -> str:
        """A sentence that is true of anyone, said of the person; now and then in a frame."""
        text = bleached(self.rng, self.split, person, any_voice(self.rng, named))
        if self.rng.random() < FRAMED:
            frames = bank("embellishments")[self.split]["frames"]
            text = capital(frame(self.rng.choice(frames), text, person))
        return text

    def bleached_list(self, person: Person) -> str:
        """One bleached statement, now and then up to four of them."""
        count = self.rng.choices((1, 2, 3, 4), (7, 1, 1, 1))[0]
        told = [self.bleached(person, named=index == 0) for index in range(count)]
        return " ".join(told)

    def unlisted(self, person: Person) -> tuple[str, str, float]:
        """A specific statement that the knowledge base does not hold, its kind and its prior."""
        entry = self.rng.choice(unlisted(self.split))
        slots = fillers(self.rng, self.split)
        text = speak(self.rng.choice(entry.paraphrases), person, any_voice(self.rng), slots)
        return capital(text), entry.kind, entry.prior

    def unlisted_pair(self, person: Person) -> tuple[str, str] | None:
        """Two paraphrases of one specific statement."""
        entry = self.rng.choice(unlisted(self.split))
        if len(entry.paraphrases) < 2:
            return None
        slots = fillers(self.rng, self.split)
        first, second = self.rng.sample(entry.paraphrases, 2)
        left = speak(first, person, any_voice(self.rng, named=True), slots)
        return capital(left), capital(speak(second, person, any_voice(self.rng), slots))

    def compound(self, person: Person) -> tuple[str, list[Fact]] | None:
        """One sentence that holds several facts of the person, with those facts."""
        known = self.world.known[person.iri]
        template = self.rng.choice(bank("compounds")[self.split])
        slots, facts = {}, []
        for name in sorted(slots_of(template)):
            prop, _, form = name.partition(".")
            aspect = form if form == "year" else ""
            fitting = [f for f in known[prop] if f.aspect == aspect]
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

    def page(self, person: Person, low: int = 2, high: int = 6) -> tuple[str, list[Fact]]:
        """A paragraph of some of the person's facts, with those facts."""
        facts = self.world.facts(person)
        chosen = self.rng.sample(facts, min(len(facts), self.rng.randint(low, high)))
        self.stated_facts.extend(chosen)
        return paragraph(self.rng, self.world, person, chosen), chosen

    def contradiction(self, person: Person) -> tuple[str, str] | None:
        """A functional fact of the person and another value of it, in either order."""
        fact = self.fact(person)
        other = self.world.other_value(self.rng, person, fact) if fact.functional else None
        if other is None:
            return None
        left, right = (fact, other) if self.rng.random() < 0.5 else (other, fact)
        return self.say(person, left, True), self.say(person, right)

    def specific(self, person: Person) -> str:
        """A fact of the person, now and then a statement that the knowledge base does not hold."""
        text = self.say(person, self.fact(person), True)
        return self.unlisted(person)[0] if self.rng.random() < 0.35 else text


def labelled(method: Callable, *label: object) -> Callable:
    """A maker of pairs whose label does not depend on what is said.

    Args:
        method: of a teller; gives premise and hypothesis, or ``None``.
        label: what follows them.
    """

    def make(teller: Teller, person: Person) -> tuple | None:
        pair = method(teller, person)
        return pair and (*pair, *label)

    return make


def distinct_pairs(
    teller: Teller, kinds: Kinds, number: int, what: str, dropped: Counter[str]
) -> Iterator[tuple[str, Person, tuple]]:
    """Pairs of all kinds about random people, each text pair once.

    Args:
        teller: says what the makers ask for; holds the facts of the pair that is given last.
        kinds: weight of each kind, and its maker.
        number: about how many pairs in all.
        what: name of the pairs in ``dropped``.
        dropped: counts the pairs that could not be made, by kind.

    Yields:
        The kind, the person, and what the maker gave.
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
            found = make(teller, person)
            if found is None or found[:2] in seen or found[0] == found[1]:
                continue
            if _sex_is_told(teller.stated_facts, found[0]):
                continue
            seen.add(found[:2])
            made += 1
            yield kind, person, found
        dropped[f"{what} pair not found: {kind}"] += quota - made


def _sex_is_told(told: list[Fact], premise: str) -> bool:
    stated = any(fact.prop == "P21" for fact in told) and not _SEX.search(premise)
    return stated and tells_sex(premise)
