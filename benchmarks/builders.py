"""Processor time and peak memory of dataset builders by the number of entities.

    python benchmarks/builders.py --sizes 10000 100000 1000000
    python benchmarks/builders.py --only bios --sizes 1000 10000

Writes synthetic people as a Turtle file (about ten facts each, structured as in Wikidata), pages
and pairs, runs builders with ``python -m data_builders``, and prints one JSON object per run:

- ``bios``: topics from the people; the population is queried in ``--queries`` parts by place of
  birth, as required for a domain that is too large for one query;
- ``knowledge``: one page per entity, from a JSONL file to SQLite with an index;
- ``pairs``: one premise and hypothesis per entity, from a JSONL file, all for training;
- ``pairs_split``: the same with a tenth each for dev and test: rows that share a text stay
  together, and the similarity of the splits is measured.

Peak memory is that of the builder's process. Processor time includes the SPARQL server that the
builder starts with the Turtle file.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from cli.command import run_command
from records import UserError

PLACES = 100
FREQUENCIES = (40, 400, 2500, 12000)
COUNTRIES = {
    "Asia": ("India", "Japan", "Vietnam"),
    "North America": ("Canada", "Mexico", "Cuba"),
    "Europe": ("France", "Poland", "Italy"),
    "Africa": ("Ghana", "Kenya", "Egypt"),
}
JOBS = ("writer", "poet", "painter", "politician", "chemist", "composer", "lawyer", "physician")
FIRST_NAMES = ("Ada", "Boris", "Clara", "Dario", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas")
SYLLABLES = ("ba", "del", "fin", "gor", "hal", "kim", "lor", "mon", "ner", "pas", "ros", "tam")
WORDS = ["".join(parts) for parts in product(SYLLABLES, repeat=3)]
PREFIXES = """\
@prefix ff: <https://factfoundry.example/entity/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <http://schema.org/> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
Rows = Iterator[str]


def people(number: int, seed: int) -> Rows:
    """Turtle lines of people; the first people do not depend on ``number``."""
    rng = random.Random(f"{seed}:people")
    lands = [country for countries in COUNTRIES.values() for country in countries]
    yield PREFIXES
    for continent, countries in COUNTRIES.items():
        name = f"ff:{continent.replace(' ', '_')}"
        yield f'{name} rdfs:label "{continent}"@en .\n'
        for country in countries:
            yield f'ff:{country} rdfs:label "{country}"@en ; wdt:P30 {name} .\n'
    for job in JOBS:
        yield f'ff:{job} rdfs:label "{job}"@en .\n'
    for kind in ("place", "award", "school", "team"):
        for n in range(PLACES):
            name = f"{rng.choice(WORDS).title()} {kind.title()} {n}"
            yield f'ff:{kind}_{n} rdfs:label "{name}"@en .\n'
    for n in range(number):
        name = f"{rng.choice(FIRST_NAMES)} {rng.choice(WORDS).title()}"
        page = f"<https://en.wikipedia.org/wiki/P{n}>"
        place, other, award, school, team = (rng.randrange(PLACES) for _ in range(5))
        born, month, day = rng.randint(1700, 1920), rng.randint(1, 12), rng.randint(2, 28)
        yield (
            f'ff:p{n} wdt:P31 wd:Q5 ; rdfs:label "{name}"@en ; skos:altLabel "{name} {n}"@en ; '
            f"wdt:P21 wd:{rng.choice(('Q6581097', 'Q6581072'))} ; wdt:P27 ff:{rng.choice(lands)} ; "
            f"wdt:P106 {', '.join(f'ff:{job}' for job in rng.sample(JOBS, 2))} ; "
            f'wdt:P569 "{born}-{month:02}-{day:02}"^^xsd:date ; '
            f'wdt:P570 "{born + rng.randint(20, 90)}-{month:02}-{day:02}"^^xsd:date ; '
            f"wdt:P19 ff:place_{place} ; wdt:P20 ff:place_{other} ; wdt:P166 ff:award_{award} ; "
            f"wdt:P69 ff:school_{school} ; wdt:P54 ff:team_{team} ; "
            f"ff:frequency {rng.choice(FREQUENCIES)} .\n"
            f"{page} schema:about ff:p{n} ; schema:isPartOf <https://en.wikipedia.org/> ; "
            f'schema:name "{name} ({n})"@en .\n'
        )


