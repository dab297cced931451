"""UNLI pairs, labelled with the probability of the hypothesis given the premise.

Core (2407.03572, section 3) reads p(claim | bleached claim) from a model of Chen et al. 2020. Here
a fact is labelled with its conditional frequency in the knowledge base, so the probability of a
claim falls with its specificity; statements that are true of anyone are near 1 for any premise, and
hypotheses that the premise states or denies are near 1 or 0.
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

# Fixed values: subjective probabilities are seldom 0 or 1.
ENTAILED, EMBELLISHED, CONTRADICTED = 0.97, 0.9, 0.02
FLOOR = 0.002  # least share: unobserved is not impossible

LabelledPair = tuple[str, str, float, dict] | None


class Asker(Teller):
    """A teller with access to shares; a premise must hold for at least ``least`` people."""

    def __init__(self, world: World, rng: random.Random, shares: Shares, least: int):
        super().__init__(world, rng)
        self.shares = shares
        self.common = Common(world)
        self.least = least

    def share(self, condition: list[Fact], target: Fact) -> tuple[float, dict]:
        """Return the conditional frequency and its counts."""
        both, total = self.shares.counts(condition, target)
        counted = {
            "given": [str(fact) for fact in condition],
            "asked": str(target),
            "counts": [both, total],
        }
        return max(FLOOR, round(both / total, 4)), counted

    def draw_fact(self, person: Person) -> Fact:
        """Draw a fact of the person or, equally often, of anyone."""
        return self.fact(person) if self.rng.random() < 0.5 else self.world.any_value(self.rng)


def unli_pairs(
    world: World, shares: Shares, number: int, least: int, seed: int, dropped: Counter[str]
) -> list[UnliPair]:
    """Make about ``number`` UNLI pairs of one split.

    A premise with a share must hold for at least ``least`` people. ``dropped`` counts the missing.
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


def _share(a: Asker, person: Person) -> LabelledPair:
    target = a.draw_fact(person)
    label, counted = a.share([], target)
    return a.bleached_list(person), a.say(person, target), label, counted


def _share_common(a: Asker, person: Person) -> LabelledPair:
    target = a.common.draw(a.rng, person)
    if target is None:
        return None
    label, counted = a.share([], target)
    return a.bleached_list(person), a.say(person, target), label, counted


def _share_given(a: Asker, person: Person) -> LabelledPair:
    target = a.draw_fact(person)
    if a.rng.random() < 0.2:
        target = a.common.draw(a.rng, person) or target
    stated = a.compound(person) if a.rng.random() < 0.3 else None
    if stated is None:
        fact = a.fact(person)
        stated = (a.say(person, fact, True), [fact])
    premise, condition = stated
    if target.prop in {fact.prop for fact in condition}:
        return None
    if a.shares.count(condition) < a.least:
        return None
    label, counted = a.share(condition, target)
    return premise, a.say(person, target), label, counted


def _unlisted(a: Asker, person: Person) -> LabelledPair:
    hypothesis, _, prior = a.unlisted(person)
    if a.rng.random() < 0.6:
        return a.bleached_list(person), hypothesis, prior, {}
    return a.say(person, a.fact(person), True), hypothesis, prior, {}


def _paraphrase(a: Asker, person: Person) -> LabelledPair:
    if a.rng.random() < 0.25:
        pair = a.unlisted_pair(person)
        return pair and (*pair, ENTAILED, {})
    fact = a.fact(person)
    stated = fact if not fact.coarser or a.rng.random() < 0.6 else a.rng.choice(fact.coarser)
    return a.say(person, fact, True, 0), a.say(person, stated, False, 0), ENTAILED, {}


def _embellished(a: Asker, person: Person) -> LabelledPair:
    fact = a.occupation(person)
    return a.say(person, fact, True, 0.3), a.say(person, fact, False, 1), EMBELLISHED, {}


def _part(a: Asker, person: Person) -> LabelledPair:
    compound = a.compound(person)
    return compound and (
        compound[0],
        a.say(person, a.rng.choice(compound[1]), False, 0),
        ENTAILED,
        {},
    )


def _page_fact(a: Asker, person: Person) -> LabelledPair:
    page, facts = a.page(person)
    return page, a.say(person, a.rng.choice(facts), False, 0), ENTAILED, {}


KINDS: dict[str, tuple[int, Callable[[Asker, Person], LabelledPair]]] = {
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


# Ranges of shares. Larger shares are practically bleached; those in between are not used.
COMMON, SPECIFIC = (0.3, 0.8), (0, 0.05)


def class_claims(world: World, shares: Shares, number: int, seed: int) -> list[Document]:
    """Make one document per person and class: ``bleached``, ``common``, ``specific``, ``unlisted``.

    They evaluate w_Info: Core (2407.03572, section 3) weights a claim by its surprise given what is
    true of anyone. ``python -m eval experiment informativeness`` reads them. All claims except
    ``unlisted`` are true. Counted claims have the fact (``asked``) and its share as two numbers
    (``counts``).
    """
    documents = []
    for person in world.people:
        rng = random.Random(f"{seed}:claims:{world.split}:{person.iri}")
        asker = Asker(world, rng, shares, 1)
        classes = {
            "bleached": [(asker.bleached(person), {}) for _ in range(number)],
            **_counted(asker, person, number),
            "unlisted": [(asker.unlisted(person)[0], {}) for _ in range(number)],
        }
        documents += [
            _document(person, kind, statements)
            for kind, statements in classes.items()
            if statements
        ]
    return documents


def _document(person: Person, kind: str, statements: list[tuple[str, dict]]) -> Document:
    claims = [
        Claim(id=f"c{index}", text=text, **counted)
        for index, (text, counted) in enumerate(dict(statements).items())
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
        kind: [_state(asker, person, facts_of) for _ in range(number if facts_of else 0)]
        for kind, facts_of in by_key.items()
    }


def _state(
    asker: Asker, person: Person, by_key: dict[str, list[tuple[Fact, dict]]]
) -> tuple[str, dict]:
    fact, counted = asker.rng.choice(by_key[asker.rng.choice(sorted(by_key))])
    return asker.say(person, fact), {"asked": counted["asked"], "counts": counted["counts"]}
