"""Relation pairs: what a fact of the knowledge base entails, contradicts, or leaves open.

The kinds are chosen so that neither "sounds generic" nor "same person" predicts entailment: a
bleached claim does not entail a fact ("X is a person." / "X is an actor."), specific statements
in plain words follow from nothing ("X won several prizes."), while paraphrases, embellishments
and bleached statements do follow. Functional properties alone contradict.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from data_builders.kb.facts import Person
from data_builders.kb.kb_pairs.world import World, paragraph
from data_builders.kb.language.statements import Fact, implies
from data_builders.kb.language.wording import (
    Voice,
    any_voice,
    bank,
    bleached,
    capital,
    fillers,
    frame,
    slots_of,
    speak,
    unlisted,
)
from records import RelationPair

# Share of each kind. Entailment 43 %, neutral 42 %, contradiction 15 %.
KINDS = {
    "paraphrase": 13,
    "embellished": 8,
    "coarser": 3,
    "part": 5,
    "fact_to_bleached": 5,
    "bleached_to_bleached": 8,
    "unlisted_paraphrase": 4,
    "bleached_premise": 12,
    "other_fact": 12,
    "unlisted": 12,
    "unlisted_premise": 2,
    "finer": 2,
    "to_compound": 3,
    "other_value_open": 2,
    "other_person": 2,
    "page_fact": 4,
    "page_missing": 3,
    "other_value": 14,
    "page_contradicted": 4,
}
# How often a kind is tried for each pair that it should give, before it is given up.
TRIES = 30
# How often a bleached statement stands in an empty frame ("Of course, …").
FRAMED = 0.08

Found = tuple[str, str, str] | None


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
        self.told: list[Fact] = []

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
        self.told.append(fact)
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
        self.told.extend(facts)
        return capital(text), facts

    def page(self, person: Person, low: int = 2, high: int = 6) -> tuple[str, list[Fact]]:
        """A paragraph of some of the person's facts, with those facts."""
        facts = self.world.facts(person)
        chosen = self.rng.sample(facts, min(len(facts), self.rng.randint(low, high)))
        self.told.extend(chosen)
        return paragraph(self.rng, self.world, person, chosen), chosen


def relation_pairs(
    world: World, number: int, seed: int, dropped: Counter[str]
) -> list[RelationPair]:
    """Relation pairs of one split.

    Args:
        world: the split's people and facts.
        number: about how many; fewer where a kind has not enough to say.
        seed: of all choices.
        dropped: counts the pairs that could not be made, by kind.
    """
    teller = Teller(world, random.Random(f"{seed}:relation:{world.split}"))
    return labelled_pairs(teller, KINDS, _MAKERS, number, "relation", dropped)


def labelled_pairs(
    teller: Teller,
    kinds: Mapping[str, int],
    makers: Mapping[str, Callable],
    number: int,
    what: str,
    dropped: Counter[str],
) -> list[RelationPair]:
    """Relation pairs of all kinds, shuffled; the arguments are those of ``distinct_pairs``."""
    pairs = [
        RelationPair(
            premise=premise,
            hypothesis=hypothesis,
            label=label,
            source=f"kb/{kind}",
            person=person.iri,
            facts=[str(fact) for fact in teller.told],
        )
        for kind, person, (premise, hypothesis, label) in distinct_pairs(
            teller, kinds, makers, number, what, dropped
        )
    ]
    teller.rng.shuffle(pairs)
    return pairs


def distinct_pairs(
    teller: Teller,
    kinds: Mapping[str, int],
    makers: Mapping[str, Callable],
    number: int,
    what: str,
    dropped: Counter[str],
) -> Iterator[tuple[str, Person, tuple]]:
    """Pairs of all kinds about random people, each text pair once.

    Args:
        teller: says what the makers ask for; holds the facts of the pair that is given last.
        kinds: weight of each kind.
        makers: per kind a function of the teller and a person that gives (premise, hypothesis, …)
            or ``None``.
        number: about how many pairs in all.
        what: name of the pairs in ``dropped``.
        dropped: counts the pairs that could not be made, by kind.

    Yields:
        The kind, the person, and what the maker gave.
    """
    total = sum(kinds.values())
    seen: set[tuple[str, str]] = set()
    for kind, weight in kinds.items():
        quota = round(number * weight / total)
        made = 0
        for _ in range(quota * TRIES):
            if made == quota:
                break
            person = teller.person()
            teller.told.clear()
            found = makers[kind](teller, person)
            if found is None or found[:2] in seen or found[0] == found[1]:
                continue
            seen.add(found[:2])
            made += 1
            yield kind, person, found
        dropped[f"{what} pair not found: {kind}"] += quota - made


def _paraphrase(t: Teller, person: Person) -> Found:
    fact = t.fact(person)
    return t.say(person, fact, True, 0), t.say(person, fact, False, 0), "entailment"


def _embellished(t: Teller, person: Person) -> Found:
    """An empty addition says nothing: entailment in both directions."""
    fact = t.occupation(person)
    dressed, other = t.rng.choice(((1, 0), (0, 1), (1, 1)))
    return t.say(person, fact, True, dressed), t.say(person, fact, False, other), "entailment"


