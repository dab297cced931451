"""LSS examples: a claim of several clauses, and the words that the reference supports.

2308.12157, section 3: the longest supported subsequence of a claim's words. Clauses in the
reference are kept; true clauses that are not in the reference, wrong clauses and clauses outside
the knowledge base are removed. A joining word is kept between two kept clauses.
"""

import random
from collections import Counter

from data_builders.kb.facts import Person
from data_builders.kb.kb_pairs.teller import TRIES, Teller
from data_builders.kb.kb_pairs.world import World, paragraph
from data_builders.kb.language.statements import Fact, implies
from data_builders.kb.language.wording import PRONOUNS, Voice, bank, reveals_sex, slots_of, speak
from records import Annotation, LssExample

SUPPORTED, MISSING, WRONG, UNLISTED = "supported", "missing", "wrong", "unlisted"


def lss_examples(world: World, number: int, seed: int, dropped: Counter[str]) -> list[LssExample]:
    """Make the LSS examples of one split; arguments as for ``relation_pairs``.

    The rating is a rule, not human: 1 + 4 times the share of supported clauses.
    """
    teller = Teller(world, random.Random(f"{seed}:lss:{world.split}"))
    seen: set[tuple[str, str]] = set()
    examples: list[LssExample] = []
    for _ in range(number * TRIES):
        if len(examples) == number:
            break
        example = _example(teller, teller.person(), f"{world.split}-{len(examples)}")
        if example is None or (example.reference, example.claim) in seen:
            continue
        seen.add((example.reference, example.claim))
        examples.append(example)
    dropped["LSS example not found"] += number - len(examples)
    return examples


def _example(teller: Teller, person: Person, name: str) -> LssExample | None:
    rng, world = teller.rng, teller.world
    facts = [f for f in world.facts(person) if f.aspect in ("", "year")]
    if not facts:
        return None
    rng.shuffle(facts)
    stated = facts[: rng.randint(1, min(5, len(facts)))]
    missing = [f for f in facts if f not in stated]
    clauses: list[tuple[str, str]] = []
    used: set[str] = set()
    for _ in range(rng.choices((1, 2, 3, 4), (1, 4, 4, 2))[0]):
        state = rng.choices((SUPPORTED, MISSING, WRONG, UNLISTED), (55, 12, 20, 13))[0]
        clause = _clause(teller, person, state, stated, missing, used)
        if clause is not None:
            clauses.append(clause)
    if not clauses:
        return None
    reference = _reference(teller, person, stated)
    if reveals_sex(reference) and any(f.prop == "P21" and str(f) in used for f in missing):
        return None  # pronouns of the reference support the clause
    claim, lss = _join(teller, person, clauses)
    kept = sum(state == SUPPORTED for _, state in clauses)
    rating = round(1 + 4 * kept / len(clauses), 2)
    return LssExample(
        reference=reference,
        claim=claim,
        annotations=[Annotation(lss=lss, rating=rating)],
        id=name,
        source="kb/lss",
        person=person.iri,
    )


def _reference(teller: Teller, person: Person, stated: list[Fact]) -> str:
    text = paragraph(teller.rng, teller.world, person, stated)
    return f"{text} {teller.bleached(person)}" if teller.rng.random() < 0.3 else text


def _clause(
    teller: Teller,
    person: Person,
    state: str,
    stated: list[Fact],
    missing: list[Fact],
    used: set[str],
) -> tuple[str, str] | None:
    rng, world = teller.rng, teller.world
    if state == UNLISTED:
        template, slots = rng.choice(world.clauses["unlisted"]), {}
        mark = template
    else:
        pool = missing if state == MISSING else stated
        fact: Fact | None = rng.choice(pool) if pool else None
        if fact is not None and state == WRONG:
            fact = world.other_value(rng, person, fact)
        if fact is None:
            return None
        if state == MISSING and any(implies(other, fact) for other in stated):
            state = SUPPORTED  # "poet" implies "writer"
        slots = fact.slots | {"v": fact.slots.get("v", fact.value)}
        fitting = [t for t in world.clauses[fact.prop] if slots_of(t) <= slots.keys()]
        template, mark = rng.choice(fitting), str(fact)
    if mark in used:
        return None
    used.add(mark)
    return speak(template, person, Voice("surname"), slots), state


def _join(teller: Teller, person: Person, clauses: list[tuple[str, str]]) -> tuple[str, str]:
    pronoun = PRONOUNS[person.sex or "they"]["he"]
    claim, kept = person.name, ""
    if len(clauses) > 1 and teller.rng.random() < 0.25:
        return _join_relative(person, clauses)
    for index, (clause, state) in enumerate(clauses):
        join = teller.rng.choice(bank("clauses")["joins"][teller.split])
        join = join.replace("{he}", pronoun)
        glue = "" if index == 0 else join if join.startswith(",") else f" {join}"
        claim += f"{glue} {clause}"
        if state == SUPPORTED:
            kept += f" {clause}" if not kept else f"{glue} {clause}"
    return f"{claim}.", f"{person.name}{kept}." if kept else ""


def _join_relative(person: Person, clauses: list[tuple[str, str]]) -> tuple[str, str]:
    (first, state), *rest_clauses = clauses
    claim = f"{person.name}, who {first}, {' and '.join(clause for clause, _ in rest_clauses)}."
    rest = " and ".join(clause for clause, state in rest_clauses if state == SUPPORTED)
    if state != SUPPORTED:
        return claim, f"{person.name} {rest}." if rest else ""
    return claim, f"{person.name}, who {first}, {rest}." if rest else f"{person.name} {first}."
