"""Query endpoints about candidates: item, membership, page and groups."""

import bz2
import gzip
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clients.sparql import SparqlClient
from data_builders.kb.bios.candidates import CORPUS, POPQA, SOURCES, Candidate, Candidates, resource
from data_builders.kb.bios.cells import PREFIXES, Domain
from data_builders.kb.facts import most_voted
from data_builders.kb.graph import WD, labels_of, rows_about
from eval.retrieve.knowledge import Knowledge
from records import BadInput, UserError

OWL_SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"


@dataclass
class Lookup:
    """Converts candidates to topics, a few hundred at a time, and counts dropped ones.

    Attributes:
        table: the candidates; topics are stored in it.
        dbpedia: endpoint with ``owl:sameAs``; ``None`` if the table has the pairs.
        knowledge: topics must have a page in it.
        exclude: excluded titles.
        columns: sources with a column of their frequency, as indices in ``SOURCES``.
    """

    table: Candidates
    domain: Domain
    client: SparqlClient
    dbpedia: SparqlClient | None = None
    knowledge: Knowledge | None = None
    exclude: frozenset[str] = frozenset()
    columns: Sequence[int] = ()
    dropped: Counter[str] = field(default_factory=Counter)
    _labels: dict[str, str] = field(default_factory=dict)

    def topics(self, candidates: Sequence[Candidate]) -> Counter[str]:
        """Store the topics among the candidates of one bin; return the number per group.

        An item counts once, at the rank of its most frequent candidate, so the draw is fair.
        """
        items = self._items(candidates)
        titles = self._titles(list(dict.fromkeys(items.values())))
        candidates_of = self._frequencies(list(titles))
        chosen = {}
        for candidate in candidates:
            item = items.get(candidate.id)
            if item not in titles:
                continue
            if max((candidate, *candidates_of[item]), key=_weight).id != candidate.id:
                self._drop("candidate of an item with a more frequent candidate")
            else:
                chosen[item] = candidate
        names = labels_of(self.client, list(chosen), "names")
        self._drop("item without an English name (rdfs:label)", len(chosen) - len(names))
        groups = self._groups(list(names))
        counts: Counter[str] = Counter()
        for item, candidate in chosen.items():
            if item in names:
                letter, labels = groups[item]
                row = self._row(
                    item, titles[item], names[item], candidate, candidates_of[item], labels
                )
                index = self.table.bin(candidate.n)
                text = json.dumps(row, ensure_ascii=False)
                if self.table.add_topic(item, index, letter, candidate.rank, text):
                    counts[letter] += 1
                else:
                    self._drop("candidate of an item that is already a topic")
        return counts

    def _row(
        self,
        item: str,
        title: str,
        name: str,
        candidate: Candidate,
        same_item: Sequence[Candidate],
        labels: Sequence[str],
    ) -> dict:
        row = {
            "topic": title,
            "name": name,
            "entity": item,
            "frequency": candidate.n,
            "frequency_source": SOURCES[candidate.kind],
        }
        for kind in self.columns:
            frequencies = [c.n for c in (candidate, *same_item) if c.kind == kind]
            row[f"{SOURCES[kind]}_frequency"] = max(frequencies, default=None)
        return row | {"continents": list(labels)}

    def _drop(self, reason: str, number: int = 1) -> None:
        self.dropped[reason] += number

    def _query(
        self, client: SparqlClient, variable: str, iris: Sequence[str], body: str, family: str
    ) -> Iterator[dict[str, str]]:
        return rows_about(
            client, iris, body, family, subject=variable, prefixes=PREFIXES, dropped=self.dropped
        )

    def _items(self, candidates: Sequence[Candidate]) -> dict[str, str]:
        items = {c.id: c.id for c in candidates if c.kind != CORPUS}
        uris = [c.id for c in candidates if c.kind == CORPUS]
        items_of: dict[str, set[str]] = defaultdict(set)
        for uri, item in self._pairs("uri", uris, "owl:sameAs of resources"):
            items_of[uri].add(item)
        self._drop("DBpedia resource without an item", len(uris) - len(items_of))
        single = {uri: min(members) for uri, members in items_of.items() if len(members) == 1}
        self._drop("DBpedia resource of several items", len(items_of) - len(single))
        # In the order of the candidates, so that query batches are reproducible.
        return {c.id: (items | single)[c.id] for c in candidates if c.id in items or c.id in single}

    def _pairs(self, column: str, values: Sequence[str], family: str) -> Iterator[tuple[str, str]]:
        if self.dbpedia is None:
            yield from self.table.same(column, values)
            return
        for row in self._query(self.dbpedia, column, values, self.domain.same_as, family):
            uri = resource(row["uri"])
            if uri is not None:
                yield uri, row["item"]

    def _titles(self, items: Sequence[str]) -> dict[str, str]:
        population = " UNION ".join(f"{{ {pattern} }}" for pattern in self.domain.population)
        body = f"{population}\n  OPTIONAL {{ {self.domain.page} }}"
        pages: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for row in self._query(self.client, "item", items, body, "population and pages"):
            item_pages = pages[row["item"]]
            if "title" in row and "page" in row:
                item_pages.add((row["page"], row["title"]))
        self._drop("item outside the population", len(items) - len(pages))
        titles = {}
        for item in items:
            item_pages = pages.get(item, set())
            if len(item_pages) == 1:
                ((_, title),) = item_pages
                if title in self.exclude:
                    self._drop("item whose title is excluded")
                elif self.knowledge is not None and title not in self.knowledge:
                    self._drop("item whose page is not in the knowledge source")
                else:
                    titles[item] = title
            elif item in pages:
                missing = "item without a page (domain.page)"
                self._drop("item with several pages" if item_pages else missing)
        return titles

    def _frequencies(self, items: Sequence[str]) -> dict[str, list[Candidate]]:
        candidates: dict[str, list[Candidate]] = {item: [] for item in items}
        pairs = {(item, item) for item in items}
        if CORPUS in self.columns:
            pairs |= {
                (uri, item) for uri, item in self._pairs("item", items, "resources of owl:sameAs")
            }
        for id, item in sorted(pairs):
            candidate = self.table.get(id)
            if candidate is not None:
                candidates[item].append(candidate)
        return candidates

    def _groups(self, items: Sequence[str]) -> dict[str, tuple[str, list[str]]]:
        """Map each item to its most voted group and the sorted labels of all groups."""
        rows = self._query(self.client, "item", items, self.domain.grouping, "groups")
        rows = [row for row in rows if "group" in row]  # may be OPTIONAL
        new = sorted({row["group"] for row in rows} - set(self._labels))
        labels = labels_of(self.client, new, "labels of groups")
        self._labels |= {iri: labels.get(iri, iri.removeprefix(WD)) for iri in new}
        votes: dict[str, list[str]] = {item: [] for item in items}
        for row in rows:
            votes[row["item"]].append(self._labels[row["group"]])
        ungrouped = sum(not cast for cast in votes.values())
        self._drop("item without a group (domain.grouping), in the rest", ungrouped)
        groups = {}
        for item, cast in votes.items():
            best = most_voted(map(self.domain.letter, cast), self.domain.rest)
            groups[item] = (best, sorted(set(cast)))
        return groups


