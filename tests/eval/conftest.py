"""Tiny random checkpoints of every component, written as `python -m train` would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from components.checkpoint import Component, write_component

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
LETTERS = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,;!?'-")


def _tokenizer(pairs: bool) -> PreTrainedTokenizerFast:
    """One token a character, so that lengths vary and nothing has to be downloaded."""
    # A causal model must be able to write spaces; an encoder reads words.
    spaces = [] if pairs else [" "]
    vocabulary = {token: i for i, token in enumerate(SPECIAL + LETTERS + spaces)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    steps = [pre_tokenizers.WhitespaceSplit()] if pairs else []
    steps.append(pre_tokenizers.Split(Regex("."), "isolated"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.Fuse()
    if pairs:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
    names = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        eos_token="[SEP]",
        model_input_names=names if pairs else ["input_ids", "attention_mask"],
    )


CheckpointMaker = Callable[..., Path]


@pytest.fixture(scope="session")
def make_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> CheckpointMaker:
    """A function that writes a tiny random encoder checkpoint and returns its folder."""

    def make(component: str, labels: list[str], **fields: object) -> Path:
        folder = tmp_path_factory.mktemp(component)
        torch.manual_seed(0)
        tokens = component == "lss"
        config = BertConfig(
            vocab_size=len(SPECIAL) + len(LETTERS),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=256,
            initializer_range=0.3,  # answers that differ visibly from pair to pair
            id2label=dict(enumerate(labels)),
            label2id={label: index for index, label in enumerate(labels)},
        )
        kind = BertForTokenClassification if tokens else BertForSequenceClassification
        kind(config).save_pretrained(folder)
        _tokenizer(pairs=True).save_pretrained(folder)
        known = {
            "component": component,
            "architecture": "token_classifier" if tokens else "sequence_classifier",
            "labels": labels,
            "max_length": 128,
            "base": {"id": "random"},
        }
        write_component(folder, Component(**(known | fields)), card="# tiny\n")
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
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random base language model."""
    folder = tmp_path_factory.mktemp("llama")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(SPECIAL) + len(LETTERS) + 1,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=64,
        max_position_embeddings=256,
        initializer_range=0.2,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    _tokenizer(pairs=False).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def adversary(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LoRA adapter that changes its base model visibly."""
    folder = tmp_path_factory.mktemp("adversary")
    torch.manual_seed(1)
    lora = LoraConfig(r=4, lora_alpha=8, init_lora_weights=False, task_type="CAUSAL_LM")
    model = get_peft_model(LlamaForCausalLM.from_pretrained(tiny_llama), lora)
    model.save_pretrained(folder)
    _tokenizer(pairs=False).save_pretrained(folder)
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
