"""UNLI pairs: the label is how often the hypothesis holds where the premise does.

Core (2407.03572, section 3) reads p(claim | bleached claim) from a model of Chen et al. 2020.
Here a statement of a fact is labelled with its conditional frequency in the knowledge base, so
that the likelihood of a claim falls with its specificity; everything that is true of anyone is
near 1 whatever the premise, and what the premise says or denies is near 1 or 0.
"""

import random
from collections import Counter
from collections.abc import Callable

from data_builders.kb.facts import Person
from data_builders.kb.kb_pairs.common_facts import Common
from data_builders.kb.kb_pairs.teller import Teller, distinct_pairs, labelled
from data_builders.kb.kb_pairs.world import Shares, World
from data_builders.kb.language.statements import Fact
from records import Claim, Document, UnliPair

# Fixed values, no counts: subjective probabilities are seldom 0 or 1.
ENTAILED, EMBELLISHED, CONTRADICTED = 0.97, 0.9, 0.02
# A share is given as it is, but never below this: nothing is impossible for want of a case.
FLOOR = 0.002


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

    def draw_fact(self, person: Person) -> Fact:
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
            asker, KINDS, number, "UNLI", dropped
        )
    ]
    rng.shuffle(pairs)
    return pairs


def _share(a: Asker, person: Person) -> Found:
    asked = a.draw_fact(person)
    label, counted = a.share([], asked)
    return a.bleached_list(person), a.say(person, asked), label, counted


def _share_common(a: Asker, person: Person) -> Found:
    asked = a.common.draw(a.rng, person)
    if asked is None:
        return None
    label, counted = a.share([], asked)
    return a.bleached_list(person), a.say(person, asked), label, counted


def _share_given(a: Asker, person: Person) -> Found:
    asked = a.draw_fact(person)
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


KINDS: dict[str, tuple[int, Callable[[Asker, Person], Found]]] = {
    "bleached_to_bleached": (18, lambda a, p: (a.bleached_list(p), a.bleached(p), ENTAILED, {})),
    "fact_to_bleached": (10, lambda a, p: (a.specific(p), a.bleached(p), ENTAILED, {})),
    "share": (20, _share),
    "share_common": (6, _share_common),
    "share_given": (12, _share_given),
    "unlisted": (12, _unlisted),
    "paraphrase": (8, _paraphrase),
    "embellished": (5, _embellished),
    "part": (4, _part),
    "page_fact": (2, _page_fact),
    "contradicted": (6, labelled(Teller.contradiction, CONTRADICTED, {})),
}


# Shares of the people of whom a common and a specific fact holds; what holds of more than the first
# range is as good as bleached, what lies between the two is neither.
COMMON, SPECIFIC = (0.3, 0.8), (0, 0.05)


def class_claims(world: World, shares: Shares, number: int, seed: int) -> list[Document]:
    """One document a person and class: ``bleached``, ``common``, ``specific`` and ``unlisted``.

    What w_Info has to put in order: Core (2407.03572, section 3) weights a claim by its surprise
    given what is true of anyone. ``python -m eval experiment informativeness`` reads them.

    All claims but those of ``unlisted``, which the knowledge base does not hold, are true. Counted
    claims carry the fact (``asked``) and its share as two numbers (``counts``).

    Args:
        world: the split's people and facts.
        shares: counts over the whole knowledge base.
        number: at most how many claims a document.
        seed: of all choices.
    """
    found = []
    for person in world.people:
        rng = random.Random(f"{seed}:claims:{world.split}:{person.iri}")
        asker = Asker(world, rng, shares, 1)
        classes = {
            "bleached": [(asker.bleached(person), {}) for _ in range(number)],
            **_counted(asker, person, number),
            "unlisted": [(asker.unlisted(person)[0], {}) for _ in range(number)],
        }
        found += [_document(person, kind, said) for kind, said in classes.items() if said]
    return found


def _document(person: Person, kind: str, said: list[tuple[str, dict]]) -> Document:
    claims = [
        Claim(id=f"c{index}", text=text, **counted)
        for index, (text, counted) in enumerate(dict(said).items())
    ]
    return Document(
        id=f"{person.iri.rsplit('/', 1)[-1]}-{kind}",
        topic=person.name,
        text=" ".join(claim.text for claim in claims),
        claims=claims,
        kind=kind,
        group=person.group,
        bin=person.frequency_name,
        person=person.iri,
    )


def _counted(asker: Asker, person: Person, number: int) -> dict[str, list[tuple[str, dict]]]:
    by_key: dict[str, dict[str, list[tuple[Fact, dict]]]] = {"common": {}, "specific": {}}
    for fact in [*asker.world.facts(person), *asker.common.all_of(person)]:
        share, counted = asker.share([], fact)
        for kind, (low, high) in (("common", COMMON), ("specific", SPECIFIC)):
            if low <= share <= high:
                by_key[kind].setdefault(fact.key, []).append((fact, counted))
    return {
        kind: [_said(asker, person, found) for _ in range(number if found else 0)]
        for kind, found in by_key.items()
    }


def _said(
    asker: Asker, person: Person, by_key: dict[str, list[tuple[Fact, dict]]]
) -> tuple[str, dict]:
    fact, counted = asker.rng.choice(by_key[asker.rng.choice(sorted(by_key))])
    return asker.say(person, fact), {"asked": counted["asked"], "counts": counted["counts"]}
