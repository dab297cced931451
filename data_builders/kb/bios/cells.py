"""What a domain is, its cells of frequency and group, and how many topics each cell gives.

The defaults are Core's biographies (2407.03572, section 4.2 and Table 1). The patterns run on
``https://query.wikidata.org/sparql`` and on any endpoint or Turtle file of the same shape.

Core samples its 1,024 topics uniformly over the cells of 4 frequency bins and 4 groups of
continents, and divides them about 8:1:1: 50, 7 and 7 of each cell.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import pairwise

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


Cell = tuple[int, str]

_PARENTHESES = re.compile(r"\s*\([^)]*\)$")


def draw_order(cells: Sequence[Cell], seed: int) -> list[Cell]:
    """The order in which cells get the topics that do not divide evenly."""
    return random.Random(f"{seed}:cells").sample(list(cells), len(cells))


def quotas(order: Sequence[Cell], most: Mapping[Cell, int | None], topics: int) -> dict[Cell, int]:
    """Topics of each cell: the same of all; what a cell lacks is spread evenly over the others.

    Args:
        order: the cells, those first that get one more where the number does not divide.
        most: how many topics a cell has; ``None`` for enough.
        topics: how many there shall be; fewer where all cells together have fewer.
    """
    given = dict.fromkeys(order, 0)
    while True:
        room = [c for c in order if most[c] is None or given[c] < most[c]]
        left = topics - sum(given.values())
        if not room or not left:
            return given
        each = left // len(room)
        for cell in room if each else room[:left]:
            space = left if most[cell] is None else most[cell] - given[cell]
            given[cell] += min(each or 1, space)


def split_sizes(numbers: Mapping[str, int], shares: Sequence[int]) -> dict[str, Counter[str]]:
    """Cell to how many of its topics go to each split.

    Topic after topic goes to the split that is furthest below its share, over all cells, so that
    the sizes hold in all and, as nearly as numbers allow, in each cell.
    """
    share = dict(zip(SPLITS, shares, strict=True))
    given: Counter[str] = Counter()
    found: dict[str, Counter[str]] = {cell: Counter() for cell in numbers}
    for cell, number in numbers.items():
        for _ in range(number):
            done = given.total() + 1
            lacks = {s: share[s] * done - given[s] * sum(shares) for s in SPLITS}
            split = max(SPLITS, key=lacks.__getitem__)
            given[split] += 1
            found[cell][split] += 1
    return found


def split_topics(topics: Sequence[dict], shares: Sequence[int], seed: int) -> dict[str, str]:
    """Topic to its split, cell by cell; namesakes stay together.

    Args:
        topics: rows with ``topic``, ``name`` and ``cell``; those of one name, or of one title but
            for what stands in parentheses, are a family.
        shares: of train, dev and test.
        seed: of the draws.
    """
    rng = random.Random(f"{seed}:split")
    members: dict[str, list[dict]] = defaultdict(list)
    for row in topics:
        members[row["cell"]].append(row)
    cells = rng.sample(sorted(members), len(members))
    left = split_sizes({cell: len(members[cell]) for cell in cells}, shares)
    families = _families(topics)
    rng.shuffle(families)
    found: dict[str, str] = {}
    # Large families first, while there is room for them.
    for family in sorted(families, key=len, reverse=True):
        needs: dict[str, int] = defaultdict(int)
        for row in family:
            needs[row["cell"]] += 1
        fits = [s for s in SPLITS if all(left[c][s] >= n for c, n in needs.items())]
        weights = [sum(left[c][s] for c in needs) for s in fits]
        split = rng.choices(fits, weights)[0] if fits else "train"
        for row in family:
            left[row["cell"]][split] -= 1
            found[row["topic"]] = split
    return found


def _families(topics: Sequence[dict]) -> list[list[dict]]:
    head: dict[str, str] = {}

    def find(key: str) -> str:
        while head.setdefault(key, key) != key:
            key = head[key]
        return key

    for row in topics:
        head[find(_title(row))] = find(row["name"].casefold())
    families: dict[str, list[dict]] = defaultdict(list)
    for row in topics:
        families[find(row["name"].casefold())].append(row)
    return list(families.values())


def _title(row: dict) -> str:
    return _PARENTHESES.sub("", row["topic"]).casefold()


# The same bytes every time: ids are hashed from this, and texts stay texts.
STYLE = {"svg.hashsalt": "factfoundry", "svg.fonttype": "none", "font.family": "DejaVu Sans"}
DARK = 0.6  # share of the largest number from which text is white


def heat_map(numbers: Sequence[Sequence[int]], rows: Sequence[str], columns: Sequence[str]) -> str:
    """An SVG drawing of the number of topics by group (rows) and frequency bin (columns)."""
    import matplotlib  # half a second, which no --help should take
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(1.6 + 1.1 * len(columns), 1.2 + 0.6 * len(rows)))
        axes = figure.add_subplot()
        most = max(1, max(map(max, numbers)))
        axes.pcolormesh(numbers, cmap="Blues", vmin=0, vmax=most)
        axes.set_xticks([x + 0.5 for x in range(len(columns))], columns)
        axes.set_yticks([y + 0.5 for y in range(len(rows))], rows)
        axes.invert_yaxis()
        axes.set_xlabel("frequency")
        axes.set_ylabel("group")
        axes.set_title("Topics by group and frequency")
        for y, line in enumerate(numbers):
            for x, number in enumerate(line):
                colour = "white" if number > DARK * most else "black"
                axes.text(x + 0.5, y + 0.5, str(number), ha="center", va="center", color=colour)
        figure.tight_layout()
        out = StringIO()
        nothing = {"Date": None, "Creator": None}
        FigureCanvasSVG(figure).print_svg(out, metadata=nothing)
    return out.getvalue()


def table(
    topics: Sequence[Mapping], rows: Sequence[str], columns: Sequence[str], splits: Mapping
) -> str:
    """A Markdown table of the number of topics, each cell as train/dev/test."""
    head = f"| group | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}\n"
    lines = []
    for letter in rows:
        cells = []
        for name in columns:
            own = [r["topic"] for r in topics if r["group"] == letter and r["bin"] == name]
            counts = [sum(splits[topic] == split for topic in own) for split in SPLITS]
            cells.append(f"{len(own)} ({'/'.join(map(str, counts))})")
        lines.append(f"| {letter} | {' | '.join(cells)} |\n")
    return head + "".join(lines)
