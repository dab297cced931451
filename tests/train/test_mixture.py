"""Mixtures of files: weights, held-back groups, measures of each source, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from components.checkpoint import read_component
from records import RelationPair, group_of, read_records
from tests.train.conftest import relation_rows
from train.__main__ import main
from train.data import (
    FixedBatches,
    Part,
    RecordData,
    TrainBatches,
    epoch_order,
    hold_back,
    row_sources,
    shared_rows,
)
from train.module import Item
from train.resume import read_state


def pairs(count: int, name: str) -> list[dict]:
    """Three-class rows with a premise each."""
    labels = ["entailment", "neutral", "contradiction"]
    return [
        {"premise": f"ada {name} {i} .", "hypothesis": "she was .", "label": labels[i % 3]}
        for i in range(count)
    ]


def orders(parts: list, epochs: int) -> list[list[int]]:
    def order(epoch: int) -> list[int]:
        return epoch_order(parts, 1, epoch, np.random.default_rng([1, epoch])).tolist()

    return [order(epoch) for epoch in range(epochs)]


def test_a_weight_is_how_often_a_row_is_seen() -> None:
    parts = [(range(10), 3.0), (range(10, 30), 0.5), (range(30, 34), 1.25)]
    first, second = orders(parts, 2)

    for order in (first, second):
        seen = Counter(order)
        assert all(seen[i] == 3 for i in range(10))
        assert sum(seen[i] for i in range(10, 30)) == 10
        assert max(seen[i] for i in range(10, 30)) == 1
        assert sorted(seen[i] for i in range(30, 34)) == [1, 1, 1, 2]
    # The half moves on: two epochs see the whole file, and the order is the epoch's own.
    assert Counter(i for i in first + second if 10 <= i < 30) == Counter(range(10, 30))
    assert first != second
    assert orders(parts, 2) == [first, second]


def test_copies_of_a_row_stand_apart() -> None:
    (order,) = orders([(range(100), 3.0), (range(100, 200), 3.0)], 1)

    places = {index: [p for p, other in enumerate(order) if other == index] for index in set(order)}
    thirds = [sorted(place // 200 for place in result) for result in places.values()]
    assert all(result == [0, 1, 2] for result in thirds)


def test_a_fraction_survives_a_resume() -> None:
    class Echo:
        def collate(self, items: list, indices: list[int]) -> dict:
            return {"indices": indices}

    def loader() -> TrainBatches:
        items = [Item(i, {"input_ids": [1] * (1 + i % 5)}, 0) for i in range(40)]
        mixture = [(np.arange(10), 2.5), (np.arange(10, 40), 0.5)]
        return TrainBatches(Echo(), items, 4, mixture)

    whole = loader()
    assert len(whole) == len(list(whole)) == 10
    whole.set_epoch(1)
    result = iter(whole)
    next(result)
    resumed = loader()
    resumed.load_state_dict(whole.state_dict())
    resumed.set_epoch(1)
    assert list(resumed) == list(result)


def test_fixed_batches_are_shared_out_in_step() -> None:
    items = [Item(i, {"input_ids": [1] * (1 + i)}, 0) for i in range(10)]
    whole = FixedBatches(None, items, 3).batches
    shared = [FixedBatches(None, items, 3, rank, 3).batches for rank in range(3)]

    assert [len(batches) for batches in shared] == [2, 2, 2]  # of 4 batches, two come twice
    assert all(batch in whole for batches in shared for batch in batches)
    assert {i for batches in shared for batch in batches for i in batch} == set(range(10))
    assert [len(FixedBatches(None, items[:2], 3, rank, 3)) for rank in range(3)] == [1, 1, 1]


def heldout(files: list[list[RelationPair]], seed: int, share: float) -> list[list[bool]]:
    return [[side == "dev" for side in sides] for sides in hold_back(files, seed, share)[0]]


def test_the_group_of_a_row_decides_where_it_is_held_back() -> None:
    rows = [RelationPair(**row) for row in pairs(400, "x")]
    (dev,) = heldout([rows], 1, 0.25)

    assert 70 < sum(dev) < 130
    row = next(row for row, side in zip(rows, dev, strict=True) if side)
    twin = RelationPair(premise=row.premise, hypothesis="other", label="neutral", source="b")
    assert heldout([rows, [twin]], 1, 0.25) == [dev, [True]]
    assert heldout([rows], 2, 0.25) != [dev]
    # The order of rows and files is nothing to it.
    assert heldout([[twin], rows[::-1]], 1, 0.25) == [[True], dev[::-1]]
    grouped = [RelationPair(**row, group="g") for row in pairs(9, "y")]
    assert {group_of(row) for row in grouped} == {"g"}
    (side,) = heldout([grouped], 1, 0.5)
    assert len(set(side)) == 1


def test_what_shares_a_document_stands_on_one_side() -> None:
    line = "the band released its third record in the spring of that long year ."
    rows = [
        RelationPair(
            premise=f"menu\n{line} {group // 2}\nonly {number} here",
            hypothesis="h",
            label="neutral",
            group=str(group),
            documents=[f"d{group // 6}"],
        )
        for group in range(120)
        for number in range(2)
    ]
    for seed in range(4):
        (sides,), _ = hold_back([rows], seed, 0.3)
        assert set(sides) == {"dev", "train"}
        dev = [side == "dev" for side in sides]
        for number, row in enumerate(rows):
            assert dev[number] == dev[number // 12 * 12], row
        kept = [row for row, side in zip(rows, dev, strict=True) if not side]
        out = [row for row, side in zip(rows, dev, strict=True) if side]
        assert shared_rows(out, kept) == 0
        assert shared_rows(out, [*kept, out[0]]) >= 12


def test_pairs_of_each_others_sentences_stand_on_one_side() -> None:
    """SICK's pairs: a row's hypothesis is the premise of the next, four rows to a caption."""
    rows = [
        RelationPair(
            premise=f"caption {place}",
            hypothesis=f"Caption  {place + 1}" if place % 4 < 3 else "a dog runs",
            label="neutral",
        )
        for place in range(400)
    ]
    (dev,) = heldout([rows], 0, 0.3)
    assert 60 < sum(dev) < 180
    assert all(len(set(dev[start : start + 4])) == 1 for start in range(0, 400, 4))
    assert len(set(dev[3::4])) == 2  # a hypothesis alone ties no rows


def test_rows_that_cannot_be_held_apart_are_left_out() -> None:
    """A chain of groups, each sharing a text with the next, is not one set."""
    rows = [
        RelationPair(premise=f"p{place + more}", hypothesis="h", label="neutral", group=str(place))
        for place in range(300)
        for more in range(2)
    ]
    (sides,), message = hold_back([rows], 0, 0.2)
    three = {side: [r for r, s in zip(rows, sides, strict=True) if s == side] for side in {*sides}}
    assert 30 < len(three["dev"]) < 250
    assert 0 < len(three[None]) < 60
    assert f"excluded {len(three[None])} rows" in message
    assert shared_rows(three["dev"], three["train"]) == 0
    assert shared_rows(three["dev"], three[None]) > 0


def test_rows_of_several_sources_in_a_file_are_judged_by_their_own() -> None:
    def part(*sources: str | None) -> Part:
        made = {"premise": "a", "hypothesis": "b", "label": "neutral"}
        rows = [RelationPair(**made, source=source) for source in sources]
        return Part("x/f.jsonl", 1.0, rows, list(range(1, len(rows) + 1)), "f")

    assert row_sources(part("a/b", None, "c")) == ["a_b", "f", "c"]
    assert row_sources(part("wice", "wice")) == ["f", "f"]
    assert row_sources(part(None, None)) == ["f", "f"]


def test_a_weighted_mixture_with_held_back_groups(
    arguments: Callable, write: Callable, tmp_path: Path
) -> None:
    single, two = write("one", pairs(60, "one")), write("two", pairs(60, "two"))
    mixture = f"{{{single}: 2, {two}: 0.5}}"
    options = ["--data.train", mixture, "--data.dev", "0.3", "--trainer.max_epochs", "2"]
    options += ["--trainer.val_check_interval", "1.0", "--trainer.check_val_every_n_epoch", "1"]
    main(arguments("relation", *options, "--trainer.max_steps", "-1"))

    component = read_component(tmp_path / "checkpoints/run")
    counts = {(file.split, file.path): file.rows for file in component.data}
    assert counts["train", "one.jsonl"] + counts["dev", "one.jsonl"] == 60
    assert counts["dev", "one.jsonl"] > 5
    seen = 2 * counts["train", "one.jsonl"] + round(0.5 * counts["train", "two.jsonl"])
    assert read_state(tmp_path / "runs/run/last.ckpt")[0] == 2 * math.ceil(seen / 4)
    assert len({file.sha256 for file in component.data}) == 2
    names = {name for name in component.metrics if "/" not in name}
    assert {"accuracy", "macro_f1", "entailment_auroc", "ece"} <= names
    judged = {f"{s}/{n}" for s in ("one", "two", "macro") for n in names}
    assert set(component.metrics) == names | judged
    # The overall accuracy is that of the two sources together.
    weights = [counts["dev", f"{source}.jsonl"] for source in ("one", "two")]
    parts = [component.metrics[f"{source}/accuracy"] for source in ("one", "two")]
    assert component.metrics["accuracy"] == pytest.approx(np.average(parts, weights=weights))
    config = (tmp_path / "runs/run/config.yaml").read_text(encoding="utf-8")
    assert f"{single}: 2.0" in config


def test_a_source_can_be_monitored(
    arguments: Callable, write: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    two_class = [
        {**row, "label": ["entailment", "not_entailment"][i % 2], "source": "wice"}
        for i, row in enumerate(pairs(8, "w"))
    ]
    dev = f"[{write('plain', relation_rows())}, {write('other', two_class)}]"
    options = ["--data.dev", dev, "--trainer.max_steps", "3"]
    main(arguments("relation", *options, "--model.monitor", "dev/wice/macro_f1"))

    metrics = read_component(tmp_path / "checkpoints/run").metrics
    assert {"entailment_auroc", "wice/entailment_auroc", "plain/macro_f1"} <= set(metrics)
    assert "macro_f1" not in metrics  # of two-class and three-class rows together
    assert (tmp_path / "runs/run/best.ckpt").is_file()
    assert "dev/wice/entailment_auroc" in (tmp_path / "runs/run/metrics.csv").read_text()
    macro = ["--model.monitor", "dev/macro/macro_f1"]
    main(arguments("relation", *options, *macro, run="macro"))
    result = read_component(tmp_path / "checkpoints/macro").metrics
    parts = [result[f"{name}/entailment_auroc"] for name in ("wice", "plain")]
    assert result["macro/entailment_auroc"] == pytest.approx(np.mean(parts), abs=1e-6)
    assert "dev/macro/entailment_auroc" in (tmp_path / "runs/macro/metrics.csv").read_text()
    # Of one source the mean is its own.
    main(arguments("relation", *macro, "--trainer.max_steps", "3", run="alone"))
    assert "dev has one source: monitoring dev/macro_f1 instead of dev/macro/macro_f1" in (
        capsys.readouterr().out
    )
    assert (tmp_path / "runs/alone/best.ckpt").is_file()


def test_dev_rows_are_drawn_by_the_seed_and_kept_in_order(
    write: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("a", pairs(30, "a"))
    rows = read_records(path, RelationPair)
    drawn = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PL_GLOBAL_SEED", seed)
        data = RecordData(train=path, dev=path, dev_rows=9)
        drawn.append(data._part("dev", path, rows, "a", ["dev"] * 30).numbers)
        assert len(data._part("train", path, rows, "a", ["train"] * 30).numbers) == 30
    assert [sorted(numbers) for numbers in drawn] == drawn
    assert [len(set(numbers)) for numbers in drawn] == [9, 9]
    assert drawn[0] != drawn[1]
