"""The page of `make bench` explains every figure of its file."""

from __future__ import annotations

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[2] / "benchmarks/bench.py"


def test_every_figure_has_its_meaning_on_the_page():
    spec = importlib.util.spec_from_file_location("bench", PATH)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    short = {f"bfloat16_{name}": 0.5 for name in ("equal_labels", "moved_mean", "moved_most")}
    short |= {"bfloat16_speedup": 2.0, "bfloat16_of_limit": 0.5, "float32_speedup": 1.5}
    solved = {"size": "5x6x0.3", "method": "solve", "networks": 1}
    parts = {
        "entailment": {"short": short, "long": {"bfloat16_speedup": 2.0}},
        "core_selection": [{"claims": 5000, "seconds": 0.5}],
        "inference": [{**solved, "ms": 1.0, "error": 0.0, "equal_labels": 1.0}],
        "sampling": [
            {"way": way, "per_second": 2.0} for way in ("engine", "equal lengths", "generate")
        ],
        "training": [
            {"precision": "32-true", "method": method, "seconds": 2.0}
            for method in ("fit", "plain", "grouped")
        ],
        "builders": [
            {"part": part, "records": 9, "entities": 9, "seconds": 1.0, "peak_mib": peak_mib}
            for part in ("pairs", "bios")
            for peak_mib in (40.0, 50.0)
        ],
    }
    found = bench.figures(parts)
    assert set(found) == {*bench.DESCRIPTIONS, "inference"}
    figures, inference, _ = bench.tables(found, {"entailment": 1.0})
    assert [row[0] for row in figures.rows] == list(bench.DESCRIPTIONS)
    assert inference.rows == [("5x6x0.3, solve", "1 ms", "0.0000", "1.000")]
