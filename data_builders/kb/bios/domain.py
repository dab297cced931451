"""What a domain is: SPARQL patterns that say which things belong, and how they are grouped.

The defaults are Core's biographies (2407.03572, section 4.2 and Table 1). The patterns run on
``https://query.wikidata.org/sparql`` and on any endpoint or Turtle file of the same shape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from data_builders.kb.core_cells import BINS, CONTINENTS, REST, group_of
from data_builders.kb.graph import PREFIXES as PEOPLE_PREFIXES
from records import UserError

PREFIXES = f"""{PEOPLE_PREFIXES}\
PREFIX dbo: <http://dbpedia.org/ontology/>
PREFIX wikibase: <http://wikiba.se/ontology#>
"""

PAGE = (
    "?page schema:about ?item ; schema:isPartOf <https://en.wikipedia.org/> ; schema:name ?title ."
)
# A resource of yesterday's map may be a redirect today, which has no owl:sameAs of its own.
SAME_AS = (
    "{ ?uri owl:sameAs ?item } UNION { ?uri dbo:wikiPageRedirects/owl:sameAs ?item } "
    'FILTER(STRSTARTS(STR(?item), "http://www.wikidata.org/entity/"))'
)


@dataclass
class Domain:
    """Which things are topics, and by what they are sampled.

    Args:
        name: what the topics are, for the card.
        population: SPARQL patterns that bind ``?item``; something belongs if one of them holds.
            Without a frequency file each is asked in a query of its own, so a domain that is too
            large for one query is cut into several (by country, by year).
        page: pattern that binds ``?page`` and its ``?title``; a topic has exactly one.
        grouping: pattern that binds ``?group`` to the IRI of a thing that groups the item; each
            of its rows is one vote, so that two countries of one continent weigh two.
        groups: name of a group to English labels of things, which are its members.
        rest: the group of items without any such thing, or with others only.
        frequency: pattern that binds the number ``?frequency``, for a build without files of
            frequencies.
        bins: name of a frequency bin to its least frequency, ascending; the first is 0.
        same_as: pattern that binds ``?item`` to the same thing as the DBpedia resource ``?uri``.
    """

    name: str = "people"
    population: list[str] = field(default_factory=lambda: ["?item wdt:P31 wd:Q5 ."])
    page: str = PAGE
    grouping: str = "?item wdt:P27 ?via . ?via wdt:P30 ?group ."
    groups: dict[str, list[str]] = field(
        default_factory=lambda: {group: list(labels) for group, labels in CONTINENTS.items()}
    )
    rest: str = REST
    frequency: str = "?item ff:frequency ?frequency ."
    bins: dict[str, int] = field(default_factory=lambda: dict(BINS))
    same_as: str = SAME_AS

    def __post_init__(self):
        needed = {
            "page": ("?page", "?title", "?item"),
            "grouping": ("?item", "?group"),
            "frequency": ("?item", "?frequency"),
            "same_as": ("?uri", "?item"),
        }
        patterns = [("population", text, ("?item",)) for text in self.population]
        patterns += [(name, getattr(self, name), wanted) for name, wanted in needed.items()]
        for name, text, wanted in patterns:
            for variable in wanted:
                if not re.search(rf"\{variable}\b", text):
                    raise UserError(f"domain.{name}: {text!r} has no {variable}")
        if not self.population:
            raise UserError("domain.population: empty; give at least one pattern over ?item")
        edges = list(self.bins.values())
        if not edges or edges[0] != 0 or any(low >= high for low, high in pairwise(edges)):
            raise UserError("domain.bins: give least frequencies that ascend from 0")
        known = [label for labels in self.groups.values() for label in labels]
        if len(known) != len(set(known)):
            raise UserError("domain.groups: one thing stands in two groups")

    @property
    def letters(self) -> list[str]:
        """Names of the groups, ``rest`` among them."""
        return sorted({*self.groups, self.rest})

    @property
    def cells(self) -> list[tuple[int, str]]:
        """Every pair of a bin's index and a group's name."""
        return [(index, letter) for index in range(len(self.bins)) for letter in self.letters]

    def letter(self, label: str) -> str:
        """The group of a thing that groups items."""
        return group_of(label, self.groups, self.rest)
