"""The builders' benchmark at toy size, with the real command and SPARQL server."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from data_builders.kb.facts import load_people
from data_builders.kb.server import open_client

PATH = Path(__file__).parents[2] / "benchmarks/builders.py"


@pytest.fixture(scope="module")
def builders() -> ModuleType:
    """The benchmark, which is a file and no package."""
    spec = importlib.util.spec_from_file_location("builders", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_each_builder_writes_takes_and_how_it_grows(
    builders: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / "builders.json"
    options = ["--only", "bios", "pairs", "--topics", "32", "--queries", "4"]
    builders.main([*options, "--sizes", "100", "200", "--json", str(file)])

    found = json.loads(file.read_text(encoding="utf-8"))
    told = [(row["part"], row["entities"], row["records"]) for row in found["rows"]]
    assert told == [
        *[("bios", 100, 32), ("bios", 200, 32)],
        *[("pairs", 100, 100), ("pairs", 200, 200)],
    ]
    for row in found["rows"]:
        assert row["cpu_seconds"] > 0
        assert row["records_per_second"] == row["records"] / row["seconds"]
        assert row["peak_mib"] > 30  # more than a bare interpreter's
        assert (row["server_mib"] is None) == (row["part"] == "pairs")
    peaks = {(row["part"], row["entities"]): row["peak_mib"] for row in found["rows"]}
    for row in found["growth"]:
        most, least = peaks[row["part"], 200], peaks[row["part"], 100]
        assert row["memory_growth"] == most / least
        assert row["bytes_per_entity"] == pytest.approx((most - least) * 2**20 / 100)
    lines = capsys.readouterr().out.splitlines()
    told = ["bios", "bios", "pairs", "pairs", "bios", "pairs"]
    assert [line.split()[0] for line in lines] == told


def test_the_people_are_such_as_the_builders_read(builders: ModuleType, tmp_path: Path) -> None:
    graph = tmp_path / "people.ttl"
    graph.write_text("".join(builders.people(40, seed=0)), encoding="utf-8")
    with open_client(snapshot=graph) as client:
        known = load_people(client)
    assert len({person.title for person in known}) == 40
    for person in known:
        assert person.title.startswith(f"{person.name} (")
        assert all((person.sex, person.aliases, person.frequency))
        assert person.continent in builders.COUNTRIES
        assert len(person.facts) == 9
