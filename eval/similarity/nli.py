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
    """Probability that the reference entails the candidate, by an entailment model.

    ``eval.models.checker.Checker`` loads FactCC and other two-class checkers. The model splits long
    references into windows; the maximum counts. A claim entails nearly all its subsequences, so
    for metric(claim, LSS) ``backward`` is more informative.

    Args:
        entailment: the entailment model.
        direction: ``forward``: the reference entails the candidate; ``backward``: the candidate
            entails the reference; ``mean`` of both.
    """

    entailment: EntailmentModel
    direction: Literal["forward", "backward", "mean"] = "forward"

    def score(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return probabilities of shape (n,)."""
        forward = [*pairs] if self.direction != "backward" else []
        backward = [(c, r) for r, c in pairs] if self.direction != "forward" else []
        table = self.entailment.relations([*forward, *backward])[:, 0]
        return np.mean(table.reshape(-1, len(pairs)), axis=0)
