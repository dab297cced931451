"""Generations: biographies with known truth, and texts in the style of the two adversaries.

Core (2407.03572, section 5) attacks factual precision with uninformative texts (true of anyone)
and repetitive ones (one fact over and over). False statements exist only here, at run time: a
value is put in the place of another of the same property, and the sentence is marked.
"""

import random
from collections.abc import Iterable, Iterator, Sequence

from data_builders.kb.facts import DATES, Person
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import Fact, facts_of
from data_builders.kb.language.wording import Voice, bank, bleached, capital, speak, with_article
from records import Claim, Document, Generation, Passage

GENERATOR = "kb_pairs"
LEAST_WORDINGS = 14


def generations(world: World, per_kind: int, corrupted: float, seed: int) -> Iterator[Generation]:
    """Texts about every person of a split.

    Args:
        world: the split's people and facts.
        per_kind: texts of each kind a person.
        corrupted: probability that a sentence of a normal biography is made false.
        seed: of all choices.
    """
    for person in world.people:
        rng = random.Random(f"{seed}:generations:{world.split}:{person.iri}")
        for _ in range(per_kind):
            yield _generation(person, "normal", _normal(rng, world, person, corrupted))
            yield _generation(person, "uninformative", _uninformative(rng, world, person))
            told = list(_repetitive(rng, world, person))
            if told:
                yield _generation(person, "repetitive", told)


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
    if index == 0:
        return Voice("full", past)
    return Voice(rng.choices(("pronoun", "surname", "full"), (5, 3, 2))[0], past)


def _normal(
    rng: random.Random, world: World, person: Person, corrupted: float
) -> Iterator[tuple[str, bool]]:
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


def _repetitive(
    rng: random.Random, world: World, person: Person, pronouns: bool = True
) -> Iterator[tuple[str, bool]]:
    wordings = [(f, world.templates(f)) for f in world.facts(person)]
    wordings = [(f, templates) for f, templates in wordings if len(templates) >= LEAST_WORDINGS]
    if not wordings:
        return
    fact, templates = rng.choice(wordings)
    past = rng.random() < 0.5
    number = min(len(templates), rng.randint(LEAST_WORDINGS, 24))
    seen: set[str] = set()
    for index, template in enumerate(rng.sample(templates, number)):
        voice = _voice(rng, index, past) if pronouns else Voice("full", past)
        embellished = rng.random() < 0.3
        text = world.say(rng, person, fact, voice, embellished=embellished, template=template)
        if text not in seen:
            seen.add(text)
            yield text, True


# Of one property, so that a text is not about occupations alone.
MOST_OF_A_PROPERTY = 4
# False sentences before the fact that a padded text repeats.
HIDDEN = 3


# Claims that a long biography needs, and the share of them that is made false.
PROFILE_CLAIMS, PROFILE_FALSE = 10, 0.5


def profiles(worlds: Sequence[World], seed: int) -> Iterator[Document]:
    """A long biography of every person of whom enough is known, a share of its facts made false.

    Args:
        worlds: of one set of people, each with the properties and wordings of a split: so many
            different facts no split has by itself. The people are of none that was trained on.
        seed: of all choices.

    Yields:
        Documents whose ``claims`` are their sentences, with the labels S and NS.
    """
    people = {person.iri: person for world in worlds for person in world.people}
    for iri, person in sorted(people.items()):
        rng = random.Random(f"{seed}:profile:{iri}")
        known = [(w, f) for w in worlds for f in _finest(rng, w.known.get(iri, {}))]
        if len(known) >= PROFILE_CLAIMS:
            yield _labelled(person, list(_profile(rng, person, known)), "normal")


def padded(
    worlds: Sequence[World], biographies: Iterable[Document], seed: int
) -> Iterator[Document]:
    """Falsehoods hidden behind repetition: false sentences of a biography, then one true fact.

    The fact is said in as many wordings as ``generations`` says it. A text of that fact alone is
    true, and no metric is gamed by it; one with falsehoods before it is the attack.

    Args:
        worlds: as for ``profiles``, whose texts ``biographies`` are.
    """
    people = {person.iri: person for world in worlds for person in world.people}
    for document in biographies:
        person = people[document.person]
        rng = random.Random(f"{seed}:padded:{person.iri}")
        repeated = [list(_repetitive(rng, world, person, pronouns=False)) for world in worlds]
        hidden = [(c.text, False) for c in document.claims if c.label == "NS"][:HIDDEN]
        if any(repeated) and hidden:
            told = rng.choice([own for own in repeated if own])
            yield _labelled(person, hidden + told, "repetitive", "_padded")


def _finest(rng: random.Random, known: dict[str, list[Fact]]) -> Iterator[Fact]:
    for facts in known.values():
        finest = [f for f in facts if not any(f in other.coarser for other in facts)]
        keep = rng.sample(finest, min(len(finest), MOST_OF_A_PROPERTY))
        yield from (fact for fact in finest if fact in keep)


def _profile(
    rng: random.Random, person: Person, known: list[tuple[World, Fact]]
) -> Iterator[tuple[str, bool]]:
    others = [world.other_value(rng, person, fact) for world, fact in known]
    can = [place for place, other in enumerate(others) if other is not None]
    false = set(rng.sample(can, min(len(can), round(PROFILE_FALSE * len(known)))))
    for place, (world, fact) in enumerate(known):
        told = others[place] if place in false else fact
        # The full name throughout: a claim is read without the sentence before it.
        yield world.say(rng, person, told, Voice("full", True)), place not in false


def _labelled(
    person: Person, told: list[tuple[str, bool]], kind: str, suffix: str = ""
) -> Document:
    return Document(
        id=person.iri.rsplit("/", 1)[-1] + suffix,
        topic=person.name,
        text=" ".join(text for text, _ in told),
        claims=[
            Claim(id=f"c{n}", text=text, sentence=n, source=text, label="S" if true else "NS")
            for n, (text, true) in enumerate(told)
        ],
        kind=kind,
        generator=GENERATOR,
        group=person.group,
        bin=person.frequency_name,
        person=person.iri,
    )


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
