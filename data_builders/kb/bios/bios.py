"""``bios``: topics of a domain, sampled evenly over how frequent they are and where they belong.

Core (2407.03572, section 4.2) extends FActScore's biographies to 1,024 people: the frequency is the
larger of the documents that name the person in a pretraining corpus (Kandpal et al. 2211.08411) and
of PopQA's popularity (2212.10511); people are drawn evenly over four bins of it and four groups of
continents, if they have one English Wikipedia page that the knowledge source holds. The authors'
released code prefers people whom both sources know; the paper, and we, take whoever has one.

Only a few of the millions of candidates are asked about: each bin is walked in a drawn order until
its cells have enough. The result is the one that asking about all would give.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from tqdm import tqdm

from clients.polite import SECONDS_PER_REQUEST
from clients.sparql import VALUES_SIZE, SparqlClient
from data_builders.builder import AskingBuilder, Made, Step, Work
from data_builders.dataset import Card
from data_builders.kb.bios.candidates import (
    CORPUS,
    ENDPOINT,
    POPQA,
    Candidates,
    corpus_frequencies,
    count_resources,
    popqa_frequencies,
)
from data_builders.kb.bios.cells import (
    PREFIXES,
    Cell,
    Domain,
    draw_order,
    heat_map,
    quotas,
    split_topics,
    table,
)
from data_builders.kb.bios.lookup import Lookup, read_same_as
from data_builders.kb.graph import frequency_of
from data_builders.kb.server import sparql
from data_builders.rows import source_name
from data_builders.splits import SPLITS, by_split
from data_builders.topics import read_topics
from eval.retrieve.knowledge import Knowledge
from records import UserError, json_line

# Candidates of a bin that are asked about before looking whether its cells have enough. A change
# of it changes which requests are made, not the topics.
WAVE = 1000
SECONDS_A_NAME = 5e-5  # of a corpus map, for estimates
NOT_QUERIED = "candidate that was not asked about: its bin had enough, or limit"


@dataclass
class Bios(AskingBuilder):
    """Topics of any SPARQL-described domain, sampled evenly over frequency and group.

    Args:
        domain: what belongs, how it is grouped, and the bins of frequency; people by default.
        endpoint: ``snapshot`` for the embedded file behind a local server, the path of another
            Turtle file (``.ttl``), or the URL of a SPARQL service.
        corpus_maps: ``.npz`` files with an array of document numbers for each DBpedia resource;
            what several say adds up.
        popqa: PopQA: a file, or ``hub:akariasai/PopQA:test``.
        dbpedia: SPARQL service, or Turtle file, that says which item a resource is.
        same_as: file that says it instead: N-Triples, or a table of resource and item.
        knowledge: SQLite file with ``documents(title, text)``; only topics with a page in it are
            kept. Null keeps all.
        exclude: files of topics that another set has already.
        topics: how many.
        shares: topics of train, dev and test, by cell.
        ask_all: ask about every candidate, to know how many each cell has; takes long.
        limit: only the first so many candidates of each bin, for a trial.
        seed: of the draws.
    """

    domain: Domain | None = None
    endpoint: str = "snapshot"
    corpus_maps: list[str] | None = None
    popqa: str | None = None
    dbpedia: str = "https://dbpedia.org/sparql"
    same_as: str | None = None
    knowledge: str | None = None
    exclude: list[str] | None = None
    topics: int = 1024
    shares: tuple[int, int, int] = (50, 7, 7)
    ask_all: bool = False

    reads = ("corpus_maps", "popqa", "same_as", "knowledge", "exclude")
    asks = ("endpoint", "dbpedia")
    least: ClassVar = {"topics": 1, "shares": 1}

    def __post_init__(self) -> None:
        self.domain = self.domain or Domain()
        super().__post_init__()

    def faults(self) -> Iterator[str]:
        if self.same_as and not self.corpus_maps:
            yield "same_as: tells which items the resources of corpus_maps are; give these, too"

    def files(self) -> dict[str, dict[str, str]]:
        return {"topics": by_split("topics")}

    def plan(self) -> list[Step]:
        steps = []
        names = None
        if self.corpus_maps:
            names = count_resources(self.corpus_maps)
            steps.append(Step("names", "corpus maps", names, "names", SECONDS_A_NAME * names))
            if self.limit is not None:
                names = min(names, self.limit * len(self.domain.bins))
        if self.popqa:
            steps.append(Step("popular entities", source_name(self.popqa), None, "rows"))
        if self.same_as:
            steps.append(Step("owl:sameAs", Path(self.same_as).name, None, "lines"))
        elif names is not None:
            # Each way is asked, and each answer is counted.
            steps.append(self._requests("owl:sameAs, until cells are full", self.dbpedia, names, 4))
        if not self._files():
            number = len(self.domain.population)
            steps.append(self._requests("population", self.endpoint, number * VALUES_SIZE, 1))
        steps.append(self._requests("population, pages, names, groups", self.endpoint, names, 4))
        return steps

    def _requests(self, what: str, where: str, items: int | None, each: int) -> Step:
        if items is None:
            return Step(what, where)
        number = -(-items // VALUES_SIZE) * each
        return Step(what, where, number, seconds=number * SECONDS_PER_REQUEST)

    def make(self, work: Work) -> Made:
        client = sparql(work, self.endpoint)
        asked = self.corpus_maps and not self.same_as
        dbpedia = sparql(work, self.dbpedia, counted=True) if asked else None
        edges = list(self.domain.bins.values())
        candidates = Candidates(work.table("candidates", 64), self.seed, edges)
        self._load(candidates, client, work.dropped)
        lookup = Lookup(
            candidates,
            self.domain,
            client,
            dbpedia,
            Knowledge(self.knowledge) if self.knowledge else None,
            frozenset(read_topics(self.exclude or ())),
            columns=self._columns(),
            dropped=work.dropped,
        )
        return self._made(self._draw(lookup), work)

    def _files(self) -> bool:
        return bool(self.corpus_maps or self.popqa)

    def _columns(self) -> list[int]:
        return [CORPUS] * bool(self.corpus_maps) + [POPQA] * bool(self.popqa)

    def _load(self, candidates: Candidates, client: SparqlClient, dropped: Counter[str]) -> None:
        if self.corpus_maps:
            total = count_resources(self.corpus_maps)
            found = corpus_frequencies(self.corpus_maps, dropped)
            candidates.add(CORPUS, tqdm(found, "names", total, unit="name", disable=None))
        if self.popqa:
            found = popqa_frequencies(self.popqa)
            candidates.add(POPQA, tqdm(found, "PopQA", unit="entity", disable=None))
        if not self._files():
            candidates.add(ENDPOINT, self._population(client, dropped))
        candidates.order()
        if self.same_as and self.corpus_maps:
            pairs = read_same_as(self.same_as)
            candidates.add_same(tqdm(pairs, "owl:sameAs", unit="line", disable=None))

    def _population(self, client: SparqlClient, dropped: Counter[str]) -> Iterator[tuple[str, int]]:
        for pattern in self.domain.population:
            query = (
                f"{PREFIXES}SELECT DISTINCT ?item ?frequency WHERE {{\n  {pattern}\n"
                f"  OPTIONAL {{ {self.domain.frequency} }}\n}}"
            )
            for row in client.select(query, "population"):
                if "item" not in row:
                    raise UserError(
                        f"domain.population: {pattern!r} leaves ?item unbound; take it out of "
                        "OPTIONAL"
                    )
                number = frequency_of(row.get("frequency", ""))
                if number is None:
                    dropped["item without a frequency"] += 1
                else:
                    yield row["item"], number

    def _draw(self, lookup: Lookup) -> list[dict]:
        order = draw_order(self.domain.cells, self.seed)
        have: Counter[Cell] = Counter()
        ended: set[int] = set()
        queues = [
            lookup.table.queue(index, WAVE, self.limit) for index in range(len(self.domain.bins))
        ]
        asked = 0
        with tqdm(total=self.topics, desc="topics", unit="topic", disable=None) as bar:
            while True:
                most = {cell: have[cell] if cell[0] in ended else None for cell in order}
                wanted = quotas(order, most, self.topics)
                bar.n = sum(min(have[cell], wanted[cell]) for cell in order)
                bar.refresh()
                short = {cell[0] for cell in order if have[cell] < wanted[cell]}
                hungry = set(range(len(queues))) if self.ask_all else short
                if not hungry - ended:
                    break
                for index in sorted(hungry - ended):
                    wave = next(queues[index], None)
                    if wave is None:
                        ended.add(index)
                        continue
                    asked += len(wave)
                    for letter, number in lookup.topics(wave).items():
                        have[index, letter] += number
        lookup.dropped[NOT_QUERIED] += len(lookup.table) - asked
        return self._rows(lookup, wanted, have)

    def _rows(self, lookup: Lookup, wanted: dict[Cell, int], have: Counter[Cell]) -> list[dict]:
        found = []
        even = self.topics / len(wanted)
        for (index, letter), number in wanted.items():
            for rank, text in lookup.table.first_topics(index, letter, number):
                row = json.loads(text)
                cell = {"bin": list(self.domain.bins)[index], "group": letter}
                found.append((rank, row | cell | {"cell": f"{letter}{index}"}))
            lookup.dropped["topic that was not drawn"] += have[index, letter] - number
            lack = f"topic that cell {letter}{index} lacks for an even share; others give it"
            lookup.dropped[lack] += max(0, int(even) - number)
        lookup.dropped["topic that no cell could give"] += self.topics - len(found)
        found.sort(key=lambda pair: (pair[0], pair[1]["entity"]))
        return [row for _, row in found]

    def _made(self, rows: list[dict], work: Work) -> Made:
        splits = split_topics(rows, self.shares, self.seed)
        parts = {s: [row for row in rows if splits[row["topic"]] == s] for s in SPLITS}
        empty = [split for split, own in parts.items() if not own]
        if empty:
            raise UserError(
                f"no topic for {' and '.join(empty)} ({work.dropped_summary()}); "
                "widen the domain or raise limit"
            )
        letters, bins = self.domain.letters, list(self.domain.bins)
        counts = Counter((row["group"], row["bin"]) for row in rows)
        pages = {
            f"{split}_topic_freq_group.json": json_line({r["topic"]: r["bin"] for r in own}) + "\n"
            for split, own in parts.items()
        }
        numbers = [[counts[letter, name] for name in bins] for letter in letters]
        return Made(
            {f"topics_{split}.jsonl": own for split, own in parts.items()},
            self._card(table(rows, letters, bins, splits)),
            pages | {"cells.svg": heat_map(numbers, letters, self._ranges())},
        )

    def _ranges(self) -> list[str]:
        least = [*self.domain.bins.values(), "∞"]
        return [
            f"{name}\n[{low}, {high})"
            for name, (low, high) in zip(self.domain.bins, pairwise(least), strict=True)
        ]

    def _card(self, cells: str) -> Card:
        bins = ", ".join(f"{name} (from {least})" for name, least in self.domain.bins.items())
        groups = "\n".join(
            f"- {letter}: {', '.join(self.domain.groups.get(letter, [])) or 'nothing else'}"
            + (", and whatever has none" if letter == self.domain.rest else "")
            for letter in self.domain.letters
        )
        source = {
            (): "the endpoint's own number",
            (CORPUS,): "documents of a pretraining corpus that name the topic",
            (POPQA,): "PopQA's popularity",
        }.get(
            tuple(self._columns()),
            "the larger of the documents of a pretraining corpus that name the topic "
            "(`corpus_frequency`) and PopQA's popularity (`popqa_frequency`)",
        )
        held = Path(self.knowledge).name if self.knowledge else None
        return Card(
            pretty_name=f"Topics by frequency and group: {self.domain.name}",
            text=CARD.format(
                name=self.domain.name,
                source=source,
                bins=bins,
                groups=groups,
                knowledge=f"Each has a page in `{held}`."
                if held
                else "Whether a knowledge source has their pages was **not** checked.",
                cells=cells,
            ),
            license="other" if self._files() else "cc0-1.0",
            task_categories=("text-generation",),
            tags=("factuality", "long-form-generation", "wikidata"),
        )


CARD = """\
Topics to write about ({name}), drawn evenly over cells of frequency and group, to test whether
texts about them are true. There are no texts in it.

- `topic`: title of the one English Wikipedia page; `name`: the label; `entity`: the item.
- `frequency`: {source}; `frequency_source` says which. Bins: {bins}.
- `continents`: all things that group the item, which may be several or none; `group`: the one
  with most votes, of equal ones the first; `cell`: group and number of the bin.
- `*_topic_freq_group.json`: topic to bin.

{knowledge}

Groups:

{groups}

Topics by group and bin (train/dev/test); `cells.svg` draws it. A cell that lacks topics is filled
up by the others, evenly; `manifest.json` counts what it lacks. Namesakes are in one split.

{cells}
Frequencies follow what an English corpus speaks of, so an even draw over cells is **no sample of
the world**: it says nothing about how many there are. Being listed says nothing about the people.
"""
