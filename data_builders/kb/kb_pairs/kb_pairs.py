"""``kb_pairs``: training data labelled from facts and counts of a knowledge base."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from clients.sparql import SparqlClient
from data_builders.builder import Made, Step, Work
from data_builders.dataset import Card, read_card
from data_builders.kb.facts import POPULATION, Person, load_people
from data_builders.kb.kb_pairs.articles import article_pairs
from data_builders.kb.kb_pairs.kb_lss import lss_examples
from data_builders.kb.kb_pairs.person_texts import (
    PROFILE_CLAIMS,
    PROFILE_FALSE,
    generations,
    padded,
    passages,
    profiles,
)
from data_builders.kb.kb_pairs.relation import relation_pairs
from data_builders.kb.kb_pairs.unli import class_claims, unli_pairs
from data_builders.kb.kb_pairs.world import SPLIT_PROPERTIES, Shares, World, split_people
from data_builders.kb.server import KbBuilder, sparql
from data_builders.splits import SPLITS, by_split

Sizes = tuple[int, int, int]
KINDS = ("unli", "relation", "articles", "lss", "generations")


@dataclass
class KbPairs(KbBuilder):
    """UNLI, relation, LSS and generation records from the facts of a Wikidata-shaped endpoint.

    People, properties and wordings belong to one split: see ``world.py`` and ``wording/*.yaml``.

    Args:
        shares: people of train, dev and test.
        unli: approximate number of UNLI pairs in train, dev and test.
        relation: approximate number of relation pairs.
        articles: approximate number of relation pairs with encyclopedia-like paragraphs as
            premises, for verifiers that read pages.
        lss: approximate number of LSS examples.
        generations_per_person: texts of each kind (normal, uninformative, repetitive).
        claims_per_person: claims of each class (bleached, common, specific, unlisted) in the files
            that evaluate a UNLI model.
        corrupted: probability that a sentence of a normal biography is made false.
        least_given: least number of people for whom a counted premise must hold.
    """

    population: str = POPULATION
    shares: Sizes = (8, 1, 1)
    unli: Sizes = (6000, 800, 800)
    relation: Sizes = (9000, 1000, 1000)
    articles: Sizes = (3500, 300, 300)
    lss: Sizes = (1500, 200, 200)
    generations_per_person: int = 2
    claims_per_person: int = 6
    corrupted: float = 0.3
    least_given: int = 8

    subject = "person"
    least: ClassVar = dict.fromkeys(
        (
            "shares",
            "unli",
            "relation",
            "articles",
            "lss",
            "generations_per_person",
            "claims_per_person",
            "least_given",
        ),
        1,
    )
    probabilities = ("corrupted",)

    def files(self) -> dict[str, dict[str, str]]:
        kinds = {kind: by_split(kind) for kind in KINDS}
        claims = by_split("claims", SPLITS[1:])
        pages = {"passages": {"train": "passages.jsonl"}}
        pages |= {name: {"test": f"{name}.jsonl"} for name in ("profiles", "padded")}
        return kinds | {"claims": claims} | pages

    def plan(self) -> list[Step]:
        return [
            *super().plan(),
            Step("facts: 30 queries per hundred people", self.endpoint),
            Step("shares: one count per pair of facts", self.endpoint),
        ]

    def make(self, work: Work) -> Made:
        client = sparql(work, self.endpoint)
        people = load_people(client, self.population, dropped=work.dropped, limit=self.limit)
        return Made(self._records(client, people, work.dropped), _card())

    def _records(
        self, client: SparqlClient, people: list[Person], dropped: Counter[str]
    ) -> dict[str, Iterable]:
        """Map each file to its records.

        Texts and pages of all people are generated while writing: together they would need ten
        times the memory of the people.
        """
        shares = Shares(client, self.population)
        members = split_people(people, self.shares, self.seed)
        files: dict[str, Iterable] = {}
        for index, split in enumerate(SPLITS):
            world = World(members[split], people, split)
            dropped[f"person of {split} without a fact of its properties"] += len(
                members[split]
            ) - len(world.people)
            files[f"unli_{split}.jsonl"] = unli_pairs(
                world, shares, self.unli[index], self.least_given, self.seed, dropped
            )
            files[f"relation_{split}.jsonl"] = relation_pairs(
                world, self.relation[index], self.seed, dropped
            )
            files[f"articles_{split}.jsonl"] = article_pairs(
                world, self.articles[index], self.seed, dropped
            )
            files[f"lss_{split}.jsonl"] = lss_examples(world, self.lss[index], self.seed, dropped)
            files[f"generations_{split}.jsonl"] = generations(
                world, self.generations_per_person, self.corrupted, self.seed
            )
            if split != "train":
                files[f"claims_{split}.jsonl"] = class_claims(
                    world, shares, self.claims_per_person, self.seed
                )
        held_out = [*members["dev"], *members["test"]]
        worlds = [World(held_out, people, split) for split in SPLITS]
        files["profiles.jsonl"] = profiles(worlds, self.seed)
        # Generated twice, since keeping them until both files are written needs too much memory.
        files["padded.jsonl"] = padded(worlds, profiles(worlds, self.seed), self.seed)
        files["passages.jsonl"] = passages(people, self.seed)
        return files


def _card() -> Card:
    properties = "\n".join(f"- {split}: {', '.join(SPLIT_PROPERTIES[split])}" for split in SPLITS)
    return read_card(
        "kb_pairs", properties=properties, least=PROFILE_CLAIMS, false=f"{PROFILE_FALSE:.0%}"
    )
