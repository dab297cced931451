"""Models of ``gpu.py`` with random weights, random rows, and the FLOPs of rows.

Model FLOPs follow from the number of weights N of the linear layers, T of them trained:

    training   4 N + 2 T per token: 6 N if all are trained; frozen weights (LoRA) have no gradient
    forward    2 N per token

Each layer counts the tokens that it processes: target tokens for T5's decoder, but source tokens
for the keys and values of its cross-attention; completion tokens for Mistral's output layer; one
per row for a classification head. Attention adds 4 d per layer and pair of tokens in the forward
pass, with d the width of all heads, half of it if causal, and for DeBERTa 4 d 2 k per layer and
token (two scores against k position buckets per side). Training takes three times that.
"""

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

# RoBERTa counts positions from the id of its pad token, 1; used for all models.
SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
FRAME = 9  # maximum special and prompt tokens per row
POSITIONS = 512  # maximum length of the classifiers
TOY = {
    **{"vocab_size": 256, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2},
    **{"intermediate_size": 64, "num_key_value_heads": 1, "position_buckets": 16},
    **{"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2},
}


class Setting(NamedTuple):
    """A component's size and training settings in ``configs/train/paper``."""

    family: str  # model type in transformers
    auto: type
    module: Callable[..., ComponentModule]  # function of ``base`` and ``max_length``
    batch_size: int
    length: int
    sizes: dict[str, Any]
    engine: tuple[type[encoder.Encoder], str] | None = None  # and its method for pairs


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
            # Untied output layer (66M weights), unlike the default of T5Config.
            "vocab_size": 32128, "d_model": 2048, "d_kv": 64, "d_ff": 5120, "num_layers": 24,
            "num_heads": 32, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
        },
    ),
    # The paper uses batches of 32, with few rows of maximum length.
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
    """A word-level tokenizer (``w4``, ``w5``, …) with RoBERTa's special tokens."""
    words = {f"w{number}": number for number in range(len(SPECIAL), vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(SPECIAL | words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **{"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"},
        model_input_names=["input_ids", "attention_mask"],
    )


def rows_of(name: str, module: ComponentModule, count: int, seed: int) -> list[dict]:
    """Records of a component with ``max_length / 2`` to ``max_length`` tokens."""
    draw = random.Random(seed)
    numbers = range(len(SPECIAL), module.model.config.vocab_size)
    records = []
    for row in range(count):
        length = draw.randint(module.max_length // 2, module.max_length) - FRAME
        words = [f"w{number}" for number in draw.choices(numbers, k=length)]
        short = max(2, length // 8)
        claim, reference = " ".join(words[:short]), " ".join(words[short:])
        annotations = [{"lss": " ".join(words[: short // 2])}]
        by_component = {
            "unli": {"premise": reference, "hypothesis": claim, "label": row % 4 / 3},
            "relation": {"premise": reference, "hypothesis": claim, "label": RELATIONS[row % 3]},
            "lss": {"reference": reference, "claim": claim, "annotations": annotations},
            "adversary": {"topic": words[0], "text": " ".join(words[1:])},
        }
        records.append(by_component[name])
    return records


def build(name: str, options: argparse.Namespace, folder: Path) -> ComponentModule:
    """Create a module with random weights on the device, and write its tokenizer to the folder."""
    setting, paper = SETTINGS[name], options.size == "paper"
    length = options.length or (setting.length if paper else 48)
    module = setting.module(base=str(folder), max_length=length)
    labels = dict(enumerate(module.describe().get("labels", ())))
    if labels and length > POSITIONS:
        raise UserError(f"{name}: --length: expected at most {POSITIONS}, got {length}")
    sizes = setting.sizes | IDS | ({} if paper else TOY) | ({"id2label": labels} if labels else {})
    config = AutoConfig.for_model(setting.family, **sizes)
    tokenizer_of(config.vocab_size).save_pretrained(folder)
    try:
        with torch.device(options.device):
            model = setting.auto.from_config(config, attn_implementation=options.attention)
    except (ImportError, ValueError) as error:
        reason = re.split(r"\n|\. ", str(error).strip(" .\n"))[0]
        raise UserError(f"{name}: {reason}; omit --attention or change --only") from None
    if name == "adversary":  # as in configure_model
        model.config.use_cache = False
        model = get_peft_model(model, module.lora)
        if options.precision == "bf16-mixed":
            adversary.round_frozen_layers(model)
    module.model = model.train()
    if options.compile:
        module.model.compile(dynamic=True)
    return module


def work_of(module: ComponentModule, items: Sequence[Item]) -> tuple[Callable[[str], int], float]:
    """Tokens through the linear layer of a name, and FLOPs of attention in a forward pass."""
    config = module.model.config
    lengths = [item.length for item in items]
    inputs, pairs = sum(lengths), sum(length**2 for length in lengths)
    if module.architecture == "seq2seq":
        targets = [len(item.target.ids) for item in items]
        target_pairs = sum(t**2 / 2 + s * t for s, t in zip(lengths, targets, strict=True))
        pairs = config.num_layers * pairs + config.num_decoder_layers * target_pairs
        source = re.compile(r"^encoder\.|EncDecAttention\.[kv]$")
        attention = 4 * config.num_heads * config.d_kv * pairs
        return lambda name: inputs if source.search(name) else sum(targets), attention
    width = config.hidden_size * config.num_hidden_layers
    if module.architecture == "causal_lora":
        predicted = inputs - sum(item.target for item in items)
        return lambda name: predicted if name.endswith("lm_head") else inputs, 2 * width * pairs
    positions = 2 * config.position_buckets if getattr(config, "relative_attention", False) else 0
    prefix = f"{module.model.base_model_prefix}."
    attention = 4 * width * (pairs + positions * inputs)
    return lambda name: inputs if name.startswith(prefix) else len(items), attention


def model_flops(module: ComponentModule, items: Sequence[Item], train: bool) -> float:
    """FLOPs of rows by the formula above, in training or forward."""
    tokens, attention = work_of(module, items)
    total = attention * (3 if train else 1)
    for name, layer in module.model.named_modules():
        if isinstance(layer, torch.nn.Linear):
            per_token = (4 + 2 * layer.weight.requires_grad) if train else 2
            total += per_token * layer.weight.numel() * tokens(name)
    return total
