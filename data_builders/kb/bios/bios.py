"""``bios``: topics of a domain, sampled evenly over frequency and group.

Core (2407.03572, section 4.2) extends FActScore's biographies to 1,024 people. The frequency is the
larger of the number of documents that name the person in a pretraining corpus (Kandpal et al.
2211.08411) and PopQA's popularity (2212.10511). People are drawn evenly over four frequency bins
and four groups of continents, and need exactly one English Wikipedia page that is in the knowledge
source. The authors' released code prefers people with both frequencies; the paper and this builder
do not.

Only some of the millions of candidates are queried: each bin is processed in a drawn order until
its cells are full. The result equals that of querying all candidates.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tqdm import tqdm

from clients.polite import SECONDS_PER_REQUEST
from clients.sparql import VALUES_SIZE, SparqlClient
from data_builders.builder import AskingBuilder, Made, Step, Work
from data_builders.dataset import Card, read_card
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

WAVE = 1000  # candidates queried at a time; affects the requests, not the topics
SECONDS_PER_NAME = 5e-5  # of a corpus map, for estimates
NOT_QUERIED = "candidate not queried: its bin was full, or limit"


@dataclass
class Bios(AskingBuilder):
    """Topics of any SPARQL-described domain, sampled evenly over frequency and group.

    Args:
        domain: members, groups and frequency bins; people by default.
        endpoint: ``snapshot`` for the embedded Turtle file, the path of another one, or the URL of
            a SPARQL service.
        corpus_maps: ``.npz`` files with an array of document numbers for each DBpedia resource;
            counts of several files are added.
        popqa: PopQA: a file, or ``hub:akariasai/PopQA:test``.
        dbpedia: SPARQL service or Turtle file that maps resources to items.
        same_as: file that replaces ``dbpedia``: N-Triples, or a table of resource and item.
        knowledge: SQLite file with ``documents(title, text)``; topics without a page in it are
            dropped. Null keeps all.
        exclude: files of topics to exclude.
        topics: number of topics.
        shares: topics of train, dev and test, by cell.
        limit: use only the first N candidates of each bin, for a trial.
        seed: seed of the draws.
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

    reads = ("corpus_maps", "popqa", "same_as", "knowledge", "exclude")
    asks = ("endpoint", "dbpedia")
    least: ClassVar = {"topics": 1, "shares": 1}

    def __post_init__(self) -> None:
        self.domain = self.domain or Domain()
        super().__post_init__()

    def faults(self) -> Iterator[str]:
        if self.same_as and not self.corpus_maps:
            yield "same_as: requires corpus_maps; set both"

    def files(self) -> dict[str, dict[str, str]]:
        return {"topics": by_split("topics")}

    def plan(self) -> list[Step]:
        steps = []
        names = None
        missing = [path for path in self.corpus_maps or () if not Path(path).exists()]
        steps += [Step("missing, see the head of the configuration", p, 1, "file") for p in missing]
        if self.corpus_maps and not missing:
            names = count_resources(self.corpus_maps)
            steps.append(Step("names", "corpus maps", names, "names", SECONDS_PER_NAME * names))
            if self.limit is not None:
                names = min(names, self.limit * len(self.domain.bins))
        if self.popqa:
            steps.append(Step("popular entities", source_name(self.popqa), None, "rows"))
        if self.same_as:
            steps.append(Step("owl:sameAs", Path(self.same_as).name, None, "lines"))
        elif names is not None:
            # Both directions are queried, and each response is counted.
            steps.append(self._requests("owl:sameAs, until cells are full", self.dbpedia, names, 4))
        if not self._files():
            number = len(self.domain.population)
            steps.append(self._requests("population", self.endpoint, number * VALUES_SIZE, 1))
        steps.append(self._requests("population, pages, names, groups", self.endpoint, names, 4))
        return steps

    def _requests(self, purpose: str, where: str, items: int | None, each: int) -> Step:
        if items is None:
            return Step(purpose, where)
        number = -(-items // VALUES_SIZE) * each
        return Step(purpose, where, number, seconds=number * SECONDS_PER_REQUEST)

    def make(self, work: Work) -> Made:
        client = sparql(work, self.endpoint)
        needs_dbpedia = self.corpus_maps and not self.same_as
        dbpedia = sparql(work, self.dbpedia, counted=True) if needs_dbpedia else None
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
            frequencies = corpus_frequencies(self.corpus_maps, dropped)
            candidates.add(CORPUS, tqdm(frequencies, "names", total, unit="name", disable=None))
        if self.popqa:
            frequencies = popqa_frequencies(self.popqa)
            candidates.add(POPQA, tqdm(frequencies, "PopQA", unit="entity", disable=None))
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
                        f"domain.population: {pattern!r} leaves ?item unbound; move it out of "
                        "OPTIONAL"
                    )
                number = frequency_of(row.get("frequency", ""))
                if number is None:
                    dropped["item without a frequency (domain.frequency)"] += 1
                else:
                    yield row["item"], number

    def _draw(self, lookup: Lookup) -> list[dict]:
        order = draw_order(self.domain.cells, self.seed)
        have: Counter[Cell] = Counter()
        ended: set[int] = set()
        queues = [
            lookup.table.queue(index, WAVE, self.limit) for index in range(len(self.domain.bins))
        ]
        queried = 0
        with tqdm(total=self.topics, desc="topics", unit="topic", disable=None) as bar:
            while True:
                limits = {cell: have[cell] if cell[0] in ended else None for cell in order}
                targets = quotas(order, limits, self.topics)
                bar.n = sum(min(have[cell], targets[cell]) for cell in order)
                bar.refresh()
                short = {cell[0] for cell in order if have[cell] < targets[cell]} - ended
                if not short:
                    break
                for index in sorted(short):
                    wave = next(queues[index], None)
                    if wave is None:
                        ended.add(index)
                        continue
                    queried += len(wave)
                    for letter, number in lookup.topics(wave).items():
                        have[index, letter] += number
        lookup.dropped[NOT_QUERIED] += len(lookup.table) - queried
        return self._rows(lookup, targets, have)

    def _rows(self, lookup: Lookup, targets: dict[Cell, int], have: Counter[Cell]) -> list[dict]:
        ranked = []
        even = self.topics / len(targets)
        for (index, letter), number in targets.items():
            for rank, text in lookup.table.first_topics(index, letter, number):
                row = json.loads(text)
                cell = {"bin": list(self.domain.bins)[index], "group": letter}
                ranked.append((rank, row | cell | {"cell": f"{letter}{index}"}))
            lookup.dropped["topic not drawn"] += have[index, letter] - number
            reason = f"topic missing in cell {letter}{index}, taken from other cells"
            lookup.dropped[reason] += max(0, int(even) - number)
        lookup.dropped["topic missing in all cells"] += self.topics - len(ranked)
        ranked.sort(key=lambda pair: (pair[0], pair[1]["entity"]))
        return [row for _, row in ranked]

    def _made(self, rows: list[dict], work: Work) -> Made:
        splits = split_topics(rows, self.shares, self.seed)
        parts = {s: [row for row in rows if splits[row["topic"]] == s] for s in SPLITS}
        empty = [split for split, part in parts.items() if not part]
        if empty:
            raise UserError(
                f"no topic for {' and '.join(empty)} ({work.dropped_summary()}); "
                "widen the domain or raise limit"
            )
        letters, bins = self.domain.letters, list(self.domain.bins)
        pages = {
            f"{split}_topic_freq_group.json": json_line({r["topic"]: r["bin"] for r in part}) + "\n"
            for split, part in parts.items()
        }
        return Made(
            {f"topics_{split}.jsonl": part for split, part in parts.items()},
            self._card(table(rows, letters, bins, splits)),
            pages,
        )

    def _card(self, cells: str) -> Card:
        bins = ", ".join(f"{name} (from {least})" for name, least in self.domain.bins.items())
        groups = "\n".join(
            f"- {letter}: {', '.join(self.domain.groups.get(letter, [])) or 'no other'}"
            + (", and items without a group" if letter == self.domain.rest else "")
            for letter in self.domain.letters
        )
        source = {
            (): "the number at the endpoint",
            (CORPUS,): "number of documents of a pretraining corpus that name the topic",
            (POPQA,): "PopQA's popularity",
        }.get(
            tuple(self._columns()),
            "the larger of the number of documents of a pretraining corpus that name the topic "
            "(`corpus_frequency`) and PopQA's popularity (`popqa_frequency`)",
        )
        database = Path(self.knowledge).name if self.knowledge else None
        return read_card(
            "bios",
            name=self.domain.name,
            licence="other" if self._files() else "cc0-1.0",
            source=source,
            bins=bins,
            groups=groups,
            knowledge=f"Each has a page in `{database}`."
            if database
            else "Pages were **not** checked against a knowledge source.",
            cells=cells,
        )
