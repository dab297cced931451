"""The builders' benchmark at toy size, with the real command and SPARQL server."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from data_builders.kb.server import open_client
from tests.kb_people import load_people

PATH = Path(__file__).parents[2] / "benchmarks/builders.py"


@pytest.fixture(scope="module")
def builders() -> ModuleType:
    """The benchmark, which is a file and no package."""
    spec = importlib.util.spec_from_file_location("builders", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_part_and_size_prints_records_time_and_memory(
    builders: ModuleType, capsys: pytest.CaptureFixture
) -> None:
    options = ["--only", "bios", "pairs", "--topics", "32", "--queries", "4"]
    builders.main([*options, "--sizes", "100", "200"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["part"], row["entities"], row["records"]) for row in rows] == [
        ("bios", 100, 32),
        ("bios", 200, 32),
        ("pairs", 100, 100),
        ("pairs", 200, 200),
    ]
    assert all(row["cpu_seconds"] > 0 for row in rows)
    assert all(row["peak_mib"] > 30 for row in rows), "more than a bare interpreter's"


def test_generated_people_are_read_by_the_builders(builders: ModuleType, tmp_path: Path) -> None:
    graph = tmp_path / "people.ttl"
    graph.write_text("".join(builders.people(40, seed=0)), encoding="utf-8")
    with open_client(snapshot=graph) as client:
        loaded = load_people(client)
    assert len({person.title for person in loaded}) == 40
    for person in loaded:
        assert person.title.startswith(f"{person.name} (")
        assert all((person.sex, person.aliases, person.frequency))
        assert person.continent in builders.COUNTRIES
        assert len(person.facts) == 9
