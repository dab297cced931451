"""Faithfulness as entailment, as FactCC judges it (Kryściński et al. 2020, 1910.12840)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from components.encoding import Pair
from eval.similarity import Measure
from eval.stages import EntailmentModel


@dataclass(eq=False)
class Nli(Measure):
    """Probability that the reference entails the candidate, by any entailment model.

    FactCC itself and other two-class checkers come through ``eval.models.checker.Checker`` with
    their labels (``CORRECT``, ``INCORRECT``). The model cuts long references into windows, and the
    best one counts.

    A claim entails nearly every subsequence of it, so that metric(claim, LSS) hardly tells one LSS
    from another in this direction; whether the LSS entails the claim is what it lacks.

    Args:
        entailment: the model.
        direction: ``forward``: the reference entails the candidate; ``backward``: the candidate
            entails the reference; ``mean`` of both.
    """

    entailment: EntailmentModel
    direction: Literal["forward", "backward", "mean"] = "forward"

    def score(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Probabilities of shape (n,)."""
        forward = [*pairs] if self.direction != "backward" else []
        backward = [(c, r) for r, c in pairs] if self.direction != "forward" else []
        table = self.entailment.relations([*forward, *backward])[:, 0]
        return np.mean(table.reshape(-1, len(pairs)), axis=0)
