"""UNLI pairs: the label is how often the hypothesis holds where the premise does.

Core (2407.03572, section 3) reads p(claim | bleached claim) from a model of Chen et al. 2020.
Here a statement of a fact is labelled with its conditional frequency in the knowledge base, so
that the likelihood of a claim falls with its specificity; everything that is true of anyone is
near 1 whatever the premise, and what the premise says or denies is near 1 or 0.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from data_builders.kb.facts import Person
from data_builders.kb.kb_pairs.common import Common
from data_builders.kb.kb_pairs.teller import Teller, distinct_pairs
from data_builders.kb.kb_pairs.world import Shares, World
from data_builders.kb.language.statements import Fact
from records import UnliPair

# Fixed values, no counts: subjective probabilities are seldom 0 or 1.
ENTAILED, EMBELLISHED, CONTRADICTED = 0.97, 0.9, 0.02
# A share is given as it is, but never below this: nothing is impossible for want of a case.
FLOOR = 0.002

KINDS = {
    "bleached_to_bleached": 18,
    "fact_to_bleached": 10,
    "share": 20,
    "share_common": 6,
    "share_given": 12,
    "unlisted": 12,
    "paraphrase": 8,
    "embellished": 5,
    "part": 4,
    "page_fact": 2,
    "contradicted": 6,
}

Found = tuple[str, str, float, dict] | None


class Asker(Teller):
    """A teller that can ask for shares.

    Args:
        shares: counts over the knowledge base.
        least: a premise's facts must hold for at least this many people.
    """

    def __init__(self, world: World, rng: random.Random, shares: Shares, least: int):
        super().__init__(world, rng)
        self.shares = shares
        self.common = Common(world)
        self.least = least

    def share(self, given: list[Fact], asked: Fact) -> tuple[float, dict]:
        """The conditional frequency, and what it was counted from."""
        both, all_given = self.shares.counts(given, asked)
        counted = {
            "given": [str(fact) for fact in given],
            "asked": str(asked),
            "counts": [both, all_given],
        }
        return max(FLOOR, round(both / all_given, 4)), counted

    def asked(self, person: Person) -> Fact:
        """A fact of the person or, as often, of anybody."""
        return self.fact(person) if self.rng.random() < 0.5 else self.world.any_value(self.rng)


def unli_pairs(
    world: World, shares: Shares, number: int, least: int, seed: int, dropped: Counter[str]
) -> list[UnliPair]:
    """UNLI pairs of one split.

    Args:
        world: the split's people and facts.
        shares: counts over the whole knowledge base.
        number: about how many; fewer where a kind has not enough to say.
        least: a premise with a share must hold for at least this many people.
        seed: of all choices.
        dropped: counts the pairs that could not be made, by kind.
    """
    rng = random.Random(f"{seed}:unli:{world.split}")
    asker = Asker(world, rng, shares, least)
    pairs = [
        UnliPair(
            premise=premise,
            hypothesis=hypothesis,
            label=label,
            source=f"{'prior' if kind == 'unlisted' else 'kb'}/{kind}",
            person=person.iri,
            **more,
        )
        for kind, person, (premise, hypothesis, label, more) in distinct_pairs(
            asker, KINDS, _MAKERS, number, "UNLI", dropped
        )
    ]
    rng.shuffle(pairs)
    return pairs


def _bleached_to_bleached(a: Asker, person: Person) -> Found:
    return a.bleached_list(person), a.bleached(person), ENTAILED, {}


def _fact_to_bleached(a: Asker, person: Person) -> Found:
    return a.specific(person), a.bleached(person), ENTAILED, {}


def _share(a: Asker, person: Person) -> Found:
    asked = a.asked(person)
    label, counted = a.share([], asked)
    return a.bleached_list(person), a.say(person, asked), label, counted


def _share_common(a: Asker, person: Person) -> Found:
    asked = a.common.draw(a.rng, person)
    if asked is None:
        return None
    label, counted = a.share([], asked)
    return a.bleached_list(person), a.say(person, asked), label, counted


def _share_given(a: Asker, person: Person) -> Found:
    asked = a.asked(person)
    if a.rng.random() < 0.2:
        asked = a.common.draw(a.rng, person) or asked
    found = a.compound(person) if a.rng.random() < 0.3 else None
    if found is None:
        fact = a.fact(person)
        found = (a.say(person, fact, True), [fact])
    premise, given = found
    if asked.prop in {fact.prop for fact in given}:
        return None
    if a.shares.count(given) < a.least:
        return None
    label, counted = a.share(given, asked)
    return premise, a.say(person, asked), label, counted


def _unlisted(a: Asker, person: Person) -> Found:
    hypothesis, _, prior = a.unlisted(person)
    if a.rng.random() < 0.6:
        return a.bleached_list(person), hypothesis, prior, {}
    return a.say(person, a.fact(person), True), hypothesis, prior, {}


def _paraphrase(a: Asker, person: Person) -> Found:
    if a.rng.random() < 0.25:
        found = a.unlisted_pair(person)
        return found and (*found, ENTAILED, {})
    fact = a.fact(person)
    told = fact if not fact.coarser or a.rng.random() < 0.6 else a.rng.choice(fact.coarser)
    return a.say(person, fact, True, 0), a.say(person, told, False, 0), ENTAILED, {}


def _embellished(a: Asker, person: Person) -> Found:
    fact = a.occupation(person)
    return a.say(person, fact, True, 0.3), a.say(person, fact, False, 1), EMBELLISHED, {}


def _part(a: Asker, person: Person) -> Found:
    found = a.compound(person)
    return found and (found[0], a.say(person, a.rng.choice(found[1]), False, 0), ENTAILED, {})


def _page_fact(a: Asker, person: Person) -> Found:
    page, facts = a.page(person)
    return page, a.say(person, a.rng.choice(facts), False, 0), ENTAILED, {}


def _contradicted(a: Asker, person: Person) -> Found:
    found = a.contradiction(person)
    return found and (*found, CONTRADICTED, {})


_MAKERS: dict[str, Callable[[Asker, Person], Found]] = {
    "bleached_to_bleached": _bleached_to_bleached,
    "fact_to_bleached": _fact_to_bleached,
    "share": _share,
    "share_common": _share_common,
    "share_given": _share_given,
    "unlisted": _unlisted,
    "paraphrase": _paraphrase,
    "embellished": _embellished,
    "part": _part,
    "page_fact": _page_fact,
    "contradicted": _contradicted,
}
