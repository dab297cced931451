"""Topics by frequency and group: archives of corpus maps, cells, splits, and whole small builds."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from data_builders.__main__ import main
from data_builders.builder import scratch_table
from data_builders.kb.bios.bios import Bios
from data_builders.kb.bios.candidates import Candidates, rank_of
from data_builders.kb.bios.cells import Domain, draw_order, quotas, split_sizes, split_topics
from data_builders.kb.bios.npz import array_lengths
from data_builders.splits import SPLITS
from data_builders.topics import read_topics
from records import BadInput, write_jsonl

DBR = "http://dbpedia.org/resource/"
WD = "http://www.wikidata.org/entity/"
CONTINENTS = {"A": "Q48", "B": "Q49", "C": "Q46", "D": "Q15"}
LEAST = (3, 100, 1000, 5000)
EACH = 5  # people in each of the 16 cells
PREFIXES = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <http://schema.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dbo: <http://dbpedia.org/ontology/> .
"""


# Archives


def test_objects_are_refused_and_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    np.savez(tmp_path / "map.npz", good=np.arange(3), bad=np.array([Trap()], dtype=object))
    lengths = array_lengths(tmp_path / "map.npz")
    assert next(lengths) == ("good", 3)
    with pytest.raises(BadInput, match=r"map\.npz: bad\.npy: expected a flat array"):
        next(lengths)
    assert not (tmp_path / "sprung").exists()


# Cells and splits


def test_cells_with_enough_topics_get_equal_quotas():
    cells = Domain().cells
    even = quotas(cells, dict.fromkeys(cells), 1024)
    assert set(even.values()) == {64}


def test_split_sizes_equal_the_papers():
    sizes = split_sizes({f"{cell}": 64 for cell in Domain().cells}, (50, 7, 7))
    assert len(sizes) == 16
    assert all(cell == {"train": 50, "dev": 7, "test": 7} for cell in sizes.values())
    small = split_sizes({str(cell): 4 for cell in range(16)}, (50, 7, 7))
    assert sum(small.values(), Counter()) == {"train": 50, "dev": 7, "test": 7}
    assert all(
        cell_sizes.total() == 4 and cell_sizes["train"] >= 2 for cell_sizes in small.values()
    )


def test_missing_topics_are_spread_evenly_over_other_cells():
    cells = Domain().cells
    most = dict.fromkeys(cells) | {cells[0]: 4, cells[5]: 66, cells[9]: 0}
    sizes = quotas(cells, most, 1024)
    assert (sizes[cells[0]], sizes[cells[9]]) == (4, 0)
    assert sizes[cells[5]] == 66
    unlimited = [sizes[c] for c in cells if most[c] is None]
    assert sum(sizes.values()) == 1024
    assert max(unlimited) - min(unlimited) <= 1
    few = quotas(cells, dict.fromkeys(cells, 3), 1024)
    assert set(few.values()) == {3}
    assert sum(quotas(draw_order(cells, 1), dict.fromkeys(cells), 5).values()) == 5


def test_each_candidate_is_drawn_first_equally_often():
    first = Counter(min("abcde", key=lambda id: rank_of(seed, id)) for seed in range(1000))
    assert min(first[id] for id in "abcde") > 150


def test_namesakes_stay_together_and_sizes_hold():
    rows = [{"topic": f"T{n}", "name": f"N{n}", "cell": f"{'AB'[n % 2]}0"} for n in range(128)]
    rows[0] |= {"topic": "Kim Lee (poet)", "name": "Kim Lee"}
    rows[1] |= {"topic": "Kim Lee", "name": "Kim Q. Lee"}
    rows[3] |= {"topic": "K. Q. Lee", "name": "Kim q. lee"}
    seen = set()
    for seed in range(20):
        split = split_topics(rows, (50, 7, 7), seed)
        seen.add(split["Kim Lee"])
        assert split["Kim Lee (poet)"] == split["Kim Lee"] == split["K. Q. Lee"]
        counts = Counter((row["cell"], split[row["topic"]]) for row in rows)
        assert counts == {
            (cell, name): size
            for cell in ("A0", "B0")
            for name, size in zip(SPLITS, (50, 7, 7), strict=True)
        }
    assert seen == set(SPLITS)


# The table


