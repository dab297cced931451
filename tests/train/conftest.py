"""Tiny base models and ten-row files, made on the spot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import BertModel, GPT2Config, GPT2LMHeadModel

from components.base import random_t5
from tests.conftest import SIZE

SIZES = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2, "dropout_rate": 0}
CHAT = (
    "{% for m in messages %}[CLS] {{ m['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}[CLS]{% endif %}"
)


@pytest.fixture(scope="session")
def tiny_bert(save_bert: Callable[..., Path], word_tokenizer: Callable) -> str:
    """A random base encoder."""
    tokenizer = word_tokenizer(pairs=True)
    tokenizer.chat_template = CHAT
    return str(save_bert(BertModel, tokenizer, max_position_embeddings=64))


@pytest.fixture(scope="session")
def tiny_llama(save_llama: Callable[..., Path], word_tokenizer: Callable) -> str:
    """A random base language model with a chat template."""
    tokenizer = word_tokenizer(pairs=False)
    tokenizer.chat_template = CHAT
    return str(save_llama(tokenizer, num_key_value_heads=2, max_position_embeddings=64))


@pytest.fixture(scope="session")
def tiny_gpt2(word_tokenizer: Callable, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random GPT-2, whose tokenizer has neither a pad token nor a chat template."""
    folder = tmp_path_factory.mktemp("gpt2")
    tokenizer = word_tokenizer(pairs=False)
    tokenizer.pad_token = None
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_embd=SIZE["hidden_size"], n_layer=2, n_head=2, n_positions=64,
        bos_token_id=3, eos_token_id=3,
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tiny_t5(word_tokenizer: Callable, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random base T5 with its tokenizer."""
    folder = tmp_path_factory.mktemp("t5")
    torch.manual_seed(0)
    tokenizer = word_tokenizer(pairs=True)
    random_t5(tokenizer, SIZES).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


HYPOTHESES = [
    "ada was a poet .",
    "ada was a mathematician .",
    "she wrote the first program .",
    "ada was born in paris .",
    "she is a person .",
]


def unli_rows() -> list[dict]:
    return [
        {"premise": premise, "hypothesis": text, "label": [0.0, 1.0, 0.2, 0.9, 0.1][index % 5]}
        for index, (premise, text) in enumerate(
            (premise, text)
            for premise in ("ada lovelace was born in london .", "she was a poet and wrote .")
            for text in HYPOTHESES
        )
    ]


def relation_rows() -> list[dict]:
    labels = ["entailment", "neutral", "contradiction", "neutral", "entailment"]
    return [
        {"premise": row["premise"], "hypothesis": row["hypothesis"], "label": labels[i % 5]}
        for i, row in enumerate(unli_rows())
    ]


def lss_rows() -> list[dict]:
    claim = "ada lovelace was a mathematician and poet born in paris ."
    result = ["ada lovelace was a mathematician .", "ada was a poet", "ada lovelace born in paris"]
    return [
        {
            "reference": f"{text} ada lovelace was born in london .",
            "claim": claim,
            "annotations": [
                {"lss": result[i % 3], "rating": 1 + i % 5},
                {"lss": result[(i + 1) % 3], "rating": 1 + (i + 1) % 5},
            ],
        }
        for i, text in enumerate(HYPOTHESES * 2)
    ]


def generation_rows() -> list[dict]:
    return [
        {
            "topic": ["ada", "lovelace"][i % 2],
            "text": f"{text} {HYPOTHESES[(i + 1) % 5]}",
            "kind": "uninformative" if i < 8 else "normal",
        }
        for i, text in enumerate(HYPOTHESES * 2)
    ]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, list[dict]], str]:
    """Write rows as ``NAME.jsonl`` and return the path."""

    def _write(name: str, rows: list[dict]) -> str:
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return str(path)

    return _write


@pytest.fixture
def arguments(
    tmp_path: Path,
    tiny_bert: str,
    tiny_llama: str,
    write: Callable,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., list[str]]:
    """The command line of a small run of a component, in ``tmp_path``."""
    monkeypatch.setenv("WANDB_MODE", "disabled")
    parts = {
        "unli": ("train.unli.Unli", unli_rows, tiny_bert),
        "relation": ("train.relation.Relation", relation_rows, tiny_bert),
        "lss": ("train.lss_tagger.LssTagger", lss_rows, tiny_bert),
        "adversary": ("train.adversary.Adversary", generation_rows, tiny_llama),
    }

    def _arguments(component: str, *more: str, run: str = "run", command: str = "fit") -> list[str]:
        module, rows, base = parts[component]
        file = write(component, rows())
        inputs = {
            "--model": module,
            "--model.base": base,
            "--model.max_length": "48",
            "--model.lr": "0.01",
            "--data": "train.data.RecordData",
            "--data.train": file,
            "--data.dev": file,
            "--data.batch_size": "4",
            "--runs": str(tmp_path / "runs"),
            "--name": run,
            "--export_to": str(tmp_path / "checkpoints" / run),
            "--trainer.accelerator": "cpu",
            "--trainer.precision": "32-true",
            "--trainer.enable_progress_bar": "false",
            "--trainer.enable_model_summary": "false",
            "--trainer.max_steps": "6",
            "--trainer.val_check_interval": "3",
            "--trainer.check_val_every_n_epoch": "null",
        }
        return [command, *[part for pair in inputs.items() for part in pair], *more]

    return _arguments
