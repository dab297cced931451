"""The short page of every person: all their facts, in wordings that no split's statements use."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from data_builders.kb.facts import DATES, Person
from data_builders.kb.language.statements import facts_of
from data_builders.kb.language.wording import Voice, bank, capital, speak, with_article
from records import Passage


def passages(people: Sequence[Person], seed: int) -> Iterator[Passage]:
    """One passage a person; ``id`` is the end of the person's IRI, ``title`` the page's.

    Args:
        people: all people; all their facts are told, so that any statement can be verified.
        seed: of the choice of wordings.
    """
    for person in people:
        text = page(person, random.Random(f"{seed}:page:{person.iri}"))
        if text:
            yield Passage(
                id=person.iri.rsplit("/", 1)[-1],
                title=person.title,
                text=text,
                source="snapshot",
                person=person.iri,
            )


def page(person: Person, rng: random.Random) -> str:
    """A person's page: a sentence a property, which lists all its values; the name comes first."""
    sentences: list[str] = []
    for prop, templates in bank("pages").items():
        values = _values(person, prop)
        if not values:
            continue
        template = rng.choice(templates)
        if prop in DATES and all(value.isdecimal() for value in values):
            template = template.replace(" on {list}", " in {list}")  # of a date, the year alone
        if not sentences:
            # The first sentence needs the name, whichever property it is about.
            for pronoun, named in (("{his}", "{X's}"), ("{he}", "{X}")):
                if "{X" not in template:
                    template = template.replace(pronoun, named, 1)
        form = "full" if not sentences else rng.choice(("pronoun", "surname"))
        slots = {"list": _enumerate(values)}
        sentences.append(capital(speak(template, person, Voice(form, True), slots)))
    return " ".join(sentences)


def _values(person: Person, prop: str) -> list[str]:
    facts = facts_of(person, prop)
    if prop == "P106":
        return [with_article(fact.value) for fact in facts]
    if prop == "P21":
        return [fact.value for fact in facts]
    finest = [f for f in facts if not any(f in other.coarser for other in facts)]
    if prop in ("P166", "P54"):
        return [f"the {fact.slots['v']}" for fact in finest]
    return [fact.slots.get("v", fact.value) for fact in finest]


def _enumerate(values: Sequence[str]) -> str:
    *first, last = values
    return f"{', '.join(first)} and {last}" if first else last
