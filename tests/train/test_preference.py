"""Training against a metric: the loss, its reference, and what is exported."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer

from components.base import describe_base
from components.checkpoint import Component, read_component, write_component
from components.measures import preference_measures
from eval.__main__ import main as evaluate
from eval.models.causal import CausalLM
from records import Preference as PreferenceRecord
from records import UserError
from tests.train.test_resume import crash_at, weights
from train.__main__ import main
from train.adversary import Adversary, CausalLora
from train.preference import Preference


def preference_rows() -> list[dict]:
    good = ["ada was a poet .", "she is a person .", "ada is a person and has a name ."]
    bad = ["ada was born in paris .", "she wrote the first program in london and paris ."]
    return [
        {
            "prompt": f"Tell me a bio of {['ada', 'lovelace'][i % 2]}.",
            "chosen": good[i % 3],
            "rejected": bad[i % 2],
            "score_chosen": 0.9,
            "score_rejected": 0.1 * (i % 5),
        }
        for i in range(10)
    ]


def records() -> list[PreferenceRecord]:
    return [PreferenceRecord(**row) for row in preference_rows()]


@pytest.fixture
def preference(arguments: Callable, write: Callable) -> Callable[..., list[str]]:
    """The command line of a small run of the preference module."""
    file = write("preference", preference_rows())

    def _arguments(*more: str, run: str = "run", command: str = "fit") -> list[str]:
        settings = ["--model", "train.preference.Preference", "--data", "train.data.RecordData"]
        settings += ["--data.train", file, "--data.dev", file, *more]
        return arguments("adversary", *settings, run=run, command=command)

    return _arguments


def disturb(module: CausalLora) -> None:
    """Move the trained adapter away from the reference."""
    generator = torch.Generator().manual_seed(1)
    for _, weight in module.named_parameters():
        if weight.requires_grad:
            noise = torch.randn(weight.shape, generator=generator)
            weight.data.add_(0.2 * noise)


def save_adversary(base: str, folder: Path, seed: int = 0, chat: bool = True) -> str:
    """An adversary as supervised fine-tuning exports it, with an adapter that is not zero."""
    torch.manual_seed(seed)
    module = Adversary(base=base, chat=chat, max_length=48)
    module.configure_model()
    disturb(module)
    folder.mkdir(exist_ok=True)
    module.save_pretrained(folder)
    module.tokenizer.save_pretrained(folder)
    component = Component(
        component="adversary", architecture="causal_lora", max_length=48, base=describe_base(base),
        **module.describe(),
    )  # fmt: skip
    write_component(folder, component, card="# tiny\n")
    return str(folder)


@pytest.fixture
def started(tiny_llama: str, tmp_path: Path) -> str:
    """The adversary that training starts from."""
    return save_adversary(tiny_llama, tmp_path / "sft")


def step(module: Preference) -> tuple[torch.Tensor, np.ndarray]:
    """Loss of shape () and rewards of shape (pairs, 2) on all records in one batch."""
    items = module.encode(records(), train=True)
    loss, outputs = module.model_step(module.collate(items, range(len(items))))
    return loss.mean, np.asarray(outputs)


def trl_trainer(base: str, module: Preference, start: str | None, folder: Path) -> Trainer:
    """The independent reference: trl's trainer of the same base, adapter, records and beta.

    Its reference policy is the base model under a fresh adapter, and a copy of a given one.
    """
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    model = AutoModelForCausalLM.from_pretrained(base)
    if start:
        model = PeftModel.from_pretrained(model, start, is_trainable=True)
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.chat_template = None
    rows = [{k: row[k] for k in ("prompt", "chosen", "rejected")} for row in preference_rows()]
    return DPOTrainer(
        model=model,
        args=DPOConfig(
            output_dir=str(folder), beta=module.beta, max_length=module.max_length, use_cpu=True,
            bf16=False, gradient_checkpointing=False, report_to="none",
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        peft_config=None if start else module.lora,
    )  # fmt: skip


@pytest.mark.parametrize("start", [False, True], ids=["base", "start"])
def test_loss_and_margins_equal_trl(tiny_llama: str, tmp_path: Path, start: bool) -> None:
    folder = save_adversary(tiny_llama, tmp_path / "sft", chat=False) if start else None
    module = Preference(base=tiny_llama, start=folder, chat=False, max_length=48, beta=0.3)
    torch.manual_seed(0)  # of the fresh adapter
    module.configure_model()
    trainer = trl_trainer(tiny_llama, module, folder, tmp_path / "trl")
    disturb(module)
    theirs = dict(trainer.model.named_parameters())
    for name, weight in module.model.named_parameters():
        if weight.requires_grad:
            theirs[name].data.copy_(weight.data)
    inputs = trainer.data_collator([trainer.train_dataset[i] for i in range(10)])

    loss, rewards = step(module)
    expected = trainer.compute_loss(trainer.model, inputs)
    loss.backward()
    expected.backward()

    logged = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    assert loss.item() == pytest.approx(expected.item(), abs=1e-5)
    assert abs(loss.item() - math.log(2)) > 0.01
    assert rewards[:, 0].mean() == pytest.approx(logged["rewards/chosen"], abs=1e-5)
    assert rewards[:, 1].mean() == pytest.approx(logged["rewards/rejected"], abs=1e-5)
    result = preference_measures(rewards[:, 0], rewards[:, 1], range(10), resamples=0)
    assert result["reward_margin"]["value"] == pytest.approx(logged["rewards/margins"], abs=1e-5)
    assert result["reward_accuracy"]["value"] == pytest.approx(logged["rewards/accuracies"])
    assert result["dpo_loss"]["value"] == pytest.approx(loss.item(), abs=1e-5)
    for name, weight in module.model.named_parameters():
        if weight.requires_grad:
            assert torch.allclose(weight.grad, theirs[name].grad, atol=1e-5), name


def test_only_the_trained_copy_learns(tiny_llama: str, started: str) -> None:
    module = Preference(base=tiny_llama, start=started, max_length=48)
    module.configure_model()
    trained = {name for name, weight in module.named_parameters() if weight.requires_grad}
    with module.reference():  # a base with dropout (GPT-2) has none there
        assert not any(part.training for part in module.model.modules())
    loss, _ = step(module)
    loss.backward()

    assert trained
    assert all(".default." in name for name in trained)
    after = {name for name, weight in module.named_parameters() if weight.requires_grad}
    assert after == trained  # the visit to the reference left no trace
    assert module.model.training
    with_gradient = {name for name, w in module.named_parameters() if w.grad is not None}
    assert with_gradient == trained


def test_it_learns_and_exports_what_it_measured(
    preference: Callable, started: str, tmp_path: Path, tiny_llama: str
) -> None:
    main(preference("--model.start", started, "--trainer.max_steps", "12"))

    folder = tmp_path / "checkpoints/run"
    names = [path.name for path in folder.rglob("*")]
    assert [name for name in names if "adapter_model" in name] == ["adapter_model.safetensors"]
    assert not [name for name in names if "reference" in name]
    component = read_component(folder, "adversary")
    assert component.style == "preference"
    assert component.base["id"] == tiny_llama
    assert set(component.metrics) == {"dpo_loss", "reward_accuracy", "reward_margin"}
    assert component.metrics["reward_accuracy"] == 1.0
    assert component.metrics["dpo_loss"] < 0.6

    # By eval's own engine: beta times the difference of both models' log-likelihoods.
    engines = [CausalLM(path, dtype="float32") for path in (folder, started)]
    margins = []
    for row in preference_rows():
        pairs = [(row["prompt"], row["chosen"]), (row["prompt"], row["rejected"])]
        ours, theirs = ([x.nll for x in engine.log_likelihoods(pairs)] for engine in engines)
        margins.append(0.1 * ((theirs[0] - ours[0]) - (theirs[1] - ours[1])))
    assert component.metrics["reward_margin"] == pytest.approx(np.mean(margins), abs=1e-4)


def test_the_exported_folder_is_judged_as_an_adversary(
    preference: Callable, write: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    main(preference("--trainer.max_steps", "2"))
    rows = [{"topic": f"ada {i % 2}", "text": "she was a poet ."} for i in range(4)]
    argv = ["component", "--checkpoint", str(tmp_path / "checkpoints/run")]
    capsys.readouterr()
    assert evaluate([*argv, "--data", write("texts", rows)]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (result["component"], result["n"], result["failed"]) == ("adversary", 4, 0)
    assert result["metrics"]["perplexity"]["value"] > 1


def test_a_crash_changes_nothing(preference: Callable, started: str, tmp_path: Path) -> None:
    options = ["--model.start", started, "--model.dropout", "0.1", "--save_every", "1"]
    options += ["--trainer.max_steps", "7", "--trainer.val_check_interval", "4"]
    main(preference(*options, run="whole"))
    for at, validating in ((2, False), (4, True)):
        run = f"crash{at}"
        crash = ["--trainer.callbacks", f"[{crash_at(at, validating)}]"]
        with pytest.raises(RuntimeError, match="crash"):
            main(preference(*options, *crash, run=run))
        last = str(tmp_path / f"runs/{run}/last.ckpt")
        main(preference(*options, "--ckpt_path", last, run=run))

        trained, two = (
            (tmp_path / "checkpoints" / name / "adapter_model.safetensors").read_bytes()
            for name in ("whole", run)
        )
        assert trained == two
        whole, resumed = weights(tmp_path, "whole"), weights(tmp_path, run)
        assert all(".default." in name for name in whole)
        assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_the_config_of_the_paper_goes_on_from_the_adversary_of_the_paper() -> None:
    folder = Path(__file__).parents[2] / "configs/train/paper"
    read = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in folder.glob("*.yaml")}
    model_options = read["preference"]["model"]["init_args"]
    (start,) = [
        trained for trained in read.values() if trained.get("export_to") == model_options["start"]
    ]
    theirs = start["model"]["init_args"]
    for name in ("base", "prompt_template", "chat", "r", "alpha", "target_modules"):
        assert model_options[name] == theirs[name], name


def test_pairs_of_equal_texts_are_skipped_and_counted(
    tiny_llama: str, capsys: pytest.CaptureFixture
) -> None:
    module = Preference(base=tiny_llama, max_length=48)
    rows = preference_rows()[:3]
    rows[1]["rejected"] = rows[1]["chosen"] + " "
    items = module.encode([PreferenceRecord(**row) for row in rows], train=True)
    assert [item.row for item in items] == [0, 2]
    assert "skipped 1 rows with equal chosen and rejected texts" in capsys.readouterr().out
    with pytest.raises(UserError, match="no row left; add rows with two different texts"):
        module.encode([PreferenceRecord(**rows[1])], train=True)
