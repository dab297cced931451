"""A run that dies and is resumed ends like one that did not."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from safetensors.torch import load_file

from records import UserError
from train.__main__ import main
from train.continuing import TrainingRun
from train.data import TrainBatches
from train.module import Item
from train.resume import Patience, Resume, curves_logger, read_state


class Crash(Callback):
    """Dies in the middle of a step (at one of its batches), or during the validation after it."""

    def __init__(self, step: int, validating: bool = False, batch: int | None = None):
        self.step, self.validating, self.batch = step, validating, batch

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx) -> None:
        is_due = trainer.global_step == self.step and self.batch in (None, batch_idx)
        if is_due and not self.validating:
            raise RuntimeError("crash")

    def on_validation_batch_start(self, trainer, pl_module, batch, batch_idx) -> None:
        if self.validating and trainer.global_step == self.step:
            raise RuntimeError("crash")


class Rates(Callback):
    """Writes the learning rate of each step."""

    def __init__(self, path: str):
        self.path = path

    def on_before_optimizer_step(self, trainer, pl_module, optimizer) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"{optimizer.param_groups[0]['lr']}\n")


def crash_at(step: int, validating: bool) -> str:
    arguments = f'{{"step": {step}, "validating": {str(validating).lower()}}}'
    return f'{{"class_path": "tests.train.test_resume.Crash", "init_args": {arguments}}}'


def weights(tmp_path: Path, run: str) -> dict:
    return torch.load(tmp_path / f"runs/{run}/last.ckpt", weights_only=True)["state_dict"]


# Ten rows in batches of 4: three steps an epoch; 9 steps are three epochs.
OPTIONS = ["--save_every", "1", "--trainer.max_steps", "9", "--trainer.log_every_n_steps", "1"]
IN_STEPS = ["--trainer.val_check_interval", "4"]
IN_EPOCHS = ["--trainer.val_check_interval", "1.0", "--trainer.check_val_every_n_epoch", "1"]


@pytest.mark.parametrize("interval", [IN_STEPS, IN_EPOCHS], ids=["steps", "epochs"])
def test_a_crash_anywhere_changes_nothing(
    arguments: Callable, tmp_path: Path, interval: list[str]
) -> None:
    main(arguments("unli", *OPTIONS, *interval, run="whole"))
    exported = (tmp_path / "checkpoints/whole/model.safetensors").read_bytes()
    curve = (tmp_path / "runs/whole/metrics.csv").read_text(encoding="utf-8")
    first_validation = 4 if interval is IN_STEPS else 3
    # Within an epoch, at its end (3 steps), after and during a validation, in a later epoch, in the
    # validation of the last step.
    crashes = [(2, False), (3, False), (4, False), (7, False), (first_validation, True), (9, True)]
    for step, validating in crashes:
        run = f"crash{step}{validating}"
        options = [*OPTIONS, *interval]
        crash = ["--trainer.callbacks", f"[{crash_at(step, validating)}]"]
        with pytest.raises(RuntimeError, match="crash"):
            main(arguments("unli", *options, *crash, run=run))
        last = str(tmp_path / f"runs/{run}/last.ckpt")
        main(arguments("unli", *options, "--ckpt_path", last, run=run))

        assert (tmp_path / f"checkpoints/{run}/model.safetensors").read_bytes() == exported, run
        whole, resumed = weights(tmp_path, "whole"), weights(tmp_path, run)
        assert all(torch.equal(whole[name], resumed[name]) for name in whole), run
        assert (tmp_path / f"runs/{run}/metrics.csv").read_text(encoding="utf-8") == curve, run


def contents(tmp_path: Path) -> dict[Path, bytes]:
    folders = (tmp_path / "runs/run", tmp_path / "checkpoints/run")
    return {path: path.read_bytes() for folder in folders for path in folder.rglob("*.*")}


def test_a_run_of_other_options_or_data_is_refused_and_nothing_changes(
    arguments: Callable, tmp_path: Path
) -> None:
    main(arguments("unli"))
    before = contents(tmp_path)
    other = tmp_path / "other.jsonl"
    other.write_text((tmp_path / "unli.jsonl").read_text(encoding="utf-8"), encoding="utf-8")
    rate = ["--model.lr", "0.001"]
    elsewhere = ["--runs", str(tmp_path / "more")]
    last = ["--ckpt_path", "last"]
    for options, message in (
        ([*rate, *last], "last.ckpt: from another run, which differs in --model.lr; only length"),
        (rate, "which differs in --model.lr"),
        (["--trainer.max_steps", "2"], "--trainer.max_steps: .*last.ckpt is at step 6"),
        (["--data.train", str(other), *last], "which differs in --data.train"),
        ([*elsewhere, *rate], "checkpoints/run: a checkpoint of another run; set another --export"),
    ):
        with pytest.raises(UserError, match=message):
            main(arguments("unli", *options))
        assert contents(tmp_path) == before, options
    inputs = arguments("unli", *last)
    rows = other.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "unli.jsonl").write_text("".join(rows[:9]), encoding="utf-8")
    with pytest.raises(UserError, match=r"differs in content of .*unli\.jsonl"):
        main(inputs)
    assert contents(tmp_path) == before


def test_a_run_of_other_options_starts_at_step_0_with_overwrite(
    arguments: Callable, tmp_path: Path
) -> None:
    options = ["--model.lr", "0.001", "--overwrite"]
    main(arguments("unli"))
    main(arguments("unli", *options, run="b"))
    main(arguments("unli", *options, "--ckpt_path", "last"))
    single, two = weights(tmp_path, "run"), weights(tmp_path, "b")
    assert all(torch.equal(single[name], two[name]) for name in single)


def constant(optimizer: torch.optim.Optimizer, **_: int) -> torch.optim.lr_scheduler.LRScheduler:
    return torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)


SCHEDULES = ["transformers.get_linear_schedule_with_warmup", "tests.train.test_resume.constant"]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=["linear", "constant"])
def test_a_finished_run_of_4_steps_continues_to_9_steps(
    arguments: Callable, tmp_path: Path, capsys: pytest.CaptureFixture, schedule: str
) -> None:
    options = ["--trainer.log_every_n_steps", "1", "--model.warmup_ratio", "0"]
    options += ["--model.schedule", schedule]
    rates = {"class_path": "tests.train.test_resume.Rates"}
    rates["init_args"] = {"path": str(tmp_path / "rates")}
    main(arguments("unli", *options, "--trainer.max_steps", "9", run="whole"))
    options += ["--trainer.callbacks", json.dumps([rates])]
    main(arguments("unli", *options, "--trainer.max_steps", "4"))
    last = ["--trainer.max_steps", "9", "--ckpt_path", "last"]
    main(arguments("unli", *options, *last))
    assert "continues at step 4 with another --trainer.max_steps\n" in capsys.readouterr().out
    applied = [float(line) for line in (tmp_path / "rates").read_text().splitlines()]
    if schedule == SCHEDULES[0]:
        steps = [(step, 4) for step in range(4)] + [(step, 9) for step in range(4, 9)]
        assert applied == pytest.approx([0.01 * (1 - step / end) for step, end in steps])
        return
    assert applied == [0.01] * 9
    whole, longer = weights(tmp_path, "whole"), weights(tmp_path, "run")
    assert all(torch.equal(whole[name], longer[name]) for name in whole)


def test_a_run_continues_its_epoch_with_another_batch_size(
    arguments: Callable, tmp_path: Path
) -> None:
    # Ten rows in batches of 2; after 3 steps, 4 rows are left: one batch of 3 repeats none.
    options = ["--trainer.max_steps", "3", "--data.batch_size", "2"]
    main(arguments("unli", *options))
    last = ["--trainer.max_steps", "9", "--data.batch_size", "3", "--ckpt_path", "last"]
    main(arguments("unli", *last))
    state = torch.load(tmp_path / "runs/run/last.ckpt", weights_only=True)
    # Two more batches of 3 in the first epoch, and four in the second.
    assert (state["global_step"], state["epoch"]) == (9, 1)
    assert state["loops"]["fit_loop"]["epoch_loop.batch_progress"]["current"]["ready"] == 4


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("sent", ["SIGKILL", "SIGINT"])
def test_a_fit_that_was_killed_or_interrupted_resumes_when_it_is_repeated(
    arguments: Callable, tmp_path: Path, capsys: pytest.CaptureFixture, sent: str
) -> None:
    options = ["--trainer.max_steps", "80", "--save_every", "4"]
    options += ["--trainer.val_check_interval", "30", "--trainer.log_every_n_steps", "1"]
    main(arguments("unli", *options, run="whole"))
    command = [sys.executable, "-m", "train", *arguments("unli", *options, run="killed")]
    last = tmp_path / "runs/killed/last.ckpt"
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ})
    while not last.is_file() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.Signals[sent])
    _, errors = process.communicate()
    assert process.returncode == {"SIGKILL": -signal.SIGKILL, "SIGINT": 130}[sent], errors.decode()
    step = read_state(last)[0]
    assert 0 < step < 80

    main(arguments("unli", *options, run="killed"))

    assert f"last.ckpt: continues at step {step}\n" in capsys.readouterr().out
    for name in ("checkpoints/{}/model.safetensors", "runs/{}/metrics.csv"):
        whole, resumed = (tmp_path / name.format(run) for run in ("whole", "killed"))
        assert whole.read_bytes() == resumed.read_bytes(), name


def test_a_fit_that_saved_no_step_says_that_it_starts_again(
    arguments: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    options = ["--trainer.log_every_n_steps", "1"]
    crash = ["--trainer.callbacks", f"[{crash_at(2, validating=False)}]"]
    with pytest.raises(RuntimeError, match="crash"):
        main(arguments("unli", *options, *crash))
    main(arguments("unli", *options))
    assert "runs/run: no last.ckpt (--save_every 100); starts at step 0" in capsys.readouterr().out


def test_a_fresh_run_forgets_the_weights_of_an_earlier_one(
    arguments: Callable, tmp_path: Path, tiny_bert: str
) -> None:
    main(arguments("unli"))
    main(arguments("unli", "--trainer.max_steps", "0", "--overwrite"))  # the same name
    assert not list((tmp_path / "runs/run").glob("*.ckpt"))
    exported = load_file(tmp_path / "checkpoints/run/model.safetensors")
    base = load_file(Path(tiny_bert) / "model.safetensors")
    name = "embeddings.word_embeddings.weight"
    assert torch.equal(exported[f"bert.{name}"], base[name])


def test_every_step_and_process_has_noise_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resume = Resume(tmp_path, 1, TrainingRun(), fresh=False)
    seeds = []
    # A seed may be a date, or the largest number of 32 bits.
    all_seeds = ("1", "20241231", str(2**32 - 1))
    for seed, epoch, step, rank in itertools.product(all_seeds, (0, 1), (0, 1, 2), (0, 1)):
        monkeypatch.setenv("PL_GLOBAL_SEED", seed)
        place = {"current_epoch": epoch, "num_training_batches": 3}
        trainer = SimpleNamespace(**place, world_size=2, global_rank=rank)
        resume.on_train_batch_start(trainer, None, {}, step)
        seeds.append(torch.initial_seed())
    assert len(set(seeds)) == len(seeds) == 36


def test_accumulated_gradients_are_never_lost(arguments: Callable, tmp_path: Path) -> None:
    # Three batches an epoch and two a step: a step, and one of the last batch alone.
    options = ["--save_every", "1", "--trainer.accumulate_grad_batches", "2"]
    options += ["--trainer.val_check_interval", "5", "--trainer.max_steps", "6"]
    main(arguments("unli", *options, run="whole"))
    # Between the two batches of the third step.
    crash = (
        '[{"class_path": "tests.train.test_resume.Crash", "init_args": {"step": 2, "batch": 1}}]'
    )
    with pytest.raises(RuntimeError, match="crash"):
        main(arguments("unli", *options, "--trainer.callbacks", crash, run="broken"))
    main(arguments("unli", *options, "--ckpt_path", str(tmp_path / "runs/broken/last.ckpt"),
                   run="broken"))  # fmt: skip
    whole, broken = weights(tmp_path, "whole"), weights(tmp_path, "broken")
    assert all(torch.equal(whole[name], broken[name]) for name in whole)


def test_the_end_of_an_epoch_is_kept_where_its_last_step_has_fewer_batches(
    arguments: Callable, tmp_path: Path
) -> None:
    # Three batches an epoch and two a step; nothing but the validations writes last.ckpt.
    options = ["--trainer.accumulate_grad_batches", "2", *IN_EPOCHS]
    main(arguments("unli", *options, run="whole"))
    crash = ["--trainer.callbacks", f"[{crash_at(2, validating=False)}]"]
    with pytest.raises(RuntimeError, match="crash"):
        main(arguments("unli", *options, *crash, run="broken"))
    last = tmp_path / "runs/broken/last.ckpt"
    assert read_state(last)[0] == 2
    main(arguments("unli", *options, "--ckpt_path", str(last), run="broken"))
    whole, broken = weights(tmp_path, "whole"), weights(tmp_path, "broken")
    assert all(torch.equal(whole[name], broken[name]) for name in whole)


def test_a_run_whose_patience_was_over_does_not_train_on(
    arguments: Callable, tmp_path: Path
) -> None:
    # As if it had been killed in its export: last.ckpt is of the validation that ended it.
    options = ["--model.lr", "0", "--patience", "1", "--trainer.val_check_interval", "1"]
    main(arguments("unli", *options))
    curve = (tmp_path / "runs/run/metrics.csv").read_bytes()
    main(arguments("unli", *options, "--ckpt_path", "last"))
    assert read_state(tmp_path / "runs/run/last.ckpt")[0] == 2
    assert (tmp_path / "runs/run/metrics.csv").read_bytes() == curve


def test_a_run_that_goes_on_has_the_patience_that_is_given() -> None:
    monitored = {"monitor": "dev/mse", "mode": "min"}
    stopped, inputs = (Patience(**monitored, patience=patience) for patience in (1, 7))
    stopped.wait_count = 1
    inputs.load_state_dict(stopped.state_dict())
    assert (inputs.patience, inputs.wait_count) == (7, 1)


def test_curves_go_on_from_a_torn_line_with_all_their_values(tmp_path: Path) -> None:
    path = tmp_path / "run/metrics.csv"
    path.parent.mkdir()
    kept = "dev/loss,epoch,step\r\nnan,0,1\r\n0.25,0,2\r\ninf,1,3\r\n"
    for torn in ("", "0.5", "0.5,1,", "0.5,1,4"):
        path.write_text(kept + torn, encoding="utf-8", newline="")
        logger = curves_logger(tmp_path, "run", 10)
        logger.save()
        assert path.read_bytes().decode() == kept, torn


@pytest.mark.parametrize("moved", [False, True], ids=["another", "moved"])
def test_the_best_so_far_goes_along_into_another_folder(
    arguments: Callable, tmp_path: Path, moved: bool
) -> None:
    # At such a rate the first validation is the best.
    options = ["--save_every", "1", "--trainer.max_steps", "8", "--trainer.val_check_interval", "2"]
    options += ["--model.lr", "0.3"]
    main(arguments("unli", *options, run="whole"))
    crash = ["--trainer.callbacks", f"[{crash_at(7, validating=False)}]"]
    with pytest.raises(RuntimeError, match="crash"):
        main(arguments("unli", *options, *crash, run="killed"))
    folder = tmp_path / "runs/killed"
    if moved:
        folder = folder.rename(tmp_path / "runs/other")
    main(arguments("unli", *options, "--ckpt_path", str(folder / "last.ckpt"), run="other"))
    single, two = (
        (tmp_path / f"checkpoints/{run}/model.safetensors").read_bytes()
        for run in ("whole", "other")
    )
    assert single == two


def test_training_does_not_go_on_from_weights_alone(arguments: Callable, tmp_path: Path) -> None:
    main(arguments("unli"))
    best = str(tmp_path / "runs/run/best.ckpt")
    with pytest.raises(UserError, match=r"best\.ckpt: weights only.*last\.ckpt"):
        main(arguments("unli", "--ckpt_path", best))
    assert Path(best).is_file()


def batches(size: int, world: int = 1, rank: int = 0) -> TrainBatches:
    class Echo:
        def collate(self, items: list, indices: list[int]) -> dict:
            return {"indices": indices}

    items = [Item(index, {"input_ids": [1] * (1 + index % 7)}, 0) for index in range(size)]
    return TrainBatches(Echo(), items, 4, [(range(len(items)), 1.0)], rank, world)


def indices(loader: TrainBatches) -> list[list[int]]:
    return [batch["indices"] for batch in loader]


def test_every_row_once_an_epoch_and_epochs_differ() -> None:
    loader = batches(430)
    first = indices(loader)
    loader.set_epoch(1)
    second = indices(loader)

    assert len(first) == len(second) == len(loader) == 108
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(430))
    assert first != second
    spread = [max(i % 7 for i in batch) - min(i % 7 for i in batch) for batch in first]
    assert sum(spread) / len(spread) < 1  # batches are of similar length
    lengths = [max(i % 7 for i in batch) for batch in first]
    falls = sum(after < before for before, after in itertools.pairwise(lengths))
    assert 20 < falls < 60  # and the batches of all lengths are mixed


def test_processes_divide_the_steps_of_one_process() -> None:
    # 430 rows in steps of 12: the last step has 10, which are dealt out as 4, 3 and 3.
    single = batches(430)
    whole = indices(TrainBatches(single.encoder, single.items, 12, single.mixture))
    parts = [list(batches(430, world=3, rank=rank)) for rank in range(3)]

    assert [len(part) for part in parts] == [len(whole)] * 3 == [len(batches(430, world=3))] * 3
    for step, batch in enumerate(whole):
        step_parts = [part[step] for part in parts]
        assert sorted(batch) == sorted(chain(*(m["indices"] for m in step_parts)))
        assert all(m["counted"] for m in step_parts)


def test_a_process_without_items_takes_part_and_counts_nothing() -> None:
    parts = [list(batches(13, world=3, rank=rank))[0:2] for rank in range(3)]

    small = next(i for i in range(2) if not parts[2][i]["counted"])
    assert [part[small]["counted"] for part in parts] == [True, False, False]
    assert {tuple(part[small]["indices"]) for part in parts} == {tuple(parts[0][small]["indices"])}


def test_a_loader_goes_on_where_its_state_was_taken() -> None:
    loader = batches(40)
    loader.set_epoch(3)
    result = iter(loader)
    for _ in range(4):
        next(result)
    state = loader.state_dict()
    resumed = batches(40)
    resumed.load_state_dict(state)
    resumed.set_epoch(3)
    assert list(resumed) == list(result)
    assert len(list(resumed)) == 10  # only once


def test_an_improvement_below_least_gain_ends_the_training(
    arguments: Callable, tmp_path: Path
) -> None:
    options = ["--patience", "1", "--least_gain", "9", "--trainer.val_check_interval", "1"]
    main(arguments("unli", *options))
    assert read_state(tmp_path / "runs/run/last.ckpt")[0] == 2
