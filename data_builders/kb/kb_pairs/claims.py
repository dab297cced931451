"""Claims about people by how many people they hold for: what w_Info has to put in order.

Core (2407.03572, section 3) weights a claim by its surprise given what is true of anyone. These
documents of claims, in the evaluation splits' people, wordings and properties, are what
``python -m eval experiment informativeness`` reads.
"""

from __future__ import annotations

import random

from data_builders.kb.facts import Person
from data_builders.kb.kb_pairs.unli import Asker, Shares
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import Fact
from records import Claim, Document

# Shares of the people of whom a common and a specific fact holds; what holds of more than the first
# range is as good as bleached, what lies between the two is neither.
COMMON, SPECIFIC = (0.3, 0.8), (0, 0.05)


def class_claims(world: World, shares: Shares, number: int, seed: int) -> list[Document]:
    """One document a person and class: ``bleached``, ``common``, ``specific`` and ``unlisted``.

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
