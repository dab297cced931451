"""A fit that fails reports the step and keeps its checkpoint."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from transformers import RobertaConfig, RobertaForSequenceClassification

from cli.command import run_command
from records import UnliPair
from tests.conftest import SIZE
from train.__main__ import main
from train.unli import Unli


class Poison(Callback):
    """Makes weights infinite before a step, or gradients after its backward pass."""

    def __init__(self, step: int, gradient: bool = False):
        self.step, self.gradient = step, gradient

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx) -> None:
        if trainer.global_step == self.step and not self.gradient:
            with torch.no_grad():
                pl_module.model.classifier.weight.fill_(torch.inf)

    def on_after_backward(self, trainer, pl_module) -> None:
        if trainer.global_step == self.step and self.gradient:
            pl_module.model.classifier.weight.grad.fill_(torch.nan)


class Interrupted(Callback):
    """Ctrl-C after a step."""

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        if trainer.global_step == 3:
            raise KeyboardInterrupt


class OutOfMemory(Callback):
    """What a GPU raises whose memory is too small for a batch."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx) -> None:
        if trainer.global_step >= 2 and len(batch["indices"]) == 4:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


class Terminated(Callback):
    """SIGTERM (kill, time limit, orchestrator) after a step."""

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        if trainer.global_step == 2:
            signal.raise_signal(signal.SIGTERM)


class Handlers(Callback):
    """Keeps what answers a signal in training."""

    handler: object = None

    def on_train_start(self, trainer, pl_module) -> None:
        Handlers.handler = signal.getsignal(signal.SIGUSR1)


def options_with(callback: type[Callback]) -> list[str]:
    """Options of a fit that saves each step and has a callback of this module."""
    class_path = f"tests.train.test_robust_fit.{callback.__name__}"
    callbacks = f'[{{"class_path": "{class_path}"}}]'
    return ["--save_every", "1", "--trainer.callbacks", callbacks]


def exit_code_of(arguments: list[str]) -> int:
    """The exit code of a command that ends early."""
    with pytest.raises(SystemExit) as left:
        run_command(partial(main, arguments))
    return left.value.code


def poison(step: int, gradient: bool) -> str:
    arguments = f'{{"step": {step}, "gradient": {str(gradient).lower()}}}'
    return f'[{{"class_path": "tests.train.test_robust_fit.Poison", "init_args": {arguments}}}]'


@pytest.mark.parametrize(
    ("gradient", "clip"), [(False, "1.0"), (True, "null")], ids=["loss", "gradient"]
)
def test_a_broken_step_stops_the_fit_and_spares_the_checkpoint(
    arguments: Callable,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    gradient: bool,
    clip: str,
) -> None:
    options = ["--save_every", "1", "--trainer.gradient_clip_val", clip]
    main(arguments("unli", *options, run="whole"))
    capsys.readouterr()
    broken = arguments("unli", *options, "--trainer.callbacks", poison(4, gradient), run="broken")
    assert exit_code_of(broken) == 1
    (message,) = [x for x in capsys.readouterr().err.splitlines() if x.startswith("error: ")]
    assert message.startswith("error: step 4: the loss or its gradient is ")
    assert f"{tmp_path / 'unli.jsonl'}:" in message  # the rows of the step
    assert "--model.lr" in message
    last = tmp_path / "runs/broken/last.ckpt"
    state = torch.load(last, weights_only=True)
    assert state["global_step"] == 4
    assert all(torch.isfinite(weight).all() for weight in state["state_dict"].values())
    main(arguments("unli", *options, "--ckpt_path", str(last), run="broken"))
    first, two = (
        (tmp_path / f"checkpoints/{run}/model.safetensors").read_bytes()
        for run in ("whole", "broken")
    )
    assert first == two


def records() -> list[UnliPair]:
    return [
        UnliPair(premise="ada was a poet .", hypothesis="she was .", label=0.5),
        UnliPair(premise="ada " * 20, hypothesis="she wrote the .", label=0.5),
    ]


def logits(module: Unli, batch: dict) -> np.ndarray:
    with torch.inference_mode():
        return np.asarray(module.model_step(batch)[1])


def test_a_pad_id_other_than_0_is_the_filler(word_tokenizer: Callable, tmp_path: Path) -> None:
    # RoBERTa numbers the tokens that are not pad_id, as MPNet does.
    tokenizer = word_tokenizer(pairs=True)
    tokenizer.pad_token = "[UNK]"  # id 1, as RoBERTa's
    tokenizer.save_pretrained(tmp_path)
    torch.manual_seed(0)
    sizes = {"max_position_embeddings": 64, "type_vocab_size": 2, "num_labels": 1}
    config = RobertaConfig(vocab_size=len(tokenizer), pad_token_id=1, **SIZE, **sizes)
    RobertaForSequenceClassification(config).save_pretrained(tmp_path)
    module = Unli(base=str(tmp_path), max_length=48)
    module.configure_model()
    module.eval()
    items = module.encode(records(), train=False)
    batch = module.collate(items, [0, 1])
    assert (batch["inputs"]["input_ids"][batch["inputs"]["attention_mask"] == 0] == 1).all()
    alone = [logits(module, module.collate([item], [0]))[0] for item in items]
    assert logits(module, batch) == pytest.approx(alone, abs=1e-5)


def test_ctrl_c_is_one_line_and_the_fit_goes_on(
    arguments: Callable, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        assert exit_code_of(arguments("unli", *options_with(Interrupted))) == 130
    finally:
        signal.signal(signal.SIGINT, before)  # which Lightning ignores while it leaves
    assert capfd.readouterr().err.splitlines()[-1].startswith("interrupted; ")
    (last,) = (tmp_path / "runs").glob("*/last.ckpt")
    # Ctrl-C comes before what saves that step.
    assert torch.load(last, weights_only=True)["global_step"] == 2


def test_out_of_memory_names_the_options_with_which_the_fit_goes_on(
    arguments: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    options = options_with(OutOfMemory)
    assert exit_code_of(arguments("unli", *options)) == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("error: out of GPU memory: halve --data.batch_size, double ")
    assert "Tried to allocate 2.00 GiB" in message
    smaller = ["--data.batch_size", "2", "--trainer.accumulate_grad_batches", "2"]
    main(arguments("unli", *options, *smaller, "--ckpt_path", "last"))
    assert (tmp_path / "checkpoints/run/model.safetensors").is_file()


def test_a_fit_that_is_terminated_does_not_say_that_all_went_well(
    arguments: Callable, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    assert exit_code_of(arguments("unli", *options_with(Terminated))) == 143
    assert capfd.readouterr().err.splitlines()[-1].startswith("terminated; ")
    (last,) = (tmp_path / "runs").glob("*/last.ckpt")
    assert torch.load(last, weights_only=True)["global_step"] == 2
    assert not list((tmp_path / "checkpoints").glob("*"))
