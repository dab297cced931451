"""LSS and LSS* by generation: T5 writes the supported part of a claim (2308.12157, A.3).

The input is one prompt with reference and claim, the target is the human subsequence. Decoding of
an LSS is constrained to subsequences of the claim's words (``components/subsequence.py``), unlike
in the paper; an LSS* may add words and is decoded freely.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypedDict

import numpy as np
import torch
from jsonargparse.typing import ClosedUnitInterval, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch.nn.functional import cross_entropy
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from components.base import load_seq2seq, load_tokenizer, random_t5
from components.checkpoint import LSS_TEMPLATE
from components.encoding import grounded_windows, pad
from components.lengths import balance_lengths, drop_full_length, length_ratio
from components.measures import Measures, lss_measures, target_measures
from components.subsequence import LssDecoder
from components.words import join_words, keep_targets
from records import LssExample, UserError
from train.data import run_seed
from train.module import ComponentModule, Item, Loss, rows_of, to_numpy

Balance = Literal["none", "drop", "repeat"]
_IGNORE = -100
_INTENDED = (
    "Writes the part of a claim that a reference supports: the {output}. Its input is the prompt "
    "template of component.json with the claim and the reference, truncated if it is too long."
)
_SCRATCH = (
    " This model was trained from random weights, without pretraining, to demonstrate training and "
    "evaluation. Do not use it on texts unlike its training data."
)


class Decoding(TypedDict, total=False):
    """Options of ``LssDecoder``."""

    num_beams: PositiveInt
    max_new_tokens: PositiveInt
    constrained: bool


@dataclass(frozen=True)
class Target:
    """Target of one annotation: ``ids`` of its LSS, and ``ratio`` of LSS words to claim words.

    ``decode`` is true for one item per claim; ``whole`` if the LSS is the full claim.
    """

    ids: list[int]
    claim: str
    decode: bool
    whole: bool
    ratio: float


class LssSeq2Seq(ComponentModule):
    """A sequence-to-sequence model that writes an LSS or LSS*.

    Each of a claim's k annotations is a target with weight 1/k, so each claim has weight 1; equal
    annotations are merged with their joint weight. The loss is the weighted mean negative
    log-likelihood of target tokens.

    During ``fit``, validation computes only perplexity and token accuracy of the targets. Generated
    text is evaluated (word F1, ROUGE, BLEU, correlation with ratings) on export, on
    ``--data.dev_rows`` rows per dev file.

    Args:
        base: base model with safetensors weights: hub id, folder, or ``package:NAME/PATH``; null:
            random weights with ``tokenizer`` and ``t5``.
        tokenizer: tokenizer of a model with random weights: hub id, folder, or
            ``package:NAME/PATH``.
        t5: fields of transformers' ``T5Config`` for a model with random weights.
        star: train LSS* instead of LSS: the targets are the annotations' ``lss_star``.
        prompt_template: the input, with ``{reference}`` and ``{claim}``.
        max_length: input length in tokens; the reference is truncated, the claim is not.
        decoding: num_beams (5), max_new_tokens (128; also the longest target) and constrained
            (true for LSS, false for LSS*).
        balance: drop removes targets that equal the claim (section 4.2, as in the paper); repeat
            repeats targets until each tenth of LSS length / claim length is equally frequent (A.5,
            super version); none changes nothing.
        eliminated: number of targets removed by ``drop`` (the paper: 2,000 of 12,000); 0: until
            half of the targets equal the claim.
    """

    record_type = LssExample
    batch_size, eval_batch_size = 16, 32
    architecture = "seq2seq"
    described = ("prompt_template", "decoding")
    limits = (
        "Fluent outputs may drop or keep words regardless of the reference, and do not show why a "
        "word is dropped (contradicted or unmentioned). Long references are truncated."
    )
    judged_with = ("star",)

    def __init__(
        self,
        base: str | None = "google/t5-xl-lm-adapt",
        tokenizer: str | None = None,
        t5: dict[str, int | float | str] | None = None,
        star: bool = False,
        prompt_template: str = LSS_TEMPLATE,
        max_length: PositiveInt = 528,
        decoding: Decoding | None = None,
        balance: Balance = "none",
        eliminated: NonNegativeInt = 0,
        lr: NonNegativeFloat = 1e-4,
        weight_decay: NonNegativeFloat = 0.0,
        warmup_ratio: ClosedUnitInterval = 0.05,
        monitor: str = "dev/perplexity",
        **shared: Any,
    ):
        _check_base(base, tokenizer, t5)
        name = base or f"random T5 over the tokenizer of {tokenizer}"
        super().__init__(
            name, max_length, lr, monitor,
            weight_decay=weight_decay, warmup_ratio=warmup_ratio, **shared,
        )  # fmt: skip
        self.tokenizer_base = tokenizer or base
        self.t5, self.star = t5, star
        self.component = "lss_star" if star else "lss"
        output = "longest supported subsequence of its words" + (", freely worded" if star else "")
        self.intended = _INTENDED.format(output=output) + ("" if base else _SCRATCH)
        self.prompt_template = prompt_template
        self.decoding = {"num_beams": 5, "max_new_tokens": 128, "constrained": not star}
        self.decoding |= decoding or {}
        if star and self.decoding["constrained"]:
            raise UserError("--model.decoding: LSS* cannot be constrained; unset one of them")
        self.balance, self.eliminated = balance, eliminated
        if eliminated and balance != "drop":
            raise UserError("--model.eliminated requires --model.balance drop")
        for placeholder in ("{reference}", "{claim}"):
            if placeholder not in prompt_template:
                raise UserError(f"--model.prompt_template lacks {placeholder}")

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        with self.loading():
            tokenizer = load_tokenizer(self.tokenizer_base, self.revision)
        if tokenizer.eos_token is None and tokenizer.sep_token is not None:
            tokenizer.eos_token = tokenizer.sep_token  # BERT has only a separator
        if tokenizer.eos_token is None or tokenizer.pad_token is None:
            raise UserError(
                f"{self.tokenizer_base}: the tokenizer has no end or pad token; set another "
                "--model.tokenizer or add them in tokenizer_config.json"
            )
        return tokenizer

    @cached_property
    def decoder(self) -> LssDecoder:
        """The decoder, as in ``eval``."""
        return LssDecoder(self.tokenizer, **self.decoding)

    def setup(self, stage: str) -> None:
        """Refuse fp16, in which activations and updates of T5 overflow."""
        if self.trainer.precision == "16-true":
            raise UserError(
                "--trainer.precision 16-true: T5 diverges in fp16; set bf16-mixed or 32-true"
            )
        super().setup(stage)

    def configure_model(self) -> None:
        if self.model is None:
            with self.loading():
                if self.t5 is None:
                    self.model = load_seq2seq(self.base, self.revision)
                else:
                    self.model = random_t5(self.tokenizer, self.t5)
            self.model.train()

    def encode(self, records: Sequence[LssExample], train: bool) -> list[Item]:
        """One item per distinct annotation, with a ``Target``.

        With constrained decoding, annotations that are not a subsequence of the claim are skipped
        (the paper's T5 is not constrained, and trains on all). Rows without
        targets are skipped in training but evaluated. Prints both counts and that of cut
        references.
        """
        items, cut, skipped, unusable, truncated = [], [], 0, 0, 0
        for row, record in enumerate(tqdm(records, "tokens", unit="row", disable=None)):
            windows = grounded_windows(
                self.tokenizer, self.prompt_template, record.reference, record.claim,
                self.max_length,
            )  # fmt: skip
            ids = next(windows, None)
            if ids is None:
                raise self.too_long_error(row, record.claim)
            if next(windows, None) is not None:
                cut.append(record.claim)
            texts = self._targets(record)
            total = sum(texts.values())
            skipped, unusable = skipped + len(record.annotations) - total, unusable + (not total)
            if not texts and not train:
                texts, total = Counter({"": 0}), 1  # weight 0: decoded, not in the perplexity
            for number, (text, count) in enumerate(texts.items()):
                target_ids, is_truncated = self._target_ids(text)
                truncated += is_truncated
                whole = text == _full_target(record, self.star)
                ratio = length_ratio(record.claim, text)
                target = Target(target_ids, record.claim, number == 0, whole, ratio)
                items.append(Item(row, {"input_ids": ids}, target, weight=count / total))
        self.report_cut_rows(cut, len(records))
        split = "train" if train else "dev"
        print(
            f"{self.component} {split}: {len(items)} targets of {len(records)} rows; skipped "
            f"{skipped} annotations; {unusable} rows without usable annotation; {truncated} "
            f"targets truncated at {self.decoding['max_new_tokens']} tokens"
        )
        if not any(item.weight for item in items):
            field = "lss_star" if self.star else "lss that is a subsequence of its claim"
            raise UserError(f"no annotation has an {field}; check the field annotations")
        return self._balance_targets(items) if train else items

    def _targets(self, record: LssExample) -> Counter[str]:
        if self.star:
            return Counter(a.lss_star for a in record.annotations if a.lss_star is not None)
        if not self.decoding["constrained"]:
            return Counter(a.lss for a in record.annotations)
        words, keeps, _ = keep_targets(record)
        return Counter(join_words(record.claim, words, keep) for keep in keeps)

    def _target_ids(self, text: str) -> tuple[list[int], bool]:
        ids = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        longest = self.decoding["max_new_tokens"]
        return [*ids, self.tokenizer.eos_token_id][:longest], len(ids) >= longest

    def _balance_targets(self, items: list[Item]) -> list[Item]:
        is_whole = [item.target.whole for item in items]
        print(f"{self.component} train: {sum(is_whole)} targets equal the claim")
        if self.balance == "none":
            return items
        generator = np.random.default_rng(run_seed())
        if self.balance == "drop":
            try:
                indices = drop_full_length(is_whole, self.eliminated, generator)
            except ValueError as error:
                raise UserError(f"--model.eliminated: {error}; lower it or set 0") from None
        else:
            indices = balance_lengths([item.target.ratio for item in items], generator)
        print(f"{self.component} train: {len(indices)} targets (balance {self.balance})")
        return [items[index] for index in indices]

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        """``target`` of shape (items, longest target), and inputs of the decoder."""
        return {
            "target": pad([item.target.ids for item in items], _IGNORE),
            "claims": [item.target.claim for item in items],
            "decode": [item.target.decode for item in items],
        }

    def model_step(self, batch: dict) -> tuple[Loss, list[np.ndarray]]:
        """Weighted mean negative log-likelihood of target tokens.

        The output of an item is the target's summed negative log-likelihood in nats, its number of
        tokens, the number of correct argmax tokens (in evaluation), and the decoded token ids.
        """
        target = batch["target"]
        # A cache would copy all keys and values; activation checkpointing would fill it twice.
        output = self.model(**batch["inputs"], labels=target, use_cache=False)
        logits = output.logits.float()  # (items, tokens, vocabulary)
        losses = cross_entropy(
            logits.transpose(1, 2), target, ignore_index=_IGNORE, reduction="none"
        )  # (items, tokens), 0 where padded
        mask = target != _IGNORE
        sums, counts = losses.sum(dim=1), mask.sum(dim=1)
        weight = batch["weight"].to(sums)
        loss = Loss((weight * sums).sum(), (weight * counts).sum())
        # With a large vocabulary, argmax costs as much as a layer; training needs only the loss.
        likeliest = target if self.training else logits.argmax(dim=-1)
        hits = ((likeliest == target) & mask).sum(dim=1)
        numbers = torch.stack([sums.detach(), counts, hits], dim=1)  # (items, 3)
        written = self._decode(batch)
        outputs = zip(to_numpy(numbers).astype(np.float64), written, strict=True)
        return loss, [np.concatenate([numbers, ids]) for numbers, ids in outputs]

    def _decode(self, batch: dict) -> list[list[int]]:
        token_ids: list[list[int]] = [[] for _ in batch["claims"]]
        chosen = [index for index, decode in enumerate(batch["decode"]) if decode]
        if self.training or self._is_validating() or not chosen:
            return token_ids
        inputs = {name: tensor[chosen] for name, tensor in batch["inputs"].items()}
        claims = [batch["claims"][index] for index in chosen]
        written = self.decoder.generate(self.model, inputs, claims)
        for index, ids in zip(chosen, written, strict=True):
            token_ids[index] = ids
        return token_ids

    def _is_validating(self) -> bool:
        trainer = self._trainer
        return trainer is not None and (trainer.validating or trainer.sanity_checking)

    def _texts(
        self, records: Sequence[LssExample], items: Sequence[Item], outputs: Sequence[np.ndarray]
    ) -> tuple[list[LssExample], list[str]]:
        written = [
            (records[item.row], output[3:].astype(int).tolist())
            for item, output in zip(items, outputs, strict=True)
            if len(output) > 3
        ]
        return [r for r, _ in written], [self.decoder.read(r.claim, ids)[1] for r, ids in written]

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        numbers = np.asarray([output[:3] for output in outputs])
        weight = np.asarray([item.weight for item in items])
        groups = [record.reference for record in rows_of(records, items)]
        result = target_measures(*numbers.T, weight, groups, resamples=0)
        rows, texts = self._texts(records, items, outputs)
        return result | (lss_measures(rows, texts, self.star, resamples=0) if rows else {})


def _full_target(record: LssExample, star: bool) -> str:
    if star:
        return record.claim
    words, _, _ = keep_targets(record)
    return join_words(record.claim, words, [True] * len(words))


def _check_base(base: str | None, tokenizer: str | None, t5: dict | None) -> None:
    if base is None and (tokenizer is None or t5 is None):
        raise UserError("--model.base null requires --model.tokenizer and --model.t5")
    if base is not None and (tokenizer is not None or t5 is not None):
        raise UserError(
            f"base model {base} has a tokenizer and sizes: omit --model.tokenizer and --model.t5 "
            "or set --model.base null"
        )
