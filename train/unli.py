"""UNLI: the probability of a hypothesis given a premise (Chen et al. 2020).

The loss is the binary cross-entropy of one logit ``s`` per pair against the subjective probability
``y``: ``-y log σ(s) - (1 - y) log(1 - σ(s))``. Core (2407.03572) computes its informativeness
weights from the predicted ``p(hypothesis | premise)``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jsonargparse.typing import PositiveInt
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from components.calibration import fit_platt
from components.measures import Measures, unli_measures
from records import UnliPair
from train.module import Item, rows_of
from train.pair_classifier import PairClassifier

LABELS = ["probability"]


class Unli(PairClassifier):
    """A sequence classifier with one logit, whose sigmoid is p(hypothesis | premise).

    Training truncates a premise at ``max_length``. On dev and in inference, a longer premise is
    read in windows; the largest probability counts.

    ``mark_new`` must equal that of the relation model used as ``base``.
    """

    record_type = UnliPair
    component = "unli"
    labels = LABELS
    fit_scaling = staticmethod(fit_platt)
    intended = (
        "Predicts p(hypothesis | premise): the sigmoid of its single logit divided by the "
        "temperature, plus the shift."
    )
    limits = (
        "Its labels are shares from annotators or a knowledge base, not real-world frequencies: it "
        "ranks hypotheses better than it estimates probabilities. It does not check the premise, "
        "reads long premises in windows, whose largest probability counts, and is calibrated only "
        "for text similar to its dev split."
    )

    def __init__(self, max_length: PositiveInt = 128, monitor: str = "dev/pearson", **shared: Any):
        super().__init__(max_length, monitor, **shared)

    def target_of(self, record: UnliPair) -> float:
        return record.label

    def losses(self, logits: Tensor, target: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(logits, target, reduction="none")

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        groups = [record.premise for record in rows_of(records, self.judged(items, outputs)[0])]
        probability_pairs = self.probabilities_of(records, items, outputs)
        return unli_measures(*probability_pairs, groups, resamples=0)

    def probabilities_of(
        self, records: Sequence, items: Sequence[Item], outputs: Sequence
    ) -> tuple[np.ndarray, np.ndarray]:
        items, predicted = self.judged(items, outputs)
        return predicted, np.asarray([item.target for item in items], dtype=np.float64)
