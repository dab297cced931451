"""Generations: biographies with known truth, and texts in the style of the two adversaries.

Core (2407.03572, section 5) attacks factual precision with uninformative texts (true of anyone)
and repetitive ones (one fact over and over). False statements exist only here, at run time: a
value is put in the place of another of the same property, and the sentence is marked.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from data_builders.kb.facts import Person
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import Fact
from data_builders.kb.language.wording import Voice, bank, bleached
from records import Generation

GENERATOR = "kb_pairs"
LEAST_WORDINGS = 14


def generations(world: World, per_kind: int, corrupted: float, seed: int) -> list[Generation]:
    """Texts about every person of a split.

    Args:
        world: the split's people and facts.
        per_kind: texts of each kind a person.
        corrupted: probability that a sentence of a normal biography is made false.
        seed: of all choices.
    """
    found = []
    for person in world.people:
        rng = random.Random(f"{seed}:generations:{world.split}:{person.iri}")
        for _ in range(per_kind):
            found.append(_generation(person, "normal", _normal(rng, world, person, corrupted)))
            found.append(_generation(person, "uninformative", _uninformative(rng, world, person)))
            told = list(_repetitive(rng, world, person))
            if told:
                found.append(_generation(person, "repetitive", told))
    return found


def _generation(person: Person, kind: str, told: Iterator[tuple[str, bool]]) -> Generation:
    sentences = [{"text": text, "true": true} for text, true in told]
    return Generation(
        topic=person.name,
        text=" ".join(sentence["text"] for sentence in sentences),
        kind=kind,
        generator=GENERATOR,
        group=person.group,
        bin=person.frequency_name,
        sentences=sentences,
        person=person.iri,
    )


def _voice(rng: random.Random, index: int, past: bool) -> Voice:
    """The full name first, then mostly a pronoun."""
    if index == 0:
        return Voice("full", past)
    return Voice(rng.choices(("pronoun", "surname", "full"), (5, 3, 2))[0], past)


def _normal(
    rng: random.Random, world: World, person: Person, corrupted: float
) -> Iterator[tuple[str, bool]]:
    """A biography in the order of the properties; of a date one aspect, lest it repeats itself."""
    facts: list[Fact] = []
    for known in world.known[person.iri].values():
        most = 1 if known and known[0].functional else 3
        keep = rng.sample(known, min(len(known), most))
        facts.extend(fact for fact in known if fact in keep)
    for index, fact in enumerate(facts):
        other = world.other_value(rng, person, fact) if rng.random() < corrupted else None
        told = other or fact
        yield world.say(rng, person, told, _voice(rng, index, True)), other is None


def _uninformative(rng: random.Random, world: World, person: Person) -> Iterator[tuple[str, bool]]:
    past = rng.random() < 0.4
    templates = rng.sample(bank("bleached")[world.split], rng.randint(10, 20))
    seen: set[str] = set()
    for index, template in enumerate(templates):
        text = bleached(rng, world.split, person, _voice(rng, index, past), template)
        if text not in seen:
            seen.add(text)
            yield text, True


def _repetitive(rng: random.Random, world: World, person: Person) -> Iterator[tuple[str, bool]]:
    """One fact in about twenty wordings, some of them with an empty embellishment."""
    wordings = [(f, world.templates(f)) for f in world.facts(person)]
    wordings = [(f, templates) for f, templates in wordings if len(templates) >= LEAST_WORDINGS]
    if not wordings:
        return
    fact, templates = rng.choice(wordings)
    past = rng.random() < 0.5
    number = min(len(templates), rng.randint(LEAST_WORDINGS, 24))
    seen: set[str] = set()
    for index, template in enumerate(rng.sample(templates, number)):
        text = world.say(
            rng,
            person,
            fact,
            _voice(rng, index, past),
            embellished=rng.random() < 0.3,
            template=template,
        )
        if text not in seen:
            seen.add(text)
            yield text, True
