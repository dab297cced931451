"""Tiny tokenizers, random models, and datasets of 84 short leads: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from transformers import (
    BertConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

TEXT = (
    "ada lovelace was a mathematician poet born in london paris . she wrote the first program is "
    "person exists tell me bio of he and his has name very note early later father ?"
)
LETTERS = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,;!?'-")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SIZE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}

TokenizerMaker = Callable[..., PreTrainedTokenizerFast]
ModelSaver = Callable[..., Path]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Keep bytes out of test ids: compressed bytes hold a time, so workers would disagree."""
    return argname if isinstance(val, bytes) else None


def _vocabulary(tokens: list[str]) -> dict[str, int]:
    return {token: index for index, token in enumerate([*SPECIAL, *dict.fromkeys(tokens)])}


def _fast(tokenizer: Tokenizer, pairs: bool) -> PreTrainedTokenizerFast:
    """An encoder's tokenizer frames pairs; a causal model's adds nothing."""
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


def make_word_tokenizer(pairs: bool) -> PreTrainedTokenizerFast:
    """Make a tokenizer of the words of ``TEXT``."""
    tokenizer = Tokenizer(models.WordPiece(_vocabulary(TEXT.split()), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _fast(tokenizer, pairs)


@pytest.fixture(scope="session")
def word_tokenizer() -> TokenizerMaker:
    return make_word_tokenizer


@pytest.fixture(scope="session")
def letter_tokenizer() -> TokenizerMaker:
    """Makes a tokenizer with one token per character, so that lengths vary."""

    def make(pairs: bool) -> PreTrainedTokenizerFast:
        # A causal model must be able to write spaces; an encoder reads words.
        spaces = [] if pairs else [" "]
        vocabulary = _vocabulary(LETTERS + spaces)
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
        steps = [pre_tokenizers.WhitespaceSplit()] if pairs else []
        steps.append(pre_tokenizers.Split(Regex("."), "isolated"))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
        tokenizer.decoder = decoders.Fuse()
        return _fast(tokenizer, pairs)

    return make


@pytest.fixture(scope="session")
def save_bert(tmp_path_factory: pytest.TempPathFactory) -> ModelSaver:
    """Saves a random two-layer BERT with its tokenizer."""

    def save(
        kind: type[PreTrainedModel], tokenizer: PreTrainedTokenizerFast, **config: object
    ) -> Path:
        folder = tmp_path_factory.mktemp("bert")
        torch.manual_seed(0)
        kind(BertConfig(vocab_size=len(tokenizer), **SIZE, **config)).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return save


@pytest.fixture(scope="session")
def save_llama(tmp_path_factory: pytest.TempPathFactory) -> ModelSaver:
    """Saves a random two-layer Llama with its tokenizer."""

    def save(tokenizer: PreTrainedTokenizerFast, **config: object) -> Path:
        folder = tmp_path_factory.mktemp("llama")
        torch.manual_seed(0)
        ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
        whole = LlamaConfig(vocab_size=len(tokenizer), **SIZE, **ids, **config)
        LlamaForCausalLM(whole).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return save


@pytest.fixture(scope="session")
def leads_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``data/leads`` of the people of ``tests/leads.jsonl``."""
    from data_builders.written.leads.leads import Leads

    source = Path(__file__).with_name("leads.jsonl")
    folder = tmp_path_factory.mktemp("leads")
    return Leads(folder, str(source), (4, 3, 3)).build().parent


@pytest.fixture(scope="session")
def lead_pairs_folder(leads_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``data/lead_pairs`` of ``leads_folder``."""
    from data_builders.written.lead_pairs import LeadPairs

    sizes = {"unli": (400, 120, 120), "lss": (150, 50, 50), "people": (20, 20, 20)}
    folder = tmp_path_factory.mktemp("lead_pairs")
    return LeadPairs(folder, str(leads_folder), phrased=0.5, seed=3, **sizes).build().parent