def test_corpus_counts_are_summed_and_popularities_are_not(tmp_path):
    table = Candidates(scratch_table(tmp_path / "c.sqlite"), 0, (0, 100))
    table.add(0, [("u", 60), ("v", 1)])
    table.add(0, [("u", 40)])
    table.add(1, [("q", 5), ("q", 9), ("q", 5)])
    table.order()
    assert len(table) == 3
    assert (table.get("u").n, table.get("q").n, table.get("w")) == (100, 9, None)
    assert [c.id for wave in table.queue(1, 10) for c in wave] == ["u"]
    assert {c.id for wave in table.queue(0, 1) for c in wave} == {"v", "q"}
    assert sum(len(wave) for wave in table.queue(0, 1, limit=1)) == 1


# Whole builds


class World:
    """A small made-up Wikidata, DBpedia, corpus map, PopQA and knowledge source."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.wikidata: list[str] = []
        self.dbpedia: list[str] = []
        self.map: dict[str, np.ndarray] = {}
        self.titles: list[str] = []
        for letter, continent in CONTINENTS.items():
            label = {"A": "Asia", "B": "North America", "C": "Europe", "D": "Africa"}[letter]
            self.wikidata.append(f'wd:{continent} rdfs:label "{label}"@en .')
            self.wikidata.append(f"wd:land{letter} wdt:P30 wd:{continent} .")
            for index, least in enumerate(LEAST):
                for number in range(EACH):
                    self.person(f"Person {letter}{index} {number}", f"wd:land{letter}", least)

    def person(self, title: str, lands: str = "", documents: int = 0, more: str = "") -> str:
        key = f"Q{title.replace(' ', '')}"
        self.titles.append(title)
        self.wikidata.append(f'wd:{key} wdt:P31 wd:Q5 ; rdfs:label "{title}"@en .')
        self.wikidata.append(
            f"<https://en.wikipedia.org/wiki/{key}> schema:about wd:{key} ; "
            f'schema:isPartOf <https://en.wikipedia.org/> ; schema:name "{title}"@en .'
        )
        if lands:
            self.wikidata.append(f"wd:{key} wdt:P27 {lands} .")
        self.wikidata.append(more)
        if documents:
            self.resource(title, documents, key)
        return key

    def resource(self, title: str, documents: int, *keys: str) -> None:
        uri = DBR + title.replace(" ", "_")
        self.map[uri] = np.arange(documents, dtype=np.int32)
        self.dbpedia += [
            f"<{uri}> owl:sameAs wd:{key} , <http://x.example/{key}> ." for key in keys
        ]

    def write(self, popqa: list[tuple[str, int]], absent: str) -> None:
        for name in ("wikidata", "dbpedia"):
            text = PREFIXES + "\n".join(getattr(self, name))
            (self.folder / f"{name}.ttl").write_text(text, encoding="utf-8")
        np.savez(self.folder / "map.npz", **self.map)
        rows = [
            {"s_uri": WD + key, "s_pop": n, "o_uri": f"{WD}town", "o_pop": 50} for key, n in popqa
        ]
        write_jsonl(self.folder / "popqa.jsonl", rows)
        base = sqlite3.connect(self.folder / "knowledge.sqlite")
        base.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
        rows = [(title, "text") for title in self.titles if title != absent]
        base.executemany("INSERT INTO documents VALUES (?, ?)", rows)
        base.commit()
        base.close()


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("world"))
    made.resource("Ghost", 10)
    made.resource("Both", 10, "one", "two")
    made.resource("Town", 10, "town")
    made.wikidata.append('wd:town wdt:P31 wd:Q515 ; rdfs:label "Town"@en .')
    made.wikidata.append('wd:pageless wdt:P31 wd:Q5 ; rdfs:label "Pageless"@en .')
    made.resource("Pageless", 10, "pageless")
    made.person("Two Pages", documents=10)
    made.wikidata.append(
        "<https://en.wikipedia.org/wiki/Other> schema:about wd:QTwoPages ; "
        'schema:isPartOf <https://en.wikipedia.org/> ; schema:name "Other"@en .'
    )
    made.wikidata.append(
        '<https://de.wikipedia.org/wiki/X> schema:about wd:QPersonA00 ; schema:name "X"@de ; '
        "schema:isPartOf <https://de.wikipedia.org/> ."
    )
    made.person("Unlabelled", documents=10)
    made.wikidata = [t.replace('label "Unlabelled"@en', 'label "Ohne"@de') for t in made.wikidata]
    made.person("Not In Knowledge", documents=10)
    made.person("Taken", documents=10)
    # A redirect of yesterday's page, and two spellings of one resource.
    made.map[f"{DBR}Old_name"] = np.arange(2)
    made.dbpedia.append(f"<{DBR}Old_name> dbo:wikiPageRedirects <{DBR}Person_A0_0> .")
    made.person("Zoë", "wd:landC , wd:landA , wd:landC2", 60)
    made.wikidata.append("wd:landC2 wdt:P30 wd:Q46 .")
    made.map[f"{DBR}Zo%C3%AB"] = np.arange(50)
    made.map["__SPOTLIGHT_EXCEPTION__"] = np.arange(9)
    made.person("Pop Only")
    popqa = [("QPersonA01", 7000), ("QPersonA01", 7000), ("QPopOnly", 150), ("QPersonC32", 20)]
    made.write(popqa, absent="Not In Knowledge")
    (made.folder / "taken.txt").write_text("Taken\n\n", encoding="utf-8")
    return made.folder


def builder(world: Path, output: Path, **more: object) -> Bios:
    options = {
        "endpoint": str(world / "wikidata.ttl"),
        "dbpedia": str(world / "dbpedia.ttl"),
        "corpus_maps": [str(world / "map.npz")],
        "popqa": str(world / "popqa.jsonl"),
        "knowledge": str(world / "knowledge.sqlite"),
        "exclude": [str(world / "taken.txt")],
        "topics": 48,
        "shares": (1, 1, 1),
    }
    return Bios(output, **(options | more))


def rows_of(folder: Path, split: str | None = None) -> list[dict]:
    return [
        json.loads(line)
        for name in ([split] if split else SPLITS)
        for line in (folder / f"topics_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="session")
def everyone(world, tmp_path_factory):
    """All topics that there are: more are asked for than the cells have."""
    return builder(world, tmp_path_factory.mktemp("all"), topics=1000).build().parent


def test_every_drop_is_counted_with_its_reason(everyone):
    manifest = json.loads((everyone / "manifest.json").read_text())
    short = {key: n for key, n in manifest["dropped"].items() if "taken from" in key}
    assert {k: n for k, n in manifest["dropped"].items() if k not in short} == {
        "name in a corpus map that is not a DBpedia resource": 1,
        "DBpedia resource without an item": 1,
        "DBpedia resource of several items": 1,
        # The town is a resource and in PopQA, which are two candidates in one wave.
        "item outside the population": 1,
        "item without a page (domain.page)": 1,
        "item with several pages": 1,
        "item whose page is not in the knowledge source": 1,
        "item whose title is excluded": 1,
        "item without an English name (rdfs:label)": 1,
        "item without a group (domain.grouping), in the rest": 1,
        # Old_name, Person A0 1 in the map, Person C3 2 in PopQA.
        "candidate of an item with a more frequent candidate": 3,
        "topic missing in all cells": 1000 - 82,
    }
    assert sum(short.values()) == 16 * 62 - 82
    assert {entry["file"] for entry in manifest["inputs"]} == {
        "map.npz",
        "popqa.jsonl",
        "knowledge.sqlite",
        "taken.txt",
    }


def test_frequency_is_the_larger_of_both_sources(everyone):
    rows = {row["topic"]: row for row in rows_of(everyone)}
    assert len(rows) == 82
    assert rows["Person A0 1"] == {
        "topic": "Person A0 1",
        "name": "Person A0 1",
        "entity": f"{WD}QPersonA01",
        "frequency": 7000,
        "frequency_source": "popqa",
        "corpus_frequency": 3,
        "popqa_frequency": 7000,
        "continents": ["Asia"],
        "bin": "frequent",
        "group": "A",
        "cell": "A3",
    }
    corpus = rows["Person C3 2"]
    assert (corpus["frequency"], corpus["popqa_frequency"]) == (5000, 20)
    assert corpus["frequency_source"] == "corpus"
    assert rows["Pop Only"]["corpus_frequency"] is None
    assert (rows["Pop Only"]["cell"], rows["Pop Only"]["continents"]) == ("D1", [])
    # Two spellings add up; of three countries two are in Europe.
    assert (rows["Zoë"]["frequency"], rows["Zoë"]["cell"]) == (110, "C1")
    assert rows["Zoë"]["continents"] == ["Asia", "Europe"]
    counts = Counter(row["cell"] for row in rows.values())
    assert counts == {f"{g}{b}": EACH for g in "ABCD" for b in range(4)} | {
        "A0": EACH - 1, "A3": EACH + 1, "C1": EACH + 1, "D1": EACH + 1,
    }  # fmt: skip


def test_repeated_build_is_even_and_byte_identical(world, tmp_path):
    first = builder(world, tmp_path / "one").build().parent
    builder(world, tmp_path / "two", cache_dir=tmp_path / "kept").build()
    files = files_of(first)
    assert sorted(files) == [
        "README.md",
        "dev_topic_freq_group.json",
        "manifest.json",
        "test_topic_freq_group.json",
        "topics_dev.jsonl",
        "topics_test.jsonl",
        "topics_train.jsonl",
        "train_topic_freq_group.json",
    ]
    assert files == files_of(tmp_path / "two")
    for split in SPLITS:
        counts = Counter(row["cell"] for row in rows_of(first, split))
        assert counts == {f"{g}{b}": 1 for g in "ABCD" for b in range(4)}
        bins = json.loads(files[f"{split}_topic_freq_group.json"])
        assert bins == {row["topic"]: row["bin"] for row in rows_of(first, split)}
    assert "| A | 3 (1/1/1) | 3 (1/1/1) | 3 (1/1/1) | 3 (1/1/1) |" in files["README.md"].decode()
    other = builder(world, tmp_path / "three", seed=1).build().parent
    assert {r["topic"] for r in rows_of(other)} != {r["topic"] for r in rows_of(first)}


def test_snapshot_build_uses_endpoint_frequencies_and_is_readable_as_topics(tmp_path):
    folder = Bios(tmp_path / "out", topics=160).build().parent
    rows = rows_of(folder)
    assert {row["frequency_source"] for row in rows} == {"endpoint"}
    assert "corpus_frequency" not in rows[0]
    assert len(read_topics([folder / f"topics_{split}.jsonl" for split in SPLITS])) == 160
    counts = Counter(row["cell"] for row in rows)
    assert len(counts) == 16
    assert max(counts.values()) <= 11


TOWNS = """
@prefix ex: <https://x.example/> .
ex:land wdt:P30 wd:Q48 . wd:Q48 rdfs:label "Asia"@en .
"""


def test_custom_domain_is_built_from_its_patterns(tmp_path):
    lines = [PREFIXES + TOWNS]
    for number in range(12):
        kind = "town" if number % 2 else "city"
        lines.append(
            f'ex:t{number} wdt:P31 ex:{kind} ; rdfs:label "T{number}"@en ; ex:links {number} ; '
            f"wdt:P17 ex:land . ex:p{number} schema:about ex:t{number} ; "
            f'schema:name "T{number}"@en .'
        )
    (tmp_path / "towns.ttl").write_text("\n".join(lines), encoding="utf-8")
    towns = {
        "name": "towns",
        "population": [f"?item wdt:P31 <https://x.example/{k}> ." for k in ("town", "city")],
        "page": "?page schema:about ?item ; schema:name ?title .",
        "grouping": "?item wdt:P17/wdt:P30 ?group .",
        "groups": {"east": ["Asia"]},
        "rest": "elsewhere",
        "frequency": "?item <https://x.example/links> ?frequency .",
        "bins": {"few": 0, "many": 5},
    }
    config = {
        "output": str(tmp_path / "out"),
        "endpoint": str(tmp_path / "towns.ttl"),
        "domain": towns,
        "topics": 6,
        "shares": [1, 1, 1],
    }
    (tmp_path / "towns.yaml").write_text(yaml.safe_dump(config))
    assert main(["bios", "--config", str(tmp_path / "towns.yaml")]) == 0
    rows = rows_of(tmp_path / "out")
    assert Counter((r["group"], r["bin"]) for r in rows) == {
        ("east", "few"): 3,
        ("east", "many"): 3,
    }
    dropped = json.loads((tmp_path / "out" / "manifest.json").read_text())["dropped"]
    assert dropped["topic missing in cell elsewhere0, taken from other cells"] == 1
    assert dropped["topic not drawn"] == 6
