"""The models of ``gpu.py`` with random weights, rows for them, and the FLOPs that rows need.

Model FLOPs are counted by formula from the weights N of the linear layers, T of them trained:

    training   4 N + 2 T a token: 6 N where all are trained; frozen ones (LoRA) need no gradient
    forward    2 N a token

A layer counts the tokens that must go through it: T5's decoder the target's, but the keys and
values of its cross-attention the source's; Mistral's output layer the completion's; a
classification head one a row. Attention adds 4 d a layer for every pair of tokens, forward, d being
the width of all heads, and half of that where it is causal; for DeBERTa also 4 d 2 k a layer and
token, for two scores against k position buckets a side. Training takes three times that.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from peft import get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerFast,
)
from transformers.optimization import Adafactor

from components.checkpoint import RELATIONS
from eval.models import encoder
from records import UserError
from train import adversary, lss_seq2seq, relation, unli
from train.module import ComponentModule, Item

# RoBERTa counts positions from its pad token's id, which is 1; the others take the same.
SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
FRAME = 9  # tokens of a row that are special or the prompt's, at most
POSITIONS = 512  # of the classifiers
TOY = {
    **{"vocab_size": 256, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2},
    **{"intermediate_size": 64, "num_key_value_heads": 1, "position_buckets": 16},
    **{"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2},
}


class Setting(NamedTuple):
    """A component's true size, and how ``configs/train/paper`` trains it."""

    family: str  # in transformers
    auto: type
    module: Callable[..., ComponentModule]  # of ``base`` and ``max_length``
    batch_size: int
    length: int
    sizes: dict[str, Any]
    engine: tuple[type[encoder.Encoder], str] | None = None  # and its method that judges pairs


