"""LSS and LSS* by generation: T5 writes what a reference supports of a claim (2308.12157, A.3).

Reference and claim go in as one prompt, the human subsequence is the target. The LSS is decoded so
that it can only be a subsequence of the claim's words (``components/subsequence.py``), which the
paper's models do not guarantee; the LSS* may have words of its own and is decoded freely.
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
from components.encoding import encode_grounded, pad
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
    "Writes what a reference supports of a claim: the {what}. Its input is the prompt template of "
    "component.json with the reference, which is cut where it is too long, and the claim."
)
_SCRATCH = (
    " This model was trained from random weights, without any pretraining: it shows the path from "
    "data to checkpoint to judgement and is not to be used on texts unlike its training data."
)


class Decoding(TypedDict, total=False):
    """How outputs are written; see ``LssDecoder``."""

    num_beams: PositiveInt
    max_new_tokens: PositiveInt
    constrained: bool


@dataclass(frozen=True)
class Target:
    """What the loss and the decoder need of one annotation.

    Attributes:
        ids: the annotated LSS with the end token.
        claim: the claim.
        decode: whether the claim is decoded with this item; once a claim, not once an annotation.
        whole: whether the LSS is the whole claim.
        ratio: its words by the claim's.
    """

    ids: list[int]
    claim: str
    decode: bool
    whole: bool
    ratio: float


class LssSeq2Seq(ComponentModule):
    """A sequence-to-sequence model that writes an LSS or LSS*.

    Every annotation of a claim is a target of its own with weight 1/k, k being the number of its
    annotations, so each claim counts once; equal annotations are one target with their joint
    weight. The loss is the mean negative log-likelihood of target tokens under these weights.

    During ``fit``, validation gives the perplexity and token accuracy of the targets alone. What is
    written is judged (word F1, ROUGE, BLEU, correlation with ratings) on export and by
    ``validate``, ``test`` and ``predict``, for the ``--data.dev_rows`` rows of each dev file.

    Args:
        base: base model with safetensors weights: hub id, folder, or ``package:NAME/PATH``. Null
            starts from random weights with ``tokenizer`` and ``t5``.
        tokenizer: whose tokenizer a model from random weights takes: hub id, folder, or
            ``package:NAME/PATH``.
        t5: sizes of a model from random weights: fields of transformers' ``T5Config``.
        star: LSS* instead of LSS: the targets are the annotations' ``lss_star``.
        prompt_template: the input, with ``{reference}`` and ``{claim}``.
        max_length: input length in tokens; the reference is cut, the claim stays whole.
        decoding: num_beams (5), max_new_tokens (128; also the longest target) and constrained
            (true for LSS, false for LSS*).
        balance: drop eliminates targets that are the whole claim (section 4.2, the paper's choice);
            repeat repeats targets until every tenth of LSS length by claim length has as many as
            the fullest (A.5's super version); none leaves the training data as it is.
        eliminated: how many targets ``drop`` eliminates (the paper: 2,000 of 12,000); 0 for as many
            as it takes to have as many of them as of others.
    """

    record_type = LssExample
    batch_size, eval_batch_size = 16, 32
    architecture = "seq2seq"
    described = ("prompt_template", "decoding")
    limits = (
        "A fluent output may drop or keep a word for no reason in the reference; nothing is said "
        "about why a word is dropped (contradicted, or not mentioned). The end of a long reference "
        "is not read."
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
        what = "longest supported subsequence of its words" + (", freely worded" if star else "")
        self.intended = _INTENDED.format(what=what) + ("" if base else _SCRATCH)
        self.prompt_template = prompt_template
        self.decoding = {"num_beams": 5, "max_new_tokens": 128, "constrained": not star}
        self.decoding |= decoding or {}
        if star and self.decoding["constrained"]:
            raise UserError("--model.decoding: LSS* is free; leave out constrained, or star")
        self.balance, self.eliminated = balance, eliminated
        if eliminated and balance != "drop":
            raise UserError("--model.eliminated goes with --model.balance drop")
        for place in ("{reference}", "{claim}"):
            if place not in prompt_template:
                raise UserError(f"--model.prompt_template lacks {place}")

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        with self.loading():
            found = load_tokenizer(self.tokenizer_base, self.revision)
        if found.eos_token is None and found.sep_token is not None:
            found.eos_token = found.sep_token  # BERT's ends an input; here it ends an output too
        if found.eos_token is None or found.pad_token is None:
            raise UserError(
                f"{self.tokenizer_base}: its tokenizer has no end or no pad token; give another as "
                "--model.tokenizer or set them in tokenizer_config.json"
            )
        return found

    @cached_property
    def decoder(self) -> LssDecoder:
        """Writes and reads outputs, as ``eval`` does."""
        return LssDecoder(self.tokenizer, **self.decoding)

    def configure_model(self) -> None:
        if self.model is None:
            with self.loading():
                if self.t5 is None:
                    self.model = load_seq2seq(self.base, self.revision)
                else:
                    self.model = random_t5(self.tokenizer, self.t5)
            self.model.train()

    def encode(self, records: Sequence[LssExample], train: bool) -> list[Item]:
        """One item a distinct annotation; targets are ``Target``.

        Annotations that are no subsequence of the claim are no targets of a constrained model.
        Rows that are left without any are not trained on, but judged. Both are counted on standard
        output.
        """
        items, lost, without, cut = [], 0, 0, 0
        for row, record in enumerate(tqdm(records, "tokens", unit="row", disable=None)):
            ids = encode_grounded(
                self.tokenizer, self.prompt_template, record.reference, record.claim,
                self.max_length,
            )  # fmt: skip
            if ids is None:
                raise self.too_long(row, record.claim)
            texts = self._targets(record)
            total = sum(texts.values())
            lost, without = lost + len(record.annotations) - total, without + (not total)
            if not texts and not train:
                texts, total = Counter({"": 0}), 1  # weight 0: decoded, not in the perplexity
            for place, (text, count) in enumerate(texts.items()):
                target, is_cut = self._target_ids(text)
                cut += is_cut
                whole, ratio = text == _whole(record, self.star), length_ratio(record.claim, text)
                made = Target(target, record.claim, place == 0, whole, ratio)
                items.append(Item(row, {"input_ids": ids}, made, weight=count / total))
        split = "train" if train else "dev"
        print(
            f"{self.component} {split}: {len(items)} targets of {len(records)} rows; {lost} "
            f"annotations left out, {without} rows without any; {cut} targets cut at "
            f"{self.decoding['max_new_tokens']} tokens"
        )
        if not any(item.weight for item in items):
            field = "lss_star" if self.star else "lss that is a subsequence of its claim"
            raise UserError(f"no annotation has an {field}; check the field annotations")
        return self._balanced(items) if train else items

    def _targets(self, record: LssExample) -> Counter[str]:
        if self.star:
            return Counter(a.lss_star for a in record.annotations if a.lss_star is not None)
        words, keeps, _ = keep_targets(record)
        return Counter(join_words(record.claim, words, keep) for keep in keeps)

    def _target_ids(self, text: str) -> tuple[list[int], bool]:
        ids = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        longest = self.decoding["max_new_tokens"]
        return [*ids, self.tokenizer.eos_token_id][:longest], len(ids) >= longest

    def _balanced(self, items: list[Item]) -> list[Item]:
        whole = [item.target.whole for item in items]
        print(f"{self.component} train: {sum(whole)} targets are the whole claim")
        if self.balance == "none":
            return items
        generator = np.random.default_rng(run_seed())
        if self.balance == "drop":
            try:
                places = drop_full_length(whole, self.eliminated, generator)
            except ValueError as error:
                raise UserError(f"--model.eliminated: {error}; give fewer, or 0") from None
        else:
            places = balance_lengths([item.target.ratio for item in items], generator)
        print(f"{self.component} train: {len(places)} targets (balance {self.balance})")
        return [items[place] for place in places]

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        """``target`` of shape (items, longest target), and what the decoder needs."""
        return {
            "target": pad([item.target.ids for item in items], _IGNORE),
            "claims": [item.target.claim for item in items],
            "decode": [item.target.decode for item in items],
        }

    def model_step(self, batch: dict) -> tuple[Loss, list[np.ndarray]]:
        """Weighted mean negative log-likelihood of target tokens.

        An item's output is its target's summed negative log-likelihood in nats, its tokens, how
        many of them are the likeliest ones (in evaluation), and the token ids that were decoded,
        if any.
        """
        target = batch["target"]
        # A cache would copy all keys and values, and activation checkpointing would fill it twice.
        output = self.model(**batch["inputs"], labels=target, use_cache=False)
        logits = output.logits.float()  # (items, tokens, vocabulary)
        losses = cross_entropy(
            logits.transpose(1, 2), target, ignore_index=_IGNORE, reduction="none"
        )  # (items, tokens), 0 where padded
        known = target != _IGNORE
        sums, counts = losses.sum(dim=1), known.sum(dim=1)
        weight = batch["weight"].to(sums)
        loss = Loss((weight * sums).sum(), (weight * counts).sum())
        # Over a large vocabulary this costs as much as a layer; training needs only the loss.
        likeliest = target if self.training else logits.argmax(dim=-1)
        hits = ((likeliest == target) & known).sum(dim=1)
        numbers = torch.stack([sums.detach(), counts, hits], dim=1)  # (items, 3)
        written = self._decode(batch)
        outputs = zip(to_numpy(numbers).astype(np.float64), written, strict=True)
        return loss, [np.concatenate([numbers, ids]) for numbers, ids in outputs]

    def _decode(self, batch: dict) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in batch["claims"]]
        chosen = [place for place, decode in enumerate(batch["decode"]) if decode]
        if self.training or self._inside_fit() or not chosen:
            return found
        inputs = {name: tensor[chosen] for name, tensor in batch["inputs"].items()}
        claims = [batch["claims"][place] for place in chosen]
        written = self.decoder.generate(self.model, inputs, claims)
        for place, ids in zip(chosen, written, strict=True):
            found[place] = ids
        return found

    def _inside_fit(self) -> bool:
        trainer = self._trainer
        if trainer is None or trainer.state.fn != "fit":
            return False
        return trainer.validating or trainer.sanity_checking

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
        found = target_measures(*numbers.T, weight, groups, resamples=0)
        rows, texts = self._texts(records, items, outputs)
        return found | (lss_measures(rows, texts, self.star, resamples=0) if rows else {})

    def predictions(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> list:
        rows, texts = self._texts(records, items, outputs)
        return [
            {"claim": row.claim, self.component: text}
            for row, text in zip(rows, texts, strict=True)
        ]


def _whole(record: LssExample, star: bool) -> str:
    if star:
        return record.claim
    words, _, _ = keep_targets(record)
    return join_words(record.claim, words, [True] * len(words))


def _check_base(base: str | None, tokenizer: str | None, t5: dict | None) -> None:
    if base is None and (tokenizer is None or t5 is None):
        raise UserError(
            "--model.base null starts from random weights: give --model.tokenizer and --model.t5"
        )
    if base is not None and (tokenizer is not None or t5 is not None):
        raise UserError(
            f"base model {base} brings its tokenizer and sizes: leave out --model.tokenizer and "
            "--model.t5, or give --model.base null"
        )
