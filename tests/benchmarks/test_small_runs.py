"""Benchmarks at toy size, with a tiny random relation model: what they read and write still fits.

A benchmark reaches into the parts that it measures, and no other test would notice when these move.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from records import write_jsonl
from tests.eval.conftest import make_checkpoint, relation  # noqa: F401 (fixtures)

FOLDER = Path(__file__).parents[2] / "benchmarks"
Runner = Callable[..., str]

SENTENCES = [
    "Ada Lovelace was a poet.",
    "Ada Lovelace was born in London.",
    "Ada Lovelace wrote the first program.",
    "Ada Lovelace was born in Paris.",
]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Iterator[Runner]:
    """Runs a benchmark with options, as the command line would, and gives what it printed."""

    def run(name: str, *options: object) -> str:
        spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setattr("sys.argv", [f"{name}.py", *map(str, options)])
        module.main()
        return capsys.readouterr().out

    threads = torch.get_num_threads()
    yield run
    torch.set_num_threads(threads)  # a benchmark's --threads; with another number weights differ


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A file of two texts with labelled claims and passages."""
    claims = [
        {"id": f"c{n}", "text": text, "label": "NS" if "Paris" in text else "S"}
        for n, text in enumerate(SENTENCES)
    ]
    passages = [
        {"id": f"p{n}", "title": "Ada Lovelace", "text": text} for n, text in enumerate(SENTENCES)
    ]
    rows = [
        {
            "id": f"d{n}",
            "topic": f"Ada {n}",
            "text": " ".join(SENTENCES),
            "claims": claims,
            "passages": passages,
        }
        for n in range(2)
    ]
    write_jsonl(tmp_path / "texts.jsonl", rows)
    return tmp_path / "texts.jsonl"


def test_core_selection(run: Runner, tmp_path: Path) -> None:
    options = ("--sizes", "12", "--shapes", "paraphrases random")
    said = run("core_selection", *options, "--json", tmp_path / "found.json")
    assert said.count("same weight") == 2  # as the dense program of the paper
    rows = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert [(row["claims"], row["shape"]) for row in rows] == [(12, "paraphrases"), (12, "random")]


def test_core_gate(
    run: Runner,
    texts: Path,
    tmp_path: Path,
    relation: Path,  # noqa: F811 (the fixture)
) -> None:
    options = ("--checkpoint", relation, "--claims", 4, "--documents", 2, "--cosines", "--shares")
    run("core_gate", texts, *options, 0.0, 0.9, "--json", tmp_path / "found.json")
    open_gate, shut = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert (open_gate["excluding_lost"], open_gate["precision_moved"]) == (0, 0)
    assert open_gate["pairs_saved"] == 1
    assert shut["pairs_saved"] > 1


def test_entailment(
    run: Runner,
    tmp_path: Path,
    texts: Path,
    relation: Path,  # noqa: F811 (the fixture)
) -> None:
    for name in ("profiles", "padded", "generations_test", "generations_dev"):
        (tmp_path / f"{name}.jsonl").write_bytes(texts.read_bytes())
    pages = [{"id": "p", "title": "Ada Lovelace", "text": " ".join(SENTENCES)}]
    write_jsonl(tmp_path / "passages.jsonl", pages)
    options = ("--checkpoint", relation, "--data", tmp_path, "--curves", texts, "--threads", 2)
    run("entailment", *options, "--short", 40, "--long", 4, "--json", tmp_path / "found.json")
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert (found["short"]["pairs"], found["short"]["distinct"]) == (40, 12)
    assert found["long"]["pairs"] == 4
    for workload in found.values():
        assert workload["float32_equal_labels"] == 1
        assert workload["float32_moved_most"] < 1e-4


def test_pair_skipping(
    run: Runner,
    texts: Path,
    relation: Path,  # noqa: F811 (the fixture)
) -> None:
    said = run("pair_skipping", texts, "--checkpoint", relation, "--thresholds", 0.0, 0.9)
    lines = said.splitlines()
    assert [line.split(":")[0].strip() for line in lines] == [
        *("fr2", "skip_below 0.00", "skip_below 0.90"),
        *("fr3", "skip_below 0.00", "skip_below 0.90"),
    ]
    assert "8 claims" in lines[0]
    assert "saved 0.0%, relations lost 0.0%, mean |ΔP| 0.0000, labels equal 100.0%" in lines[1]


def test_inference(run: Runner, tmp_path: Path) -> None:
    options = ("--sizes", "4x5x0.5", "--seeds", 1, "--sweeps", 50)
    run("inference", *options, "--json", tmp_path / "found.json")
    rows = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert [row["method"] for row in rows] == ["solve", "wmb"]
    assert rows[0]["error"] == 0  # exact, so is the reference
    assert all(math.isfinite(row["ms"]) for row in rows)


def test_grid(run: Runner, relation: Path) -> None:  # noqa: F811 (the fixture)
    said = run("grid", "--documents", 2, "--claims", 3, "--passages", 2)
    assert "all, three defences" in said


@pytest.mark.slow
def test_training(
    run: Runner,
    tmp_path: Path,
    relation: Path,  # noqa: F811 (the fixture)
) -> None:
    """Every method is timed on the same examples, without the validation of fit."""
    labels = ("entailment", "neutral", "contradiction")
    pairs = [
        {
            "premise": f"{SENTENCES[n % 4]} {n}",
            "hypothesis": SENTENCES[n % 3],
            "label": labels[n % 3],
        }
        for n in range(60)
    ]
    write_jsonl(tmp_path / "train.jsonl", pairs[:24])
    write_jsonl(tmp_path / "dev.jsonl", pairs[24:])
    files = ("--data", tmp_path / "train.jsonl", "--dev", tmp_path / "dev.jsonl")
    sizes = ("--steps", 4, "--warm_up", 1, "--batch_size", 4, "--max_length", 64)
    options = (*files, *sizes, "--base", relation, "--precision", "32-true")
    run("training", *options, "--json", tmp_path / "found.json")
    rows = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert [row["method"] for row in rows] == ["fit", "plain", "grouped"]
    assert {row["examples"] for row in rows} == {16}


def test_every_benchmark_tells_a_users_mistake_in_one_line() -> None:
    for path in FOLDER.glob("*.py"):
        _, _, door = path.read_text(encoding="utf-8").partition('if __name__ == "__main__":\n')
        assert door in ("", "    run_command(main)\n"), path.name


def test_gold_agreement_compares_each_kind(run, tmp_path, relation):  # noqa: F811
    gold = {"precision": 1, "recall": 1, "f1": 1, "k": 10, "source": "construction"}
    rows = [{"id": kind, "topic": "Ada", "text": SENTENCES[0], "kind": kind} for kind in "ab"]
    write_jsonl(tmp_path / "texts.jsonl", [*({**row, "gold": gold} for row in rows), rows[0]])
    write_jsonl(tmp_path / "pages.jsonl", [{"id": "p", "title": "Ada", "text": SENTENCES[0]}])
    options = ["--checkpoint", relation, "--pages", tmp_path / "pages.jsonl"]
    printed = run("gold_agreement", tmp_path / "texts.jsonl", *options)
    assert "n 2, not estimated 0" in printed
    assert [line.split()[0] for line in printed.splitlines()[2:]] == ["a:", "b:"]
