"""The builders' benchmark at toy size, with the real command and SPARQL server."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

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
