"""Tiny random checkpoints of every component, written as `python -m train` would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import (
    BertForSequenceClassification,
    BertForTokenClassification,
    LlamaForCausalLM,
)

from components.base import random_t5
from components.checkpoint import Component, write_component

CheckpointMaker = Callable[..., Path]


@pytest.fixture(scope="session")
def make_checkpoint(save_bert: Callable[..., Path], letter_tokenizer: Callable) -> CheckpointMaker:
    """A function that writes a tiny random encoder checkpoint and returns its folder."""

    def make(component: str, labels: list[str], **fields: object) -> Path:
        tokens = component == "lss"
        folder = save_bert(
            BertForTokenClassification if tokens else BertForSequenceClassification,
            letter_tokenizer(pairs=True),
            max_position_embeddings=256,
            initializer_range=0.3,  # answers that differ visibly from pair to pair
            id2label=dict(enumerate(labels)),
            label2id={label: index for index, label in enumerate(labels)},
        )
        expected = {
            "component": component,
            "architecture": "token_classifier" if tokens else "sequence_classifier",
            "labels": labels,
            "max_length": 128,
            "base": {"id": "random"},
        }
        write_component(folder, Component(**(expected | fields)), card="# tiny\n")
        return folder

    return make


@pytest.fixture(scope="session")
def relation(make_checkpoint: CheckpointMaker) -> Path:
    """A relation model whose labels are not in the canonical order."""
    return make_checkpoint(
        "relation",
        ["contradiction", "entailment", "neutral"],
        temperature=1.5,
        chunk_words=8,
    )


@pytest.fixture(scope="session")
def unli(make_checkpoint: CheckpointMaker) -> Path:
    return make_checkpoint("unli", ["likelihood"], temperature=0.8)


@pytest.fixture(scope="session")
def lss(make_checkpoint: CheckpointMaker) -> Path:
    return make_checkpoint("lss", ["keep"], keep_threshold=0.5, chunk_words=8)


@pytest.fixture(scope="session")
def t5(letter_tokenizer: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random encoder-decoder that reads letters."""
    folder = tmp_path_factory.mktemp("t5")
    torch.manual_seed(0)
    tokenizer = letter_tokenizer(pairs=True)
    sizes = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2}
    random_t5(tokenizer, sizes | {"initializer_factor": 3.0}).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_llama(save_llama: Callable[..., Path], letter_tokenizer: Callable) -> Path:
    """A random base language model."""
    return save_llama(
        letter_tokenizer(pairs=False),
        num_key_value_heads=1,
        max_position_embeddings=256,
        initializer_range=0.2,
    )


@pytest.fixture(scope="session")
def adversary(
    tiny_llama: Path, letter_tokenizer: Callable, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A LoRA adapter that changes its base model visibly."""
    folder = tmp_path_factory.mktemp("adversary")
    torch.manual_seed(1)
    lora = LoraConfig(r=4, lora_alpha=8, init_lora_weights=False, task_type="CAUSAL_LM")
    model = get_peft_model(LlamaForCausalLM.from_pretrained(tiny_llama), lora)
    model.save_pretrained(folder)
    letter_tokenizer(pairs=False).save_pretrained(folder)
    component = Component(
        component="adversary",
        architecture="causal_lora",
        style="info",
        prompt_template="Tell me of {topic}.",
        max_length=96,
        base={"id": str(tiny_llama), "revision": None},
    )
    write_component(folder, component, card="# tiny\n")
    return folder
