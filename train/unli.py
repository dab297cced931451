"""UNLI: how likely a hypothesis is given a premise (Chen et al. 2020).

One logit ``s`` a pair, trained by binary cross-entropy against the subjective probability ``y``:
``-y log σ(s) - (1 - y) log(1 - σ(s))``. Core (2407.03572) reads ``p(hypothesis | premise)`` from it
for its informativeness weights.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jsonargparse.typing import PositiveInt
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from components.calibration import fit_platt, probabilities
from components.measures import Measures, unli_measures
from records import UnjudgedUnliPair, UnliPair
from train.module import Item, relabelled, rows_of
from train.relation import PairClassifier

LABELS = ["probability"]


class Unli(PairClassifier):
    """A sequence classifier with one logit, whose sigmoid is p(hypothesis | premise).

    ``mark_new`` must be as in the relation model that it starts from.
    """

    record_type = UnliPair
    unjudged_type = UnjudgedUnliPair
    component = "unli"
    labels = LABELS
    intended = (
        "Judges how likely a hypothesis is given a premise: p(hypothesis | premise) is the sigmoid "
        "of its single logit divided by the temperature, plus the shift."
    )
    limits = (
        "Its labels are annotators' or a knowledge base's shares, not frequencies in the world: it "
        "orders hypotheses better than it states odds. It does not know whether a premise is true, "
        "cuts long premises, and is calibrated for text like its dev split only."
    )

    def __init__(self, max_length: PositiveInt = 128, monitor: str = "dev/pearson", **shared: Any):
        super().__init__(max_length, monitor, **shared)

    def target_of(self, record: UnliPair) -> float:
        return record.label

    def losses(self, logits: Tensor, target: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(logits, target, reduction="none")

    def calibrate(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> None:
        target = np.asarray([item.target for item in items])
        self.temperature, self.shift = fit_platt(np.asarray(outputs), target)

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        groups = [record.premise for record in rows_of(records, items)]
        judged = self.probabilities_of(records, items, outputs)
        return unli_measures(*judged, groups, resamples=0)

    def probabilities_of(
        self, records: Sequence, items: Sequence[Item], outputs: Sequence
    ) -> tuple[np.ndarray, np.ndarray]:
        predicted = probabilities(np.asarray(outputs), self.temperature, self.shift)
        return predicted, np.asarray([item.target for item in items], dtype=np.float64)

    def predictions(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> list:
        """Rows whose label is the probability: a smaller model can be trained on them."""
        predicted, _ = self.probabilities_of(records, items, outputs)
        return [
            relabelled(r, float(p)) for r, p in zip(rows_of(records, items), predicted, strict=True)
        ]