LARGE = {
    **{"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16},
    **{"intermediate_size": 4096, "layer_norm_eps": 1e-5},
}
SETTINGS = {
    "unli": Setting(
        "roberta", AutoModelForSequenceClassification, unli.Unli, 16, 256,
        LARGE | {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1},
        (encoder.Unli, "likelihood"),
    ),
    "relation": Setting(
        "deberta-v2", AutoModelForSequenceClassification,
        partial(relation.Relation, chunk_words=None), 16, 512,
        LARGE | {
            "vocab_size": 128100, "type_vocab_size": 0, "relative_attention": True,
            "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True,
            "pos_att_type": ["p2c", "c2p"], "position_biased_input": False,
        },
        (encoder.Entailment, "relations"),
    ),
    "lss": Setting(
        "t5", AutoModelForSeq2SeqLM,
        partial(
            lss_seq2seq.LssSeq2Seq, lr=1e-3,
            optimizer=partial(Adafactor, scale_parameter=False, relative_step=False),
        ),
        4, 528,
        {
            # Its output layer's weights are its own (66M), those of a new T5Config the input's.
            "vocab_size": 32128, "d_model": 2048, "d_kv": 64, "d_ff": 5120, "num_layers": 24,
            "num_heads": 32, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
        },
    ),
    # The paper's configuration has batches of 32, of which few rows are as long as they may be.
    "adversary": Setting(
        "mistral", AutoModelForCausalLM,
        partial(
            adversary.Adversary, chat=False, r=8, alpha=16, dropout=0.1,
            target_modules=["q_proj", "k_proj"],
        ),
        4, 768,
        {
            "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
            "sliding_window": None,
        },
    ),
}  # fmt: skip


def tokenizer_of(vocabulary: int) -> PreTrainedTokenizerFast:
    """A tokenizer of whole words, ``w4`` and so on, that frames inputs as RoBERTa's does."""
    words = {f"w{number}": number for number in range(len(SPECIAL), vocabulary)}
    made = Tokenizer(models.WordLevel(SPECIAL | words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        **{"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"},
        model_input_names=["input_ids", "attention_mask"],
    )


def rows_of(name: str, module: ComponentModule, count: int, seed: int) -> list[dict]:
    """Records of a component, of half of ``max_length`` to ``max_length`` tokens each."""
    draw = random.Random(seed)
    numbers = range(len(SPECIAL), module.model.config.vocab_size)
    found = []
    for row in range(count):
        left = draw.randint(module.max_length // 2, module.max_length) - FRAME
        words = [f"w{number}" for number in draw.choices(numbers, k=left)]
        short = max(2, left // 8)
        head, rest = " ".join(words[:short]), " ".join(words[short:])
        annotations = [{"lss": " ".join(words[: short // 2])}]
        made = {
            "unli": {"premise": rest, "hypothesis": head, "label": row % 4 / 3},
            "relation": {"premise": rest, "hypothesis": head, "label": RELATIONS[row % 3]},
            "lss": {"reference": rest, "claim": head, "annotations": annotations},
            "adversary": {"topic": words[0], "text": " ".join(words[1:])},
        }
        found.append(made[name])
    return found


def build(name: str, options: argparse.Namespace, folder: Path) -> ComponentModule:
    """A module with random weights on the device; its tokenizer is written to the folder.

    Raises:
        UserError: the architecture has no such attention, a package for it is missing, or rows
            are too long.
    """
    setting, paper = SETTINGS[name], options.size == "paper"
    length = options.length or (setting.length if paper else 48)
    module = setting.module(base=str(folder), max_length=length)
    labels = dict(enumerate(module.describe().get("labels", ())))
    if labels and length > POSITIONS:
        raise UserError(f"{name}: --length {length}; it has {POSITIONS} positions")
    sizes = setting.sizes | IDS | ({} if paper else TOY) | ({"id2label": labels} if labels else {})
    config = AutoConfig.for_model(setting.family, **sizes)
    tokenizer_of(config.vocab_size).save_pretrained(folder)
    try:
        with torch.device(options.device):
            model = setting.auto.from_config(config, attn_implementation=options.attention)
    except (ImportError, ValueError) as error:
        reason = re.split(r"\n|\. ", str(error).strip(" .\n"))[0]
        raise UserError(f"{name}: {reason}; leave --attention out or change --only") from None
    if name == "adversary":  # as its configure_model does with weights from disk
        model.config.use_cache = False
        model = get_peft_model(model, module.lora)
    module.model = model.train()
    if options.compile:
        module.model.compile(dynamic=True)
    return module


def work_of(module: ComponentModule, items: Sequence[Item]) -> tuple[Callable[[str], int], float]:
    """What rows ask of the module's model.

    Returns:
        How many tokens must go through the linear layer of a name, and the FLOPs of a forward
        pass's products of queries, keys and values.
    """
    config = module.model.config
    lengths = [item.length for item in items]
    inputs, pairs = sum(lengths), sum(length**2 for length in lengths)
    if module.architecture == "seq2seq":
        targets = [len(item.target.ids) for item in items]
        written = sum(t**2 / 2 + s * t for s, t in zip(lengths, targets, strict=True))
        pairs = config.num_layers * pairs + config.num_decoder_layers * written
        source = re.compile(r"^encoder\.|EncDecAttention\.[kv]$")
        attention = 4 * config.num_heads * config.d_kv * pairs
        return lambda name: inputs if source.search(name) else sum(targets), attention
    width = config.hidden_size * config.num_hidden_layers
    if module.architecture == "causal_lora":
        predicted = inputs - sum(item.target for item in items)
        return lambda name: predicted if name.endswith("lm_head") else inputs, 2 * width * pairs
    positions = 2 * config.position_buckets if getattr(config, "relative_attention", False) else 0
    inside = f"{module.model.base_model_prefix}."
    attention = 4 * width * (pairs + positions * inputs)
    return lambda name: inputs if name.startswith(inside) else len(items), attention


def model_flops(module: ComponentModule, items: Sequence[Item], train: bool) -> float:
    """FLOPs that rows need by the formula above, with the gradient or without."""
    tokens, attention = work_of(module, items)
    total = attention * (3 if train else 1)
    for name, layer in module.model.named_modules():
        if isinstance(layer, torch.nn.Linear):
            per_token = (4 + 2 * layer.weight.requires_grad) if train else 2
            total += per_token * layer.weight.numel() * tokens(name)
    return total