def _coarser(t: Teller, person: Person) -> Found:
    fact = t.fact(person)
    if not fact.coarser:
        return None
    return t.say(person, fact, True), t.say(person, t.rng.choice(fact.coarser)), "entailment"


def _finer(t: Teller, person: Person) -> Found:
    fact = t.fact(person)
    if not fact.coarser:
        return None
    return t.say(person, t.rng.choice(fact.coarser), True), t.say(person, fact), "neutral"


def _part(t: Teller, person: Person) -> Found:
    found = t.compound(person)
    return found and (found[0], t.say(person, t.rng.choice(found[1])), "entailment")


def _to_compound(t: Teller, person: Person) -> Found:
    found = t.compound(person)
    if found is None or len(found[1]) < 2:
        return None
    return t.say(person, t.rng.choice(found[1]), True), found[0], "neutral"


def _fact_to_bleached(t: Teller, person: Person) -> Found:
    premise = t.say(person, t.fact(person), True)
    if t.rng.random() < 0.35:
        premise = t.unlisted(person)[0]
    return premise, t.bleached(person), "entailment"


def _bleached_to_bleached(t: Teller, person: Person) -> Found:
    return t.bleached_list(person), t.bleached(person), "entailment"


def _bleached_premise(t: Teller, person: Person) -> Found:
    return t.bleached_list(person), t.say(person, t.fact(person)), "neutral"


def _independent(left: Fact, right: Fact) -> bool:
    """Whether two true facts of a person say nothing about each other."""
    if implies(left, right) or implies(right, left):
        return False
    return left.prop != right.prop or not left.functional  # two aspects of one date go together


def _other_fact(t: Teller, person: Person) -> Found:
    left, right = t.fact(person), t.fact(person)
    if not _independent(left, right):
        return None
    return t.say(person, left, True), t.say(person, right), "neutral"


def _other_value_open(t: Teller, person: Person) -> Found:
    """Several values may be true of a property that is not functional: neutral."""
    fact = t.fact(person)
    other = None if fact.functional else t.world.other_value(t.rng, person, fact)
    return other and (t.say(person, fact, True), t.say(person, other), "neutral")


def _other_value(t: Teller, person: Person) -> Found:
    fact = t.fact(person)
    other = t.world.other_value(t.rng, person, fact) if fact.functional else None
    if other is None:
        return None
    left, right = (fact, other) if t.rng.random() < 0.5 else (other, fact)
    return t.say(person, left, True), t.say(person, right), "contradiction"


def _other_person(t: Teller, person: Person) -> Found:
    """A fact about somebody else of another name says nothing about this person."""
    other, fact = t.person(), t.fact(person)
    if other.name == person.name:
        return None
    told = t.world.say(t.rng, other, fact, Voice("full", t.rng.random() < 0.6))
    return told, t.world.say(t.rng, person, fact, Voice("full", True)), "neutral"


def _unlisted(t: Teller, person: Person) -> Found:
    """Sounds generic, but is specific: not entailed by bleached statements, nor by facts."""
    hypothesis, kind, _ = t.unlisted(person)
    roll = t.rng.random()
    if roll < 0.5:
        premise = t.bleached_list(person)
    elif roll < 0.85:
        premise = t.say(person, t.fact(person), True)
    else:
        premise, other, _ = t.unlisted(person)
        if other == kind:
            return None
    return premise, hypothesis, "neutral"


def _unlisted_premise(t: Teller, person: Person) -> Found:
    return t.unlisted(person)[0], t.say(person, t.fact(person)), "neutral"


def _unlisted_paraphrase(t: Teller, person: Person) -> Found:
    found = t.unlisted_pair(person)
    return found and (*found, "entailment")


def _page_fact(t: Teller, person: Person) -> Found:
    page, facts = t.page(person)
    return page, t.say(person, t.rng.choice(facts)), "entailment"


def _page_missing(t: Teller, person: Person) -> Found:
    page, facts = t.page(person)
    if t.rng.random() < 0.35:
        return page, t.unlisted(person)[0], "neutral"
    missing = t.fact(person)
    if not all(_independent(fact, missing) for fact in facts):
        return None
    return page, t.say(person, missing), "neutral"


def _page_contradicted(t: Teller, person: Person) -> Found:
    page, facts = t.page(person)
    functional = [fact for fact in facts if fact.functional]
    if not functional:
        return None
    other = t.world.other_value(t.rng, person, t.rng.choice(functional))
    return other and (page, t.say(person, other), "contradiction")


_MAKERS: dict[str, Callable[[Teller, Person], Found]] = {
    "paraphrase": _paraphrase,
    "embellished": _embellished,
    "coarser": _coarser,
    "finer": _finer,
    "part": _part,
    "to_compound": _to_compound,
    "fact_to_bleached": _fact_to_bleached,
    "bleached_to_bleached": _bleached_to_bleached,
    "bleached_premise": _bleached_premise,
    "other_fact": _other_fact,
    "other_value_open": _other_value_open,
    "other_value": _other_value,
    "other_person": _other_person,
    "unlisted": _unlisted,
    "unlisted_premise": _unlisted_premise,
    "unlisted_paraphrase": _unlisted_paraphrase,
    "page_fact": _page_fact,
    "page_missing": _page_missing,
    "page_contradicted": _page_contradicted,
}
