"""Relation pairs: entailed, contradicted and unrelated statements about a fact.

The kinds are balanced so that neither a generic hypothesis nor the same person predicts entailment:
a bleached claim does not entail a fact ("X is a person." / "X is an actor."), nothing entails
unlisted statements ("X won several prizes."), while paraphrases, embellishments and bleached
statements are entailed. Only functional properties contradict.
"""

import random
from collections import Counter
from collections.abc import Callable

from data_builders.kb.facts import Person
from data_builders.kb.kb_pairs.teller import Kinds, Teller, distinct_pairs, labelled
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import independent
from data_builders.kb.language.wording import Voice
from records import RelationPair

LabelledPair = tuple[str, str, str] | None


def relation_pairs(
    world: World, number: int, seed: int, dropped: Counter[str]
) -> list[RelationPair]:
    """Make about ``number`` relation pairs of one split.

    ``dropped`` counts missing pairs by kind.
    """
    teller = Teller(world, random.Random(f"{seed}:relation:{world.split}"))
    return labelled_pairs(teller, KINDS, number, "relation", dropped)


def labelled_pairs(
    teller: Teller, kinds: Kinds, number: int, name: str, dropped: Counter[str]
) -> list[RelationPair]:
    """Make shuffled relation pairs of all kinds; arguments as for ``distinct_pairs``."""
    pairs = [
        RelationPair(
            premise=premise,
            hypothesis=hypothesis,
            label=label,
            source=f"kb/{kind}",
            person=person.iri,
            facts=[str(fact) for fact in teller.stated_facts],
        )
        for kind, person, (premise, hypothesis, label) in distinct_pairs(
            teller, kinds, number, name, dropped
        )
    ]
    teller.rng.shuffle(pairs)
    return pairs


def _paraphrase(t: Teller, person: Person) -> LabelledPair:
    fact = t.fact(person)
    return t.say(person, fact, True, 0), t.say(person, fact, False, 0), "entailment"


def _embellished(t: Teller, person: Person) -> LabelledPair:
    fact = t.occupation(person)
    dressed, other = t.rng.choice(((1, 0), (0, 1), (1, 1)))
    return t.say(person, fact, True, dressed), t.say(person, fact, False, other), "entailment"


def _coarser(t: Teller, person: Person) -> LabelledPair:
    fact = t.fact(person)
    if not fact.coarser:
        return None
    return t.say(person, fact, True), t.say(person, t.rng.choice(fact.coarser)), "entailment"


def _finer(t: Teller, person: Person) -> LabelledPair:
    fact = t.fact(person)
    if not fact.coarser:
        return None
    return t.say(person, t.rng.choice(fact.coarser), True), t.say(person, fact), "neutral"


def _part(t: Teller, person: Person) -> LabelledPair:
    compound = t.compound(person)
    return compound and (compound[0], t.say(person, t.rng.choice(compound[1])), "entailment")


def _to_compound(t: Teller, person: Person) -> LabelledPair:
    compound = t.compound(person)
    if compound is None or len(compound[1]) < 2:
        return None
    return t.say(person, t.rng.choice(compound[1]), True), compound[0], "neutral"


def _other_fact(t: Teller, person: Person) -> LabelledPair:
    left, right = t.fact(person), t.fact(person)
    if not independent(left, right):
        return None
    return t.say(person, left, True), t.say(person, right), "neutral"


def _other_value_open(t: Teller, person: Person) -> LabelledPair:
    fact = t.fact(person)
    other = None if fact.functional else t.world.other_value(t.rng, person, fact)
    return other and (t.say(person, fact, True), t.say(person, other), "neutral")


def _other_person(t: Teller, person: Person) -> LabelledPair:
    other, fact = t.person(), t.fact(person)
    if other.name == person.name:
        return None
    premise = t.world.say(t.rng, other, fact, Voice("full", t.rng.random() < 0.6))
    return premise, t.world.say(t.rng, person, fact, Voice("full", True)), "neutral"


def _unlisted(t: Teller, person: Person) -> LabelledPair:
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


def _page_fact(t: Teller, person: Person) -> LabelledPair:
    page, facts = t.page(person)
    return page, t.say(person, t.rng.choice(facts)), "entailment"


def _page_missing(t: Teller, person: Person) -> LabelledPair:
    page, facts = t.page(person)
    if t.rng.random() < 0.35:
        return page, t.unlisted(person)[0], "neutral"
    missing = t.fact(person)
    if not all(independent(fact, missing) for fact in facts):
        return None
    return page, t.say(person, missing), "neutral"


def _page_contradicted(t: Teller, person: Person) -> LabelledPair:
    page, facts = t.page(person)
    functional = [fact for fact in facts if fact.functional]
    if not functional:
        return None
    other = t.world.other_value(t.rng, person, t.rng.choice(functional))
    return other and (page, t.say(person, other), "contradiction")


# Share of each kind. Entailment 43 %, neutral 42 %, contradiction 15 %.
KINDS: dict[str, tuple[int, Callable[[Teller, Person], LabelledPair]]] = {
    "paraphrase": (13, _paraphrase),
    "embellished": (8, _embellished),
    "coarser": (3, _coarser),
    "part": (5, _part),
    "fact_to_bleached": (5, lambda t, p: (t.specific(p), t.bleached(p), "entailment")),
    "bleached_to_bleached": (8, lambda t, p: (t.bleached_list(p), t.bleached(p), "entailment")),
    "unlisted_paraphrase": (4, labelled(Teller.unlisted_pair, "entailment")),
    "bleached_premise": (12, lambda t, p: (t.bleached_list(p), t.say(p, t.fact(p)), "neutral")),
    "other_fact": (12, _other_fact),
    "unlisted": (12, _unlisted),
    "unlisted_premise": (2, lambda t, p: (t.unlisted(p)[0], t.say(p, t.fact(p)), "neutral")),
    "finer": (2, _finer),
    "to_compound": (3, _to_compound),
    "other_value_open": (2, _other_value_open),
    "other_person": (2, _other_person),
    "page_fact": (4, _page_fact),
    "page_missing": (3, _page_missing),
    "other_value": (14, labelled(Teller.contradiction, "contradiction")),
    "page_contradicted": (4, _page_contradicted),
}
