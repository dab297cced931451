"""Builders on many entities: records a second, and whether their memory grows with their number.

    python benchmarks/builders.py --sizes 10000 100000 1000000
    python benchmarks/builders.py --only kb_pairs --sizes 1000 10000

Writes synthetic people as a Turtle file (some ten facts each, in the shape of Wikidata's graph),
and runs real builders through their door, ``python -m data_builders``:

- ``bios``: topics of them all, from a local SPARQL server; the population is asked for in
  ``--queries`` parts by place of birth, as a domain must be that is too large for one query;
- ``bios_file``: the same, where the builder itself serves the file;
- ``kb_pairs``: all facts of all people, from the server; it keeps them all, so it is no part of
  the default;
- ``knowledge``: a page each, from a JSONL file to SQLite and its index;
- ``pairs``: a premise and a hypothesis each, from a JSONL file, all of them to train on;
- ``pairs_split``: the same, of which a tenth each goes to dev and test: what shares a text is kept
  together, and how near the splits stand is measured.

Peak memory is the builder's process alone; a server's stands beside it. The time is that of the
whole command, the processor's with the server's; to load the server before is not part of it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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
GIVEN = ("Ada", "Boris", "Clara", "Dario", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas")
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
    """Turtle of so many people; the first of them are the same whatever the number."""
    rng = random.Random(f"{seed}:people")
    lands = [land for own in COUNTRIES.values() for land in own]
    yield PREFIXES
    for continent, own in COUNTRIES.items():
        name = f"ff:{continent.replace(' ', '_')}"
        yield f'{name} rdfs:label "{continent}"@en .\n'
        for land in own:
            yield f'ff:{land} rdfs:label "{land}"@en ; wdt:P30 {name} .\n'
    for job in JOBS:
        yield f'ff:{job} rdfs:label "{job}"@en .\n'
    for kind in ("place", "award", "school", "team"):
        for n in range(PLACES):
            name = f"{rng.choice(WORDS).title()} {kind.title()} {n}"
            yield f'ff:{kind}_{n} rdfs:label "{name}"@en .\n'
    for n in range(number):
        name = f"{rng.choice(GIVEN)} {rng.choice(WORDS).title()}"
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
    """A page each, of sixty words."""
    rng = random.Random(f"{seed}:pages")
    for n in range(number):
        text = " ".join(rng.choices(WORDS, k=60))
        yield json.dumps({"title": f"{rng.choice(WORDS).title()} ({n})", "text": text}) + "\n"


def pairs(number: int, seed: int) -> Rows:
    """A premise of two sentences and a hypothesis each."""
    rng = random.Random(f"{seed}:pairs")
    labels = ("entailment", "neutral", "contradiction")
    for _ in range(number):
        words = rng.choices(WORDS, k=16)
        row = {"premise": f"{' '.join(words)}.", "hypothesis": f"{words[3]} {words[7]}."}
        yield json.dumps(row | {"label": rng.choice(labels)}) + "\n"


class Part(NamedTuple):
    """A builder and where it reads from.

    Attributes:
        builder: its name on the command line.
        rows: makes the lines of its file.
        file: that file's name.
        served: whether a server of its own is filled with the file first.
        options: of the file (or the server's URL) and the command line's options.
    """

    builder: str
    rows: Callable[[int, int], Rows]
    file: str
    served: bool
    options: Callable[[str, argparse.Namespace], dict]


def _topics(endpoint: str, options: argparse.Namespace) -> dict:
    places = range(min(options.queries, PLACES))
    values = [" ".join(f"ff:place_{n}" for n in range(PLACES)[p :: len(places)]) for p in places]
    parts = [f"VALUES ?place {{ {some} }} ?item wdt:P19 ?place ." for some in values]
    population = parts if options.queries > 1 else ["?item wdt:P31 wd:Q5 ."]
    return {
        "endpoint": endpoint,
        "topics": options.topics,
        "domain": {"population": population},
    }


PARTS = {
    "bios": Part("bios", people, "people.ttl", True, _topics),
    "bios_file": Part("bios", people, "people.ttl", False, _topics),
    "kb_pairs": Part("kb_pairs", people, "people.ttl", True, lambda url, _: {"endpoint": url}),
    "knowledge": Part("knowledge", pages, "pages.jsonl", False, lambda file, _: {"input": [file]}),
    "pairs": Part(
        *("pairs", pairs, "pairs.jsonl", False),
        lambda file, _: {"sources": [{"file": file}]},
    ),
    "pairs_split": Part(
        *("pairs", pairs, "pairs.jsonl", False),
        lambda file, _: {"sources": [{"file": file}], "shares": [8, 1, 1]},
    ),
}


class Usage(NamedTuple):
    """What a process took: seconds, the processor's, and its peak memory in MiB."""

    seconds: float
    cpu_seconds: float
    peak_mib: float


class Watched:
    """A process whose peak memory is its own: what it starts in turn does not count.

    Args:
        command: what to run.
        log: where it writes to.
    """

    def __init__(self, command: list[str], log: Path):
        self._start = time.perf_counter()
        with open(log, "wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file)
        self._peak = 0.0
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def _look(self) -> None:
        """``VmHWM`` until the end; ``getrusage`` would count the largest of its children."""
        status = Path(f"/proc/{self.process.pid}/status")
        while not self._ended.wait(0.02):
            lines = status.read_text().splitlines()
            own = [line.split()[1] for line in lines if line.startswith("VmHWM")]
            self._peak = int(own[0]) / 1024 if own else self._peak

    def wait(self) -> Usage:
        """Its usage, once it has ended; the time includes what it started and waited for."""
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        seconds = time.perf_counter() - self._start
        self._ended.set()
        self._watch.join()
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return Usage(seconds, used.ru_utime + used.ru_stime, self._peak)


def oxigraph() -> str:
    """The server's program, beside this interpreter or on the path.

    Raises:
        UserError: it is not installed.
    """
    found = shutil.which("oxigraph", path=str(Path(sys.prefix) / "bin"))
    found = found or shutil.which("oxigraph")
    if not found:
        raise UserError("oxigraph: no such program; install it with `pip install oxigraph`")
    return found


@contextmanager
def served(graph: Path, used: list[Usage]) -> Iterator[str]:
    """A read-only server over a Turtle file, which is loaded first; its usage goes to ``used``."""
    base = graph.with_suffix(".oxigraph")
    load = [oxigraph(), "load", "--location", str(base), "--file", str(graph)]
    subprocess.run(load, check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [oxigraph(), "serve-read-only", "--location", str(base), "--bind", address]
    server = Watched(command, graph.with_suffix(".log"))
    try:
        _connect(address, server.process)
        yield f"http://{address}/query"
    finally:
        server.process.terminate()
        used.append(server.wait())
        shutil.rmtree(base)


def _connect(address: str, server: subprocess.Popen) -> None:
    host, _, port = address.partition(":")
    for _ in range(3000):
        try:
            return socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"oxigraph does not answer (exit code {server.poll()})")


def build(part: Part, source: str, folder: Path, options: argparse.Namespace) -> tuple[Usage, int]:
    """A builder's usage, and how many records it wrote.

    Raises:
        RuntimeError: the builder failed; its last line says why.
    """
    config, output, log = folder / "config.json", folder / "made", folder / "build.log"
    given = part.options(source, options)
    config.write_text(json.dumps(given | {"output": str(output), "seed": options.seed}))
    command = [sys.executable, "-m", "data_builders", part.builder, "--config", str(config)]
    builder = Watched(command, log)
    used = builder.wait()
    if builder.process.returncode:
        said = log.read_text(encoding="utf-8").strip().splitlines()
        raise RuntimeError(f"{part.builder}: {said[-1] if said else 'no message'}")
    kept = json.loads((output / "manifest.json").read_text(encoding="utf-8"))["kept"]
    shutil.rmtree(output)
    return used, kept


def measure(name: str, size: int, folder: Path, options: argparse.Namespace) -> dict:
    """One line of the table."""
    part, servers = PARTS[name], []
    source = folder / part.file
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(part.rows(size, options.seed))
    if part.served:
        with served(source, servers) as url:
            used, records = build(part, url, folder, options)
    else:
        used, records = build(part, str(source), folder, options)
    source.unlink()
    return {
        "part": name,
        "entities": size,
        "records": records,
        "seconds": used.seconds,
        "cpu_seconds": used.cpu_seconds + sum(server.cpu_seconds for server in servers),
        "records_per_second": records / used.seconds,
        "entities_per_second": size / used.seconds,
        "peak_mib": used.peak_mib,
        "server_mib": servers[0].peak_mib if servers else None,
    }


def growth(rows: Iterable[dict]) -> list[dict]:
    """Of each part, the peak memory of the largest size against that of the smallest."""
    peaks: dict[str, dict[int, float]] = {}
    for row in rows:
        peaks.setdefault(row["part"], {})[row["entities"]] = row["peak_mib"]
    found = []
    for name, own in peaks.items():
        least, most = min(own), max(own)
        more = (own[most] - own[least]) * 2**20 / max(1, most - least)
        ratio = own[most] / own[least]
        found.append({"part": name, "memory_growth": ratio, "bytes_per_entity": more})
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print a line a part and size, and how much more memory the largest takes than the least."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--topics", type=int, default=1024, help="that bios draws")
    parser.add_argument("--queries", type=int, default=PLACES, help="for bios's population")
    parser.add_argument("--folder", default=None, help="for the files; a temporary one by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None, help="also write the figures there")
    options = parser.parse_args(arguments)
    if min(*options.sizes, options.queries, options.topics) < 1:
        raise UserError("--sizes, --queries, --topics: give numbers of at least 1")
    rows = []
    for name in options.only or [name for name in PARTS if name != "kb_pairs"]:
        for size in options.sizes:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                row = measure(name, size, Path(folder), options)
            rows.append(row)
            server = f", server {row['server_mib']:.0f} MiB" if row["server_mib"] else ""
            print(
                f"{name:11} {size:>9,} entities, {row['records']:>9,} records: "
                f"{row['seconds']:7.1f} s (processor {row['cpu_seconds']:.1f} s), "
                f"{row['records_per_second']:8,.0f} records/s, "
                f"{row['entities_per_second']:8,.0f} entities/s, "
                f"peak {row['peak_mib']:.0f} MiB{server}",
                flush=True,
            )
    found = growth(rows)
    for row in found:
        print(
            f"{row['part']:11} memory of the largest over that of the smallest: "
            f"{row['memory_growth']:.2f}, {row['bytes_per_entity']:,.0f} bytes an entity"
        )
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "growth": found}, indent=1))


if __name__ == "__main__":
    run_command(main)
