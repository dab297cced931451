"""Generations: biographies with known truth, and texts in the style of two adversaries.

Core (2407.03572, section 5) attacks factual precision with uninformative texts (true of anyone) and
repetitive ones (one fact many times). False statements are created only here: a value is replaced
by another one of the same property, and the sentence is marked.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence

from components.gold import GOLD_K
from data_builders.kb.facts import DATES, Person
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import Fact, facts_of
from data_builders.kb.language.wording import Voice, bank, bleached, capital, speak, with_article
from records import Claim, Document, Generation, Gold, Passage, gold_scores

GENERATOR = "kb_pairs"
LEAST_WORDINGS = 14


def generations(world: World, per_kind: int, corrupted: float, seed: int) -> Iterator[Generation]:
    """Generate ``per_kind`` texts of each kind about every person of a split.

    A sentence of a normal biography is made false with probability ``corrupted``.
    """
    for person in world.people:
        rng = random.Random(f"{seed}:generations:{world.split}:{person.iri}")
        for _ in range(per_kind):
            k = min(GOLD_K, sum(map(len, world.known[person.iri].values())))
            yield _generation(person, "normal", _normal(rng, world, person, corrupted), k)
            yield _generation(person, "uninformative", _uninformative(rng, world, person), k)
            repeated = list(_repetitive(rng, world, person))
            if repeated:
                yield _generation(person, "repetitive", repeated, k)


def _generation(
    person: Person, kind: str, marked: Iterable[tuple[str, bool]], k: int
) -> Generation:
    sentences = [{"text": text, "true": true} for text, true in marked]
    return Generation(
        topic=person.name,
        text=" ".join(sentence["text"] for sentence in sentences),
        kind=kind,
        generator=GENERATOR,
        group=person.group,
        bin=person.frequency_name,
        sentences=sentences,
        person=person.iri,
        gold=_gold([sentence["true"] for sentence in sentences], kind, k),
    )


def _voice(rng: random.Random, index: int, past: bool) -> Voice:
    if index == 0:
        return Voice("full", past)
    return Voice(rng.choices(("pronoun", "surname", "full"), (5, 3, 2))[0], past)


def _normal(
    rng: random.Random, world: World, person: Person, corrupted: float
) -> Iterator[tuple[str, bool]]:
    facts: list[Fact] = []
    for property_facts in world.known[person.iri].values():
        size = 1 if property_facts and property_facts[0].functional else 3
        keep = rng.sample(property_facts, min(len(property_facts), size))
        facts.extend(fact for fact in property_facts if fact in keep)
    for index, fact in enumerate(facts):
        other = world.other_value(rng, person, fact) if rng.random() < corrupted else None
        stated = other or fact
        yield world.say(rng, person, stated, _voice(rng, index, True)), other is None


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


MAX_PER_PROPERTY = 4  # facts of one property in a text
HIDDEN = 3  # false sentences before the repeated fact
PROFILE_CLAIMS, PROFILE_FALSE = 10, 0.5  # claims of a long biography, share of false ones


def profiles(worlds: Sequence[World], seed: int) -> Iterator[Document]:
    """Generate long biographies of people with enough facts, with a share of false ones.

    ``worlds`` have the same people, with the properties and wordings of each split, since one split
    has too few facts. None of the people is in the training data. The ``claims`` of a document are
    its sentences, with labels S and NS.
    """
    people = {person.iri: person for world in worlds for person in world.people}
    for iri, person in sorted(people.items()):
        rng = random.Random(f"{seed}:profile:{iri}")
        known_facts = [(w, f) for w in worlds for f in _finest(rng, w.known.get(iri, {}))]
        if len(known_facts) >= PROFILE_CLAIMS:
            sentences = list(_profile(rng, person, known_facts))
            yield _labelled(person, sentences, "normal", min(GOLD_K, len(known_facts)))


def padded(
    worlds: Sequence[World], biographies: Iterable[Document], seed: int
) -> Iterator[Document]:
    """Generate false sentences of a biography followed by many wordings of one true fact.

    A text of the repeated fact alone is true; the attack hides false sentences before it.
    """
    people = {person.iri: person for world in worlds for person in world.people}
    for document in biographies:
        person = people[document.person]
        rng = random.Random(f"{seed}:padded:{person.iri}")
        repeated = [list(_repetitive(rng, world, person, pronouns=False)) for world in worlds]
        hidden = [(c.text, False) for c in document.claims if c.label == "NS"][:HIDDEN]
        if any(repeated) and hidden:
            repetition = rng.choice([sentences for sentences in repeated if sentences])
            sentences = hidden + repetition
            yield _labelled(person, sentences, "repetitive", document.gold.k, "_padded")


def _finest(rng: random.Random, facts_by_property: dict[str, list[Fact]]) -> Iterator[Fact]:
    for facts in facts_by_property.values():
        finest = [f for f in facts if not any(f in other.coarser for other in facts)]
        keep = rng.sample(finest, min(len(finest), MAX_PER_PROPERTY))
        yield from (fact for fact in finest if fact in keep)


def _profile(
    rng: random.Random, person: Person, known_facts: list[tuple[World, Fact]]
) -> Iterator[tuple[str, bool]]:
    false_facts = [world.other_value(rng, person, fact) for world, fact in known_facts]
    can = [index for index, other in enumerate(false_facts) if other is not None]
    false = set(rng.sample(can, min(len(can), round(PROFILE_FALSE * len(known_facts)))))
    for index, (world, fact) in enumerate(known_facts):
        stated = false_facts[index] if index in false else fact
        # Full names, since claims are read without context.
        yield world.say(rng, person, stated, Voice("full", True)), index not in false


def _labelled(
    person: Person, marked: list[tuple[str, bool]], kind: str, k: int, suffix: str = ""
) -> Document:
    return Document(
        id=person.iri.rsplit("/", 1)[-1] + suffix,
        topic=person.name,
        text=" ".join(text for text, _ in marked),
        claims=[
            Claim(id=f"c{n}", text=text, sentence=n, source=text, label="S" if true else "NS")
            for n, (text, true) in enumerate(marked)
        ],
        kind=kind,
        generator=GENERATOR,
        group=person.group,
        bin=person.frequency_name,
        person=person.iri,
        gold=_gold([true for _, true in marked], kind, k),
    )


def _gold(truths: Sequence[bool], kind: str, k: int) -> Gold:
    """Gold scores of a text: every true sentence of a ``normal`` text states another fact."""
    if kind == "uninformative":
        return gold_scores([set() for _ in truths], k, "construction")
    facts = range(len(truths)) if kind == "normal" else [0] * len(truths)
    credited = [{str(fact)} if true else set() for fact, true in zip(facts, truths, strict=True)]
    return gold_scores(credited, k, "construction")


def passages(people: Sequence[Person], seed: int) -> Iterator[Passage]:
    """Generate one passage per person with all facts; ``id`` is the end of the person's IRI."""
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
    """Write a person's page: one sentence per property with all values, starting with the name."""
    sentences: list[str] = []
    for prop in bank("pages"):
        values = _values(person, prop)
        if not values:
            continue
        template = rng.choice(_page_templates(prop, values))
        if not sentences:
            template = _with_name(template)
        form = "full" if not sentences else rng.choice(("pronoun", "surname"))
        slots = {"list": _enumerate(values)}
        sentences.append(capital(speak(template, person, Voice(form, True), slots)))
    return " ".join(sentences)


