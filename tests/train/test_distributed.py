"""Two processes train and judge what one does: DDP over gloo on the CPU."""

from __future__ import annotations

import csv
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model, T5Config, T5Model

from components.checkpoint import read_component
from tests.conftest import SIZE
from tests.train.conftest import CHAT, lss_rows, relation_rows, unli_rows
from tests.train.ranks import MODULES, gradients
from train.__main__ import main
from train.module import gather, has_weight_decay, plain_name

ROOT = Path(__file__).parents[2]
DDP = ["--trainer.strategy", "ddp", "--trainer.devices", "2", "--data.batch_size", "2"]


@pytest.fixture(scope="module")
def still_bert(save_bert: Callable[..., Path], word_tokenizer: Callable) -> str:
    """A base encoder without dropout: its noise would differ between the processes."""
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    tokenizer = word_tokenizer(pairs=True)
    return str(save_bert(BertModel, tokenizer, max_position_embeddings=64, **off))


def curve(path: Path, name: str) -> list[float]:
    with open(path, encoding="utf-8", newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file) if row[name]]


def test_two_processes_are_one(
    arguments: Callable, write: Callable, tmp_path: Path, still_bert: str
) -> None:
    # Eleven rows in steps of four: the last step of an epoch has three, and dev three batches.
    rows = [*unli_rows(), {"premise": "ada .", "hypothesis": "she was .", "label": 0.7}]
    file = write("eleven", rows)
    options = ["--model.base", still_bert, "--data.train", file, "--data.dev", file]
    options += ["--data.eval_batch_size", "4", "--trainer.log_every_n_steps", "1"]
    options += ["--save_every", "1", "--model.lr", "0.003"]
    main(arguments("unli", *options, run="one"))
    # One process breaks after two steps; two go on from its checkpoint, in the middle of an epoch.
    crash = '[{"class_path": "tests.train.test_resume.Crash", "init_args": {"step": 2}}]'
    with pytest.raises(RuntimeError, match="crash"):
        main(arguments("unli", *options, "--trainer.callbacks", crash, run="two"))
    last = tmp_path / "runs/two/last.ckpt"
    command = arguments("unli", *options, *DDP, "--ckpt_path", str(last), run="two")
    done = subprocess.run(
        [sys.executable, "-m", "train", *command],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr

    single, two = (
        load_file(tmp_path / f"checkpoints/{r}/model.safetensors") for r in ("one", "two")
    )
    assert all(torch.allclose(single[name], two[name], atol=1e-5) for name in single)
    first, second = (read_component(tmp_path / f"checkpoints/{r}").metrics for r in ("one", "two"))
    assert second == pytest.approx(first, abs=1e-4)
    for name in ("train/loss", "dev/loss", "dev/pearson"):
        left, right = (curve(tmp_path / f"runs/{r}/metrics.csv", name) for r in ("one", "two"))
        assert len(left) == (6 if name == "train/loss" else 2)
        assert right == pytest.approx(left, abs=1e-4), name
    # Only rank 0 exports and prints.
    assert done.stdout.count("checkpoint: ") == 1


def texts_of_many_lengths() -> dict[str, list[dict]]:
    """Eight rows a module, which differ much in the number of their tokens."""
    words = "ada lovelace was a mathematician and poet born in paris ."
    claims = [" ".join(words.split()[:count]) for count in (1, 11, 2, 5, 8, 3, 10, 4)]
    lss = [{**row, "claim": c, "annotations": [{"lss": c}, {"lss": "ada"}, {"lss": "ada"}]}
           for row, c in zip(lss_rows(), claims, strict=False)]  # fmt: skip
    prompt = {"prompt": "Tell me a bio of ada.", "score_chosen": 0.9, "score_rejected": 0.1}
    return {
        "unli": [{**row, "weight": 1 + i} for i, row in enumerate(unli_rows()[:8])],
        "relation": [{**row, "weight": 1 + i} for i, row in enumerate(relation_rows()[:8])],
        "lss_tagger": lss,
        "lss_seq2seq": [{**row, "annotations": row["annotations"][:1]} for row in lss],
        "adversary": [{"topic": "ada", "text": claim} for claim in claims],
        "preference": [{**prompt, "chosen": c, "rejected": "she wrote ."} for c in claims],
    }


@pytest.fixture(scope="module")
def eight_rows(
    save_llama: Callable[..., Path],
    word_tokenizer: Callable,
    still_bert: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """What ``tests.train.ranks`` reads."""
    folder = tmp_path_factory.mktemp("ranks")
    tokenizer = word_tokenizer(pairs=False)
    tokenizer.chat_template = CHAT
    causal = {"base": str(save_llama(tokenizer, num_key_value_heads=2, max_position_embeddings=64))}
    sizes = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2}
    t5 = {"base": None, "tokenizer": still_bert, "t5": {**sizes, "dropout_rate": 0.0}}
    encoder = {"base": still_bert}
    bases = [encoder, encoder, encoder, t5, causal, causal]
    options = json.dumps(dict(zip(MODULES, bases, strict=True)))
    (folder / "options.json").write_text(options, encoding="utf-8")
    for name, rows in texts_of_many_lengths().items():
        lines = [json.dumps(row) + "\n" for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def of_three_processes(eight_rows: Path) -> Path:
    """The gradients of every module by three processes, started once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"}
    command = [sys.executable, "-m", "tests.train.ranks", str(eight_rows)]
    started = [
        subprocess.Popen(
            command, cwd=ROOT, env={**shared, "MASTER_PORT": port, "LOCAL_RANK": rank},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for rank in ("0", "1", "2")
    ]  # fmt: skip
    errors = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], errors
    return eight_rows


@pytest.mark.parametrize("name", MODULES)
def test_several_processes_give_the_gradient_of_one(name: str, of_three_processes: Path) -> None:
    single = gradients(name, of_three_processes)
    all_three = torch.load(of_three_processes / f"{name}.pt", weights_only=True)
    assert len(single) == len(all_three) == 2  # the third process has no item in one of them
    for ours, theirs in zip(single, all_three, strict=True):
        assert set(ours) == set(theirs)
        assert any(gradient.abs().max() > 1e-3 for gradient in ours.values())
        for part, gradient in ours.items():
            assert torch.allclose(theirs[part], gradient, rtol=1e-4, atol=1e-6), part


def test_gathering_is_by_index_whatever_the_order() -> None:
    assert list(gather({5: "b", 2: "a"}, world=1).items()) == [(2, "a"), (5, "b")]


@pytest.mark.parametrize(
    "model",
    [
        lambda: BertModel(BertConfig(vocab_size=20, **SIZE)),
        lambda: GPT2Model(GPT2Config(vocab_size=20, n_embd=8, n_head=2, n_layer=1)),
        lambda: T5Model(T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1)),
    ],
    ids=["bert", "gpt2", "t5"],
)
def test_weight_decay_by_name_is_that_of_matrices(model: Callable) -> None:
    result = {name: (has_weight_decay(name), p.ndim > 1) for name, p in model().named_parameters()}
    assert all(by_name == by_shape for by_name, by_shape in result.values()), result


def test_names_without_wrappers() -> None:
    wrapped = "model._fsdp_wrapped_module.encoder._checkpoint_wrapped_module.norm.weight"
    assert plain_name(wrapped) == "model.encoder.norm.weight"
    assert not has_weight_decay(wrapped)
