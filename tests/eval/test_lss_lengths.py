"""Length of LSS by length of claim, and the two ways to balance it."""

from __future__ import annotations

import pytest

from components.lengths import length_class, length_ratio
from eval.commands.report import build_report
from eval.experiments.lss.lss_lengths import CLASSES, LssLengths, ratio_class
from records import write_jsonl

CLAIM = "It rained all day in Rome and in Oslo."  # nine words


def example(number, *texts):
    annotations = [{"lss": text} for text in texts]
    return {"reference": f"Reference {number}.", "claim": CLAIM, "annotations": annotations}


ROWS = [example(n, CLAIM) for n in range(5)]
ROWS += [example(5, ""), example(6, "It rained", "It rained all"), example(7, CLAIM, "It rained")]


def run(tmp_path, **options):
    path = tmp_path / "lss.jsonl"
    write_jsonl(path, ROWS)
    file = LssLengths({"train": str(path)}, **options).run(tmp_path / "run")
    return {(row.kind, row.metric, row.group): row for row in file.results}


def test_words_are_counted_between_blanks() -> None:
    assert length_ratio(CLAIM, "It rained all") == pytest.approx(3 / 9)
    assert length_ratio("A b.", "A b . more of it") == 1
    assert length_ratio(" ", "") == 0
    ratios = [0, 0.05, 0.1, 0.101, 0.9, 0.95, 1]
    names = ["0", "to 0.1", "to 0.1", "to 0.2", "to 0.9", "below 1", "1"]
    assert [ratio_class(r) for r in ratios] == names
    assert [length_class(r) for r in ratios] == [0, 0, 1, 1, 9, 9, 9]
    assert len(CLASSES) == 12


def test_shares_of_claims(tmp_path) -> None:
    actual = run(tmp_path)
    row = actual["train", "length_share", "1"]
    assert (row.value, row.n, row.failed) == (5.5 / 8, 8, 0)  # one claim is shared by two answers
    assert row.ci95[0] < row.value < row.ci95[1]
    assert actual["train", "length_share", "0"].value == 1 / 8
    assert actual["train", "length_share", "to 0.3"].value == 1 / 8  # 2 of 9 words, two halves
    assert actual["train", "length_share", "to 0.4"].value == 0.5 / 8  # 3 of 9
    mean = actual["train", "length_mean", "all"].value
    assert mean == pytest.approx((5 + 0 + 2.5 / 9 + (1 + 2 / 9) / 2) / 8)
    page = build_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "Length of LSS" in page
    assert list((tmp_path / "run/figures").glob("*.svg"))


def test_drop_and_repeat_match_the_training(tmp_path) -> None:
    actual = run(tmp_path, drop={"train": 3}, repeat=["train"])
    assert actual["train, drop", "length_share", "1"].value == pytest.approx(2.5 / 5, abs=0.1)
    assert actual["train, drop", "length_share", "1"].n < 8
    # Whole claims, nothing, and 2 or 3 of 9 words: four tenths, each as full.
    shares = [actual["train, repeat", "length_share", name].value for name in CLASSES]
    assert sum(shares) == pytest.approx(1)
    assert sum(share > 0 for share in shares) == 4