def _weight(candidate: Candidate) -> tuple[int, bool, int, str]:
    return candidate.n, candidate.kind != POPQA, -candidate.rank, candidate.id


def read_same_as(path: str) -> Iterator[tuple[str, str]]:
    """Yield resource and item of each ``owl:sameAs`` line, gzip, bzip2 or uncompressed.

    Lines are N-Triples, as in DBpedia's dumps, or a resource, a tab and an item (IRI or ``Q42``).
    Other predicates and comments are ignored.
    """
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; expected N-Triples or a table of owl:sameAs")
    opener = {".gz": gzip.open, ".bz2": bz2.open}.get(Path(path).suffix, open)
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                pair = _pair(line, f"{path}:{number}")
                if pair is not None:
                    yield pair
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise BadInput([f"{path}:{number + 1}: cannot be read ({error})"]) from None


def _pair(line: str, where: str) -> tuple[str, str] | None:
    parts = [part.strip("<>") for part in line.split(None, 3)]
    if not parts or parts[0].startswith("#"):
        return None
    if len(parts) == 4:
        uri, predicate, item = parts[:3]
        if predicate != OWL_SAME_AS or not item.startswith(WD):
            return None
    elif len(parts) == 2:
        uri, item = parts
        item = item if "/" in item else WD + item
    else:
        raise BadInput([f"{where}: expected an N-Triple, or a resource and an item"])
    name = resource(uri)
    return None if name is None else (name, item)
