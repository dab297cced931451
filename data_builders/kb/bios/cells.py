"""Domains, their cells of frequency and group, and the number of topics of each cell.

The defaults are Core's biographies (2407.03572, section 4.2 and Table 1): 1,024 topics drawn
uniformly over the cells of 4 frequency bins and 4 groups of continents, and split about 8:1:1 (50,
7 and 7 of each cell). The patterns run on ``https://query.wikidata.org/sparql`` and on any endpoint
or Turtle file of the same structure.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from components.english import without_qualifier
from components.words import name_key
from data_builders.kb.facts import BINS, CONTINENTS, REST, group_of
from data_builders.kb.graph import PREFIXES as PEOPLE_PREFIXES
from data_builders.splits import SPLITS
from records import UserError

PREFIXES = f"""{PEOPLE_PREFIXES}\
PREFIX dbo: <http://dbpedia.org/ontology/>
PREFIX wikibase: <http://wikiba.se/ontology#>
"""

PAGE = (
    "?page schema:about ?item ; schema:isPartOf <https://en.wikipedia.org/> ; schema:name ?title ."
)
# A resource of an old map may now be a redirect, which has no owl:sameAs.
SAME_AS = (
    "{ ?uri owl:sameAs ?item } UNION { ?uri dbo:wikiPageRedirects/owl:sameAs ?item } "
    'FILTER(STRSTARTS(STR(?item), "http://www.wikidata.org/entity/"))'
)


@dataclass
class Domain:
    """The possible topics and the variables by which they are sampled.

    Args:
        name: name of the topics, for the card.
        population: SPARQL patterns that bind ``?item``; members match at least one. Without a
            frequency file each pattern is a separate query, so a large domain can be divided (by
            country, year).
        page: pattern that binds ``?page`` and its ``?title``; a topic has exactly one page.
        grouping: pattern that binds ``?group`` to the IRI of a thing that groups the item. Each row
            is one vote, so two countries of one continent count twice.
        groups: name of a group to the English labels of its members.
        rest: group of items without such a thing, or with unlisted ones only.
        frequency: pattern that binds ``?frequency``, for builds without frequency files.
        bins: name of a frequency bin to its least frequency, ascending from 0.
        same_as: pattern that binds ``?item`` to the item of the DBpedia resource ``?uri``.
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
        patterns += [(name, getattr(self, name), variables) for name, variables in needed.items()]
        for name, text, variables in patterns:
            for variable in variables:
                if not re.search(rf"\{variable}\b", text):
                    raise UserError(f"domain.{name}: {text!r} has no {variable}")
        if not self.population:
            raise UserError("domain.population: expected at least one pattern over ?item")
        edges = list(self.bins.values())
        if not edges or edges[0] != 0 or any(low >= high for low, high in pairwise(edges)):
            raise UserError("domain.bins: expected ascending least frequencies starting at 0")
        members = [label for labels in self.groups.values() for label in labels]
        if len(members) != len(set(members)):
            raise UserError("domain.groups: a label is in two groups")

    @property
    def letters(self) -> list[str]:
        """Names of the groups, including ``rest``."""
        return sorted({*self.groups, self.rest})

    @property
    def cells(self) -> list[tuple[int, str]]:
        """Pairs of bin index and group name."""
        return [(index, letter) for index in range(len(self.bins)) for letter in self.letters]

    def letter(self, label: str) -> str:
        """Return the group of a label."""
        return group_of(label, self.groups, self.rest)


Cell = tuple[int, str]


def draw_order(cells: Sequence[Cell], seed: int) -> list[Cell]:
    """Draw the order in which cells get remaining topics."""
    return random.Random(f"{seed}:cells").sample(list(cells), len(cells))


def quotas(order: Sequence[Cell], most: Mapping[Cell, int | None], topics: int) -> dict[Cell, int]:
    """Divide topics evenly over cells; missing topics of a cell are spread over the others.

    Args:
        order: the cells; the first ones get the remainder.
        most: number of available topics per cell; ``None`` if sufficient.
        topics: total number; fewer if the cells together have fewer.
    """
    assigned = dict.fromkeys(order, 0)
    while True:
        open_cells = [c for c in order if most[c] is None or assigned[c] < most[c]]
        remaining = topics - sum(assigned.values())
        if not open_cells or not remaining:
            return assigned
        each = remaining // len(open_cells)
        for cell in open_cells if each else open_cells[:remaining]:
            space = remaining if most[cell] is None else most[cell] - assigned[cell]
            assigned[cell] += min(each or 1, space)


def split_sizes(numbers: Mapping[str, int], shares: Sequence[int]) -> dict[str, Counter[str]]:
    """Map each cell to its number of topics per split.

    Each topic goes to the split furthest below its share: exact in total, approximate per cell.
    """
    share = dict(zip(SPLITS, shares, strict=True))
    totals: Counter[str] = Counter()
    sizes: dict[str, Counter[str]] = {cell: Counter() for cell in numbers}
    for cell, number in numbers.items():
        for _ in range(number):
            done = totals.total() + 1
            lacks = {s: share[s] * done - totals[s] * sum(shares) for s in SPLITS}
            split = max(SPLITS, key=lacks.__getitem__)
            totals[split] += 1
            sizes[cell][split] += 1
    return sizes


def split_topics(topics: Sequence[dict], shares: Sequence[int], seed: int) -> dict[str, str]:
    """Map each topic to a split, cell by cell.

    Namesakes stay together: rows with the same name, or the same title without parentheses.
    """
    rng = random.Random(f"{seed}:split")
    members: dict[str, list[dict]] = defaultdict(list)
    for row in topics:
        members[row["cell"]].append(row)
    cells = rng.sample(sorted(members), len(members))
    capacity = split_sizes({cell: len(members[cell]) for cell in cells}, shares)
    families = _families(topics)
    rng.shuffle(families)
    split_of: dict[str, str] = {}
    # Large families first, while splits have capacity.
    for family in sorted(families, key=len, reverse=True):
        needs: dict[str, int] = defaultdict(int)
        for row in family:
            needs[row["cell"]] += 1
        fits = [s for s in SPLITS if all(capacity[c][s] >= n for c, n in needs.items())]
        weights = [sum(capacity[c][s] for c in needs) for s in fits]
        split = rng.choices(fits, weights)[0] if fits else "train"
        for row in family:
            capacity[row["cell"]][split] -= 1
            split_of[row["topic"]] = split
    return split_of


def _families(topics: Sequence[dict]) -> list[list[dict]]:
    parent: dict[str, str] = {}

    def find(key: str) -> str:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    for row in topics:
        parent[find(_title(row))] = find(name_key(row["name"]))
    families: dict[str, list[dict]] = defaultdict(list)
    for row in topics:
        families[find(name_key(row["name"]))].append(row)
    return list(families.values())


def _title(row: dict) -> str:
    return name_key(without_qualifier(row["topic"]))


def table(
    topics: Sequence[Mapping], rows: Sequence[str], columns: Sequence[str], splits: Mapping
) -> str:
    """Format the number of topics per cell (train/dev/test) in Markdown."""
    head = f"| group | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}\n"
    lines = []
    for letter in rows:
        cells = []
        for name in columns:
            members = [r["topic"] for r in topics if r["group"] == letter and r["bin"] == name]
            counts = [sum(splits[topic] == split for topic in members) for split in SPLITS]
            cells.append(f"{len(members)} ({'/'.join(map(str, counts))})")
        lines.append(f"| {letter} | {' | '.join(cells)} |\n")
    return head + "".join(lines)
