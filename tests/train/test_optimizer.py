"""What a step does besides the gradient: the schedule, weight decay and clipping."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.train.recorder import STEPS
from train.__main__ import main


@pytest.fixture
def steps(arguments: Callable) -> Callable[..., list[dict]]:
    """Take six steps and return what each was taken with."""

    def _steps(*options: str, component: str = "unli") -> list[dict]:
        STEPS.clear()
        recorder = '[{"class_path": "tests.train.recorder.Recorder"}]'
        main(arguments(component, "--overwrite", "--trainer.callbacks", recorder, *options))
        return STEPS

    return _steps


def rates(result: list[dict]) -> list[float]:
    return [rate for step in result for rate in step["rates"]]


def test_the_rate_rises_and_falls_in_straight_lines(steps: Callable) -> None:
    result = rates(steps("--model.lr", "0.006", "--model.warmup_ratio", "0.5"))
    assert result == pytest.approx([0.0, 0.002, 0.004, 0.006, 0.004, 0.002])
    result = rates(steps("--model.lr", "0.006", "--model.warmup_ratio", "0"))
    assert result == pytest.approx([0.006, 0.005, 0.004, 0.003, 0.002, 0.001])


def test_decay_is_of_weight_matrices_alone(steps: Callable) -> None:
    first, *_ = steps("--model.weight_decay", "0.3")
    assert first["optimizer"] == "AdamW"
    assert set(first["decayed"]) == {0.3, 0.0}
    assert first["decayed"][0.3] | first["decayed"][0.0] == first["names"]
    spared = {n for n in first["names"] if n.endswith("bias") or "LayerNorm" in n}
    assert first["decayed"][0.0] == spared
    assert len(spared) > 10


def test_the_gradient_is_clipped_to_its_norm(steps: Callable) -> None:
    for step in steps("--trainer.gradient_clip_val", "0.01"):
        assert step["whole"] > 0.02
        assert step["clipped"] == pytest.approx(0.01, rel=1e-3)
    for none in ("null", "0", "-1"):  # scaled by a negative one, it would be climbed
        for step in steps("--trainer.gradient_clip_val", none):
            assert step["clipped"] == step["whole"]


def test_another_optimizer_and_schedule(steps: Callable) -> None:
    options = ["--model.optimizer", "torch.optim.SGD", "--model.optimizer.momentum", "0.9"]
    options += ["--model.schedule", "transformers.get_cosine_schedule_with_warmup"]
    result = steps(*options, "--model.warmup_ratio", "0.5", "--model.lr", "0.006")
    assert result[0]["optimizer"] == "SGD"
    assert set(result[0]["decayed"]) == {0.01, 0.0}  # its rate and decay are the module's
    assert rates(result) == pytest.approx([0.0, 0.002, 0.004, 0.006, 0.0045, 0.0015])