def pages(number: int, seed: int) -> Rows:
    """JSONL lines of pages with sixty words."""
    rng = random.Random(f"{seed}:pages")
    for n in range(number):
        text = " ".join(rng.choices(WORDS, k=60))
        yield json.dumps({"title": f"{rng.choice(WORDS).title()} ({n})", "text": text}) + "\n"


def pairs(number: int, seed: int) -> Rows:
    """JSONL lines of a premise, a hypothesis and a label."""
    rng = random.Random(f"{seed}:pairs")
    labels = ("entailment", "neutral", "contradiction")
    for _ in range(number):
        words = rng.choices(WORDS, k=16)
        row = {"premise": f"{' '.join(words)}.", "hypothesis": f"{words[3]} {words[7]}."}
        yield json.dumps(row | {"label": rng.choice(labels)}) + "\n"


class Part(NamedTuple):
    """A builder, the function that generates its input, the input's name, and its options."""

    builder: str
    rows: Callable[[int, int], Rows]
    file: str
    options: Callable[[str, argparse.Namespace], dict]


def _topics(file: str, options: argparse.Namespace) -> dict:
    places = range(min(options.queries, PLACES))
    values = [" ".join(f"ff:place_{n}" for n in range(PLACES)[p :: len(places)]) for p in places]
    parts = [f"VALUES ?place {{ {some} }} ?item wdt:P19 ?place ." for some in values]
    population = parts if options.queries > 1 else ["?item wdt:P31 wd:Q5 ."]
    return {"endpoint": file, "topics": options.topics, "domain": {"population": population}}


PARTS = {
    "bios": Part("bios", people, "people.ttl", _topics),
    "knowledge": Part("knowledge", pages, "pages.jsonl", lambda file, _: {"input": [file]}),
    "pairs": Part("pairs", pairs, "pairs.jsonl", lambda file, _: {"sources": [{"file": file}]}),
    "pairs_split": Part(
        "pairs",
        pairs,
        "pairs.jsonl",
        lambda file, _: {"sources": [{"file": file}], "shares": [8, 1, 1]},
    ),
}


def peak_mib(pid: int, ended: threading.Event, peaks: list[float]) -> None:
    """Poll the peak memory of a process; ``getrusage`` would include child processes."""
    status = Path(f"/proc/{pid}/status")
    while not ended.wait(0.02):
        lines = status.read_text().splitlines()
        peaks += [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")]


def run(command: list[str], log: Path) -> dict[str, float]:
    """Run a command with its output in ``log``; return its usage, with times of its children."""
    start = time.perf_counter()
    with open(log, "wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    ended, peaks = threading.Event(), [0.0]
    watch = threading.Thread(target=peak_mib, args=(process.pid, ended, peaks), daemon=True)
    watch.start()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    seconds = time.perf_counter() - start
    ended.set()
    watch.join()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        lines = log.read_text(encoding="utf-8").strip().splitlines()
        raise RuntimeError(f"{' '.join(command)}: {lines[-1] if lines else 'no message'}")
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mib": max(peaks)}


def measure(name: str, size: int, folder: Path, options: argparse.Namespace) -> dict:
    """Measure one part at one size."""
    part, source, output = PARTS[name], folder / PARTS[name].file, folder / "made"
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(part.rows(size, options.seed))
    config = part.options(str(source), options) | {"output": str(output), "seed": options.seed}
    (folder / "config.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "data_builders", part.builder]
    usage = run([*command, "--config", str(folder / "config.json")], folder / "build.log")
    records = json.loads((output / "manifest.json").read_text(encoding="utf-8"))["kept"]
    return {"part": name, "entities": size, "records": records} | usage


def main(arguments: list[str] | None = None) -> None:
    """Print one line per part and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--topics", type=int, default=1024, help="number of topics for bios")
    parser.add_argument("--queries", type=int, default=PLACES, help="population queries for bios")
    parser.add_argument("--folder", default=None, help="working folder; default: temporary")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None, help="JSON file for the results")
    options = parser.parse_args(arguments)
    if min(*options.sizes, options.queries, options.topics) < 1:
        raise UserError("--sizes, --queries, --topics: expected at least 1")
    rows = []
    for name in options.only or PARTS:
        for size in options.sizes:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                rows.append(measure(name, size, Path(folder), options))
            print(json.dumps(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    run_command(main)
