"""Each benchmark at toy size, with a tiny random relation model: what it reads and prints.

A benchmark reaches into the parts that it measures, and no other test would notice when these move.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from records import write_jsonl
from tests.eval.conftest import make_checkpoint, relation  # noqa: F401 (fixtures)

FOLDER = Path(__file__).parents[2] / "benchmarks"
SENTENCES = [
    "Ada Lovelace was a poet.",
    "Ada Lovelace was born in London.",
    "Ada Lovelace wrote the first program.",
    "Ada Lovelace was born in Paris.",
]
# Two texts with labelled claims, passages and gold scores
GOLD = {"precision": 1, "recall": 1, "f1": 1, "k": 10, "source": "construction"}
CLAIMS = [
    {"id": f"c{n}", "text": text, "label": "NS" if "Paris" in text else "S"}
    for n, text in enumerate(SENTENCES)
]
PAGES = [{"id": f"p{n}", "title": "Ada Lovelace", "text": text} for n, text in enumerate(SENTENCES)]
TEXTS = [
    {
        "id": f"d{n}",
        "topic": "Ada Lovelace",
        "text": " ".join(SENTENCES),
        "claims": CLAIMS,
        "passages": PAGES,
        "gold": GOLD,
    }
    for n in range(2)
]
# The first sentence is supported, the second is unwanted, and the third is excluded.
SUMMARIES = [
    {
        "source": f"{SENTENCES[0]} {number}",
        "summary": f"{SENTENCES[0]} {SENTENCES[3]} {SENTENCES[2]}",
        "annotations": [
            {"label": ["Unwanted", "Unwanted.Extrinsic"], "summary_start": 51, "summary_end": 56},
            {"label": ["Questionable"], "summary_start": 70, "summary_end": 75},
        ],
        "metadata": {"summarizer": "m"},
    }
    for number in range(3)
]
# Three accurate sentences, the last of them twice, and three slightly inaccurate ones.
BIOGRAPHY = [
    {
        "id": f"b{number}",
        "topic": "Ada Lovelace",
        "sentence": f"Ada Lovelace wrote note {min(number, 5)}.",
        "reference": SENTENCES[0],
        "annotation": "minor_inaccurate" if number < 3 else "accurate",
    }
    for number in range(7)
]
LABELS = ("entailment", "neutral", "contradiction")
PAIRS = [
    {"premise": f"{SENTENCES[n % 4]} {n}", "hypothesis": SENTENCES[n % 3], "label": LABELS[n % 3]}
    for n in range(60)
]


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        # the same optimum as the dense program of the paper
        ("core_selection", "--sizes 12 --shapes random", "same weight"),
        ("inference", "--sizes 4x5x0.5 --seeds 1 --sweeps 50", "|dP| 0.0000 [0.0000, 0.0000]"),
        ("gold_agreement", "texts --checkpoint relation --pages pages", "n 2, not estimated 0"),
        (
            "labelled_texts",
            "summaries --spans --judges tiny=relation",
            "3 texts, 6 sentences, 3 units",
        ),
        ("labelled_ladders", "biography --output folder", "ladder: 4 texts"),
        (
            "entailment",
            "--checkpoint relation --data folder --curves texts --pages pages --threads 1 "
            "--short 40 --long 4",
            "labels equal 100.00%",
        ),
        ("grid", "--documents 2 --claims 3 --passages 2", "all, three defences"),
        pytest.param(
            "training",
            "--data train --dev dev --steps 4 --warm_up 1 --batch_size 4 --max_length 64 "
            "--base relation --precision 32-true",
            "grouped",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_toy_input_gives_the_expected_line(
    name: str,
    options: str,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    relation: Path,  # noqa: F811 (the fixture)
) -> None:
    files = {"texts": TEXTS, "pages": PAGES, "train": PAIRS[:24], "dev": PAIRS[24:]}
    files |= {"summaries": SUMMARIES, "biography": BIOGRAPHY}
    for file, rows in files.items():
        write_jsonl(tmp_path / f"{file}.jsonl", rows)
    for file in ("texts_test", "texts_dev"):
        write_jsonl(tmp_path / f"{file}.jsonl", TEXTS)
    write_jsonl(tmp_path / "passages.jsonl", PAGES)
    paths = {file: tmp_path / f"{file}.jsonl" for file in files}
    paths |= {"relation": relation, "folder": tmp_path}
    options = options.replace("=relation", f"={relation}")
    arguments = [str(paths.get(option, option)) for option in options.split()]
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr("sys.argv", [f"{name}.py", *arguments])
    threads = torch.get_num_threads()
    try:
        module.main()
    finally:
        torch.set_num_threads(threads)  # weights differ with another number
    assert expected in capsys.readouterr().out


def test_main_of_every_benchmark_reports_user_errors_in_one_line() -> None:
    for path in FOLDER.glob("*.py"):
        main_block = path.read_text(encoding="utf-8").partition('__name__ == "__main__":\n')[2]
        assert main_block in ("", "    run_command(main)\n"), path.name
