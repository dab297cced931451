"""``kb_multihop``: claims that need several facts of a document, with pairs of equal overlap.

After FactCG (2501.17144, section 3): a claim covers a subgraph of a document's facts and becomes
false once a required relation is removed from the document. FactCG uses a language model for both;
this builder uses templates and a knowledge base, and the subgraph is three people of whom two share
a value. Every document has entailed and not entailed claims with the same people and words, so
neither document, claim, nor their overlap predicts the label.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from data_builders.builder import Made, Step, Work
from data_builders.dataset import read_card
from data_builders.evenness import overlap_auroc
from data_builders.kb.facts import POPULATION, Person, load_people
from data_builders.kb.kb_pairs.world import World, paragraph, split_people
from data_builders.kb.language.statements import Fact, independent, is_another, values_of
from data_builders.kb.language.wording import Voice, bank, capital, slots_of, speak
from data_builders.kb.server import KbBuilder, sparql
from data_builders.splits import SPLITS, by_split
from records import RelationPair, UserError

Sizes = tuple[int, int, int]
_FULL = Voice("full", True)
TRIES = 50  # attempts per document

Row = tuple[str, str, str, str]


@dataclass(frozen=True)
class Scene:
    """Three people, A and C with a shared value and B with another, and a document's facts.

    Attributes:
        shared: each person's fact of the shared property.
        extra_facts: each person's further facts.
        order: order of the people in the document.
    """

    people: tuple[Person, Person, Person]
    shared: tuple[Fact, Fact, Fact]
    extra_facts: tuple[tuple[Fact, ...], tuple[Fact, ...], tuple[Fact, ...]]
    order: tuple[int, int, int]


class Scenes:
    """Draws documents about three people, and claims that need several of their facts.

    A and C share a value of a property; B has another value. That A was born where C was needs two
    facts of the document and names no place, so its words do not reveal whether it holds: the same
    claim about A and B has the same overlap and is false.
    """

    def __init__(self, world: World, rng: random.Random, extra_facts: tuple[int, int]):
        self.world = world
        self.rng = rng
        self._extra_facts = extra_facts
        self._bridges: dict[str, tuple[str, ...]] = bank("multihop")[world.split]
        self._having: dict[Fact, list[Person]] = defaultdict(list)
        for person in world.people:
            for fact in world.facts(person):
                if fact.key in self._bridges:
                    self._having[fact].append(person)
        self._by_key: dict[str, list[Fact]] = defaultdict(list)
        for fact, people in self._having.items():
            if len({person.name for person in people}) > 1:
                self._by_key[fact.key].append(fact)

    def draw(self) -> Scene | None:
        """Draw a scene; ``None`` if the drawn people do not fit."""
        if not self._by_key:
            return None
        rng = self.rng
        fact = rng.choice(self._by_key[rng.choice(sorted(self._by_key))])
        first, third = rng.sample(self._having[fact], 2)
        second = rng.choice(self.world.people)
        if len({person.name for person in (first, second, third)}) < 3:
            return None
        single = all(len(values_of(p, fact.prop)) == 1 for p in (first, second, third))
        if fact.functional and not single:
            return None
        other_facts = [f for f in self.world.known[second.iri][fact.prop] if f.key == fact.key]
        shared_facts = [f for p in (first, third) for f in self.world.known[p.iri][fact.prop]]
        second_facts = self.world.known[second.iri][fact.prop]
        other_facts = [f for f in other_facts if is_another(f, shared_facts)]
        if not other_facts or not is_another(fact, second_facts):
            return None
        people = (first, third, second)
        extra_facts = tuple(self._draw_extra_facts(person, fact) for person in people)
        order = tuple(rng.sample(range(3), 3))
        return Scene(people, (fact, fact, rng.choice(other_facts)), extra_facts, order)

    def _draw_extra_facts(self, person: Person, shared: Fact) -> tuple[Fact, ...]:
        facts_of = self.world.known[person.iri]
        properties = [prop for prop, facts in facts_of.items() if facts and prop != shared.prop]
        number = min(len(properties), self.rng.randint(*self._extra_facts))
        return tuple(
            self.rng.choice(facts_of[prop]) for prop in self.rng.sample(properties, number)
        )

    def document(self, scene: Scene, without: int | None = None) -> str:
        """Write the document; the person ``without`` lacks the shared property."""
        parts = []
        for index in scene.order:
            facts = [*scene.extra_facts[index]]
            if index != without:
                facts.append(scene.shared[index])
            self.rng.shuffle(facts)
            parts.append(paragraph(self.rng, self.world, scene.people[index], facts))
        return "\n".join(parts)

    def rows(self, scene: Scene) -> Iterator[Row]:
        """Yield kind, premise, hypothesis and label of the pairs of a scene.

        ``hop2``: the shared value, of two facts; ``hop3``: with a third. ``other``: of A and B;
        ``removed``: one of the two facts is missing; ``moved``: the third fact is another person's;
        ``bound`` and ``bound_other``: A's own value, and B's value stated of A.
        """
        people, shared = scene.people, scene.shared
        a, c, b = people
        label = "contradiction" if shared[2].functional else "neutral"
        document = self.document(scene)
        yield "hop2", document, self._bridge(a, c, shared[0]), "entailment"
        yield "other", document, self._bridge(a, b, shared[0]), label
        yield "bound", document, self.world.say(self.rng, a, shared[0], _FULL), "entailment"
        yield "bound_other", document, self.world.say(self.rng, a, shared[2], _FULL), label
        clause = self._clause(a, scene.extra_facts[0])
        if clause:
            yield "hop3", document, self._bridge(a, c, shared[0], clause[1]), "entailment"
        if scene.extra_facts[1]:
            shortened = self.document(scene, without=1)
            # Half of the removed claims have three hops, since any required fact may be missing.
            extra = clause[1] if clause and self.rng.random() < 0.5 else None
            yield "removed", shortened, self._bridge(a, c, shared[0], extra), "neutral"
        if clause:
            yield from self._moved(scene, document, clause[0])

    def _moved(self, scene: Scene, document: str, third: Fact) -> Iterator[Row]:
        a, c, _ = scene.people
        known_facts = self.world.known[a.iri][third.prop]
        candidates = [f for facts in scene.extra_facts[1:] for f in facts if f.key == third.key]
        candidates = [
            f for f in candidates if is_another(f, known_facts) and independent(f, scene.shared[0])
        ]
        clause = self._clause(a, candidates)
        if clause:
            single = clause[0].functional and len(values_of(a, third.prop)) == 1
            label = "contradiction" if single else "neutral"
            yield "moved", document, self._bridge(a, c, scene.shared[0], clause[1]), label

    def _bridge(self, left: Person, right: Person, fact: Fact, clause: str | None = None) -> str:
        lines = self._bridges[fact.key]
        if clause:  # it follows the name at the start of the sentence
            lines = [line for line in lines if line.startswith("{X} ") and "{X} and" not in line]
        text = speak(self.rng.choice(lines), left, _FULL, {"Y": right.name})
        return capital(
            text.replace(left.name, f"{left.name}, who {clause},", 1) if clause else text
        )

    def _clause(self, person: Person, facts: Sequence[Fact]) -> tuple[Fact, str] | None:
        fitting = [
            (fact, line)
            for fact in facts
            for line in self.world.clauses.get(fact.prop, ())
            if slots_of(line) <= fact.slots.keys()
        ]
        if not fitting:
            return None
        fact, line = self.rng.choice(fitting)
        return fact, speak(line, person, _FULL, fact.slots)


@dataclass
class KbMultihop(KbBuilder):
    """Relation pairs whose claims need several facts of a document, balanced by word overlap.

    Args:
        documents: approximate number of documents of train, dev and test, with up to seven pairs
            each.
        extra_facts: least and largest number of further facts per person in a document.
        shares: people of train, dev and test.
    """

    population: str = POPULATION
    documents: Sizes = (1000, 120, 120)
    extra_facts: tuple[int, int] = (1, 3)
    shares: Sizes = (8, 1, 1)

    subject = "person"
    least: ClassVar = {"documents": 1, "extra_facts": 0, "shares": 1}

    def faults(self) -> Iterable[str]:
        yield from super().faults()
        if self.extra_facts[0] > self.extra_facts[1]:
            yield "extra_facts: expected two ascending numbers; set least and largest number"

    def files(self) -> dict[str, dict[str, str]]:
        return {"relation": by_split("relation")}

    def plan(self) -> list[Step]:
        return [*super().plan(), Step("facts: 30 queries per hundred people", self.endpoint)]

    def make(self, work: Work) -> Made:
        client = sparql(work, self.endpoint)
        people = load_people(client, self.population, dropped=work.dropped, limit=self.limit)
        members = split_people(people, self.shares, self.seed)
        files: dict[str, list[RelationPair]] = {}
        for split, number in zip(SPLITS, self.documents, strict=True):
            world = World(members[split], people, split)
            rng = random.Random(f"{self.seed}:multihop:{split}")
            pairs = self._pairs(Scenes(world, rng, self.extra_facts), number, work.dropped)
            if pairs:
                files[f"relation_{split}.jsonl"] = pairs
        if not files:
            raise UserError("population: no two people share a value; widen it")
        even = {name: overlap_auroc(pairs) for name, pairs in files.items()}
        rows = "\n".join(f"| `{name}` | {value} |" for name, value in even.items())
        card = read_card("kb_multihop", rows=rows)
        return Made(files, card, details={"overlap_auroc": even})

    def _pairs(self, scenes: Scenes, number: int, dropped: Counter[str]) -> list[RelationPair]:
        pairs: dict[tuple[str, str], RelationPair] = {}
        made = 0
        for _ in range(number * TRIES):
            if made == number:
                break
            scene = scenes.draw()
            if scene is None:
                continue
            made += 1
            for kind, premise, hypothesis, label in scenes.rows(scene):
                pairs.setdefault(
                    (premise, hypothesis),
                    RelationPair(
                        premise=premise,
                        hypothesis=hypothesis,
                        label=label,
                        source=f"kb/{kind}",
                        group=scene.people[0].iri,
                        facts=[str(fact) for fact in scene.shared],
                    ),
                )
        dropped[f"document of {scenes.world.split} not found"] += number - made
        return list(pairs.values())
