"""The builders' benchmark at toy size, through the real door and a real SPARQL server."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from data_builders.kb.facts import load_people
from data_builders.kb.server import open_client
from records import UserError

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


def test_more_people_begin_with_the_same_ones(builders: ModuleType) -> None:
    few, more = ("".join(builders.people(number, seed=1)) for number in (5, 50))
    assert more.startswith(few)
    assert "".join(builders.people(5, seed=2)) != few


def test_peak_memory_is_the_process_own(builders: ModuleType, tmp_path: Path) -> None:
    large = "bytearray(200 << 20)"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {large!r}])"
    used = [
        builders.Watched([sys.executable, "-c", code], tmp_path / "log").wait()
        for code in (f"import time; x = {large}; time.sleep(0.2)", nested)
    ]
    assert used[0].peak_mib > 200
    assert used[1].peak_mib < 100


def test_what_cannot_be_measured_is_said(builders: ModuleType) -> None:
    with pytest.raises(UserError, match="at least 1"):
        builders.main(["--only", "pairs", "--sizes", "0"])
    # So few topics that a split would be empty.
    with pytest.raises(RuntimeError, match=r"bios: .*no topic for"):
        builders.main(["--only", "bios_file", "--sizes", "3", "--topics", "1"])