def page_sentence(person: Person, fact: Fact, text: str) -> str | None:
    """The sentence of a person's page that states a fact, with the full name and this value only.

    ``None`` if the page does not state it.
    """
    values = _values(person, fact.prop)
    for template in _page_templates(fact.prop, values):
        for form in ("full", "pronoun", "surname"):
            for variant in (template, _with_name(template)):
                slots = {"list": _enumerate(values)}
                if capital(speak(variant, person, Voice(form, True), slots)) in text:
                    slots = {"list": _value(fact)}
                    named = speak(_with_name(template), person, Voice("full", True), slots)
                    return capital(named)
    return None


def _page_templates(prop: str, values: Sequence[str]) -> list[str]:
    templates = bank("pages")[prop]
    if prop in DATES and all(value.isdecimal() for value in values):
        return [template.replace(" on {list}", " in {list}") for template in templates]
    return list(templates)


def _with_name(template: str) -> str:
    if "{X" in template:
        return template
    return re.sub(r"\{(he|his)\}", lambda m: "{X}" if m[1] == "he" else "{X's}", template, count=1)


def _values(person: Person, prop: str) -> list[str]:
    facts = facts_of(person, prop)
    if prop not in ("P106", "P21"):
        facts = [f for f in facts if not any(f in other.coarser for other in facts)]
    return [_value(fact) for fact in facts]


def _value(fact: Fact) -> str:
    if fact.prop == "P106":
        return with_article(fact.value)
    if fact.prop in ("P166", "P54"):
        return f"the {fact.slots['v']}"
    return fact.value if fact.prop == "P21" else fact.slots.get("v", fact.value)


def _enumerate(values: Sequence[str]) -> str:
    *first, last = values
    return f"{', '.join(first)} and {last}" if first else last
