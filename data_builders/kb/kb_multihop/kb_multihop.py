"""``kb_multihop``: claims that need several facts of a document, and pairs of equal overlap.

After FactCG (2501.17144, section 3): a claim is made over a subgraph of a document's facts, and is
false once a relation that it needs is taken out of the document. There a language model writes
both; here templates do, from a knowledge base, and the subgraph is three people of whom two share a
value. Every document stands with entailed and with not entailed claims of the same people and the
same words, so that neither the document, nor the claim, nor what they share tells the label.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from clients.polite import SECONDS_A_REQUEST
from data_builders.builder import AskingBuilder, Made, Step, Work, complaint
from data_builders.dataset import Card
from data_builders.evenness import overlap_auroc
from data_builders.kb.facts import POPULATION, load_people
from data_builders.kb.graph import check_population
from data_builders.kb.kb_multihop.scenes import TRIES, Scenes
from data_builders.kb.kb_pairs.splits import split_people
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.server import sparql
from data_builders.splits import SPLITS, by_split
from records import RelationPair, UserError

Sizes = tuple[int, int, int]


@dataclass
class KbMultihop(AskingBuilder):
    """Relation pairs whose claims need several facts of a document, balanced by word overlap.

    Args:
        output: folder of the dataset.
        endpoint: ``snapshot`` for the embedded file behind a local server, the path of another
            Turtle file (``.ttl``), or the URL of a SPARQL service.
        population: SPARQL patterns that bind ``?person``; narrow it on a big endpoint.
        documents: about how many documents of train, dev and test, each with up to seven pairs.
        others: least and most facts told of a person beside the one that a claim needs.
        shares: people of train, dev and test.
        user_agent: who asks, for a remote endpoint.
        cache_dir: folder of kept answers; null keeps them in ``output`` until the dataset is
            whole.
        seed: of all choices.
        limit: only the first so many people, for a trial.
    """

    endpoint: str = "snapshot"
    population: str = POPULATION
    documents: Sizes = (1000, 120, 120)
    others: tuple[int, int] = (1, 3)
    shares: Sizes = (8, 1, 1)

    asks = ("endpoint",)
    least: ClassVar = {"documents": 1, "others": 0, "shares": 1}

    def faults(self) -> Iterable[str]:
        """Patterns that select nobody, and a range of facts that is none."""
        yield from complaint(check_population, self.population, "person")
        if self.others[0] > self.others[1]:
            yield "others: give two numbers, the second no less than the first"

    def files(self) -> dict[str, dict[str, str]]:
        """The pairs by split."""
        return {"relation": by_split("relation")}

    def plan(self) -> list[Step]:
        """What a build would ask; how much depends on how many people the population has."""
        return [
            Step("the population", self.endpoint, 1, seconds=SECONDS_A_REQUEST),
            Step("facts: 30 queries for each hundred people", self.endpoint),
        ]

    def make(self, work: Work) -> Made:
        """The pairs about the people whom the endpoint knows."""
        client = sparql(work, self.endpoint)
        people = load_people(client, self.population, dropped=work.dropped, limit=self.limit)
        members = split_people(people, self.shares, self.seed)
        files: dict[str, list[RelationPair]] = {}
        for split, number in zip(SPLITS, self.documents, strict=True):
            world = World(members[split], people, split)
            rng = random.Random(f"{self.seed}:multihop:{split}")
            pairs = self._pairs(Scenes(world, rng, self.others), number, work.dropped)
            if pairs:
                files[f"relation_{split}.jsonl"] = pairs
        if not files:
            raise UserError("population: no two people share a value; widen it")
        even = {name: overlap_auroc(pairs) for name, pairs in files.items()}
        return Made(files, _card(even), found={"overlap_auroc": even})

    def _pairs(self, scenes: Scenes, number: int, dropped: Counter[str]) -> list[RelationPair]:
        found: dict[tuple[str, str], RelationPair] = {}
        made = 0
        for _ in range(number * TRIES):
            if made == number:
                break
            scene = scenes.draw()
            if scene is None:
                continue
            made += 1
            for kind, premise, hypothesis, label in scenes.rows(scene):
                found.setdefault(
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
        return list(found.values())


def _card(even: dict[str, float | None]) -> Card:
    rows = "\n".join(f"| `{name}` | {value} |" for name, value in even.items())
    return Card(
        pretty_name="Claims that need several facts of a document",
        text=CARD.format(rows=rows),
        tags=("factuality", "nli", "multi-hop", "wikidata"),
    )


CARD = """\
English paragraphs about three real people who have died, made by templates from the facts of a
Wikidata-shaped knowledge base, and claims about them. Two of the three share a value; `source` is

- `kb/hop2`, `kb/hop3`: the two share it, which takes two facts of the document; with a third
  (entailment);
- `kb/other`: the same of the one who has another value (contradiction where a person has one value
  alone, else neutral);
- `kb/removed`: the same claims where one fact that they need is not in the document (neutral);
- `kb/moved`: the third fact is one that the document tells of another person;
- `kb/bound`, `kb/bound_other`: a value that the document tells of this person, and of another.

People, properties and wordings belong to one split, as in `kb_pairs`. AUROC of entailment by the
IDF-weighted share of a claim's stems that its document has (0.5: overlap says nothing):

| file | AUROC |
|---|---|
{rows}

**Claims that are not entailed may be false statements about real people, made on purpose; never
show them without their mark.**
"""
