"""The relation model: entailment, neutral or contradiction between a premise and a hypothesis.

Used for document entailment and exclusion in Core (2407.03572, section 3), as a verifier, and for
the factors of FactReasoner (2502.18573, section 3.1).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jsonargparse.typing import PositiveInt
from torch import Tensor
from torch.nn.functional import log_softmax, one_hot

from components.calibration import fit_classes
from components.checkpoint import RELATIONS
from components.measures import Measures, relation_measures
from records import RelationPair
from train.checks import monitored_rows
from train.module import Item, rows_of
from train.pair_classifier import PairClassifier

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


class Relation(PairClassifier):
    """A sequence classifier over entailment, neutral, contradiction.

    Training truncates a premise at ``max_length``. On dev and in inference, a premise longer than
    ``chunk_words`` or ``max_length`` is split into windows; the one with the largest entailment
    probability counts.

    Args:
        chunk_words: words per window of a long premise on dev and in inference; null: one window.
            Windows overlap by half and each is a model call: a premise of n words takes about
            2 n / chunk_words calls per hypothesis.
        monitor: dev measure for selecting the best weights. Accuracy and macro-F1 are undefined on
            two-class dev data (``not_entailment``); ``dev/entailment_auroc`` replaces them there.
    """

    record_type = RelationPair
    component = "relation"
    labels = RELATIONS
    fit_scaling = staticmethod(fit_classes)
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
        monitor: str = "dev/macro_f1",
        **shared: Any,
    ):
        super().__init__(max_length, monitor, **shared)
        self.chunk_words = chunk_words

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

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        items, predicted = self.judged(items, outputs)
        rows = rows_of(records, items)
        groups = [record.premise for record in rows]
        return relation_measures(predicted, [r.label for r in rows], groups, resamples=0)

    def probabilities_of(
        self, records: Sequence, items: Sequence[Item], outputs: Sequence
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predicted probability of entailment and its target: 0, 1 or a soft label's share."""
        items, predicted = self.judged(items, outputs)
        return predicted[:, 0], np.asarray([item.target[0] for item in items], dtype=np.float64)
