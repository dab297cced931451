"""Speed and memory growth of dataset builders with the number of entities.

    python benchmarks/builders.py --sizes 10000 100000 1000000
    python benchmarks/builders.py --only kb_pairs --sizes 1000 10000

Writes synthetic people as a Turtle file (about ten facts each, structured as in Wikidata) and runs
builders with ``python -m data_builders``:

- ``bios``: topics from a local SPARQL server; the population is queried in ``--queries`` parts by
  place of birth, as required for a domain that is too large for one query;
- ``bios_file``: the same, with the builder serving the file;
- ``kb_pairs``: all facts of all people from the server; not run by default, because it keeps all
  facts in memory;
- ``knowledge``: one page per entity, from a JSONL file to SQLite with an index;
- ``pairs``: one premise and hypothesis per entity, from a JSONL file, all for training;
- ``pairs_split``: the same with a tenth each for dev and test: rows that share a text stay
  together, and the similarity of the splits is measured.

Peak memory is that of the builder's process; the server's is printed separately. Time is that of
the command, processor time includes the server; loading the server is not included.
"""

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
    """A builder and its input.

    Attributes:
        builder: command of the builder.
        rows: function that generates the lines of the input file.
        file: name of the input file.
        served: whether a server is started with the file.
        options: function of the file (or the server's URL) and the command line.
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
    """Wall-clock seconds, processor seconds and peak memory (MiB) of a process."""

    seconds: float
    cpu_seconds: float
    peak_mib: float


class MeteredProcess:
    """A process with measured peak memory, without its child processes; output goes to ``log``."""

    def __init__(self, command: list[str], log: Path):
        self._start = time.perf_counter()
        with open(log, "wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file)
        self._peak = 0.0
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._poll_memory, daemon=True)
        self._watch.start()

    def _poll_memory(self) -> None:
        """Poll ``VmHWM``; ``getrusage`` would include child processes."""
        status = Path(f"/proc/{self.process.pid}/status")
        while not self._ended.wait(0.02):
            lines = status.read_text().splitlines()
            peaks = [line.split()[1] for line in lines if line.startswith("VmHWM")]
            self._peak = int(peaks[0]) / 1024 if peaks else self._peak

    def wait(self) -> Usage:
        """Wait for the end and return the usage; times include child processes."""
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        seconds = time.perf_counter() - self._start
        self._ended.set()
        self._watch.join()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return Usage(seconds, usage.ru_utime + usage.ru_stime, self._peak)


def find_oxigraph() -> str:
    """Path of the server's program, next to this interpreter or on ``PATH``."""
    program = shutil.which("oxigraph", path=str(Path(sys.prefix) / "bin"))
    program = program or shutil.which("oxigraph")
    if not program:
        raise UserError("oxigraph: program not found; run `pip install oxigraph`")
    return program


@contextmanager
def served(graph: Path, used: list[Usage]) -> Iterator[str]:
    """Load a Turtle file and run a read-only server; append its usage to ``used``."""
    base = graph.with_suffix(".oxigraph")
    load = [find_oxigraph(), "load", "--location", str(base), "--file", str(graph)]
    subprocess.run(load, check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [find_oxigraph(), "serve-read-only", "--location", str(base), "--bind", address]
    server = MeteredProcess(command, graph.with_suffix(".log"))
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
    """Run a builder; return its usage and the number of records written."""
    config, output, log = folder / "config.json", folder / "made", folder / "build.log"
    config_fields = part.options(source, options)
    config.write_text(json.dumps(config_fields | {"output": str(output), "seed": options.seed}))
    command = [sys.executable, "-m", "data_builders", part.builder, "--config", str(config)]
    builder = MeteredProcess(command, log)
    usage = builder.wait()
    if builder.process.returncode:
        log_lines = log.read_text(encoding="utf-8").strip().splitlines()
        raise RuntimeError(f"{part.builder}: {log_lines[-1] if log_lines else 'no message'}")
    records = json.loads((output / "manifest.json").read_text(encoding="utf-8"))["kept"]
    shutil.rmtree(output)
    return usage, records


def measure(name: str, size: int, folder: Path, options: argparse.Namespace) -> dict:
    """Measure one part at one size."""
    part, servers = PARTS[name], []
    source = folder / part.file
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(part.rows(size, options.seed))
    if part.served:
        with served(source, servers) as url:
            usage, records = build(part, url, folder, options)
    else:
        usage, records = build(part, str(source), folder, options)
    source.unlink()
    return {
        "part": name,
        "entities": size,
        "records": records,
        "seconds": usage.seconds,
        "cpu_seconds": usage.cpu_seconds + sum(server.cpu_seconds for server in servers),
        "records_per_second": records / usage.seconds,
        "entities_per_second": size / usage.seconds,
        "peak_mib": usage.peak_mib,
        "server_mib": servers[0].peak_mib if servers else None,
    }


def growth(rows: Iterable[dict]) -> list[dict]:
    """Peak memory of the largest size over that of the smallest, per part."""
    peaks: dict[str, dict[int, float]] = {}
    for row in rows:
        peaks.setdefault(row["part"], {})[row["entities"]] = row["peak_mib"]
    result = []
    for name, peak_of_size in peaks.items():
        smallest, largest = min(peak_of_size), max(peak_of_size)
        increase = (peak_of_size[largest] - peak_of_size[smallest]) * 2**20
        bytes_per_entity = increase / max(1, largest - smallest)
        ratio = peak_of_size[largest] / peak_of_size[smallest]
        result.append({"part": name, "memory_growth": ratio, "bytes_per_entity": bytes_per_entity})
    return result


def main(arguments: list[str] | None = None) -> None:
    """Print one line per part and size, and the memory growth per part."""
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
    growth_rows = growth(rows)
    for row in growth_rows:
        print(
            f"{row['part']:11} memory at the largest size / smallest size: "
            f"{row['memory_growth']:.2f}, {row['bytes_per_entity']:,.0f} bytes per entity"
        )
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "growth": growth_rows}, indent=1))


if __name__ == "__main__":
    run_command(main)
