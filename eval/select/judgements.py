"""Asking the entailment and UNLI models: each distinct pair once, all of a batch in one call."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from components.encoding import Pair
from eval.select.weights import normalise
from eval.stages import EntailmentModel, UnliModel, model_probabilities
from records import UserError


def relations(model: EntailmentModel, pairs: Iterable[Pair]) -> dict[Pair, np.ndarray]:
    """Probabilities of entailment, neutral and contradiction, shape (3,), of every pair.

    A text entails itself (up to :func:`~eval.select.weights.normalise`); the model is not asked.
    """
    return _ask(model.relations, pairs, np.array([1.0, 0.0, 0.0]))


def likelihoods(model: UnliModel, pairs: Iterable[Pair]) -> dict[Pair, np.ndarray]:
    """p(hypothesis | premise), shape (), of every pair; 1 where both are the same text."""
    return _ask(model.likelihood, pairs, np.array(1.0))


def _ask(
    ask: Callable[[Sequence[Pair]], np.ndarray], pairs: Iterable[Pair], of_itself: np.ndarray
) -> dict[Pair, np.ndarray]:
    known: dict[Pair, np.ndarray] = dict.fromkeys(pairs, of_itself)
    todo = [pair for pair in known if normalise(pair[0]) != normalise(pair[1])]
    if not todo:
        return known
    answers = model_probabilities(ask, todo, *of_itself.shape)
    unanswered = [
        pair for pair, row in zip(todo, answers, strict=True) if not np.isfinite(row).all()
    ]
    if unanswered:
        raise UserError(
            f"{type(getattr(ask, '__self__', ask)).__name__}: no answer for {len(unanswered)} of "
            f"{len(todo)} pairs, e.g. {unanswered[0]}; claims are compared only where all are "
            "judged, so take a trained model"
        )
    known.update(zip(todo, answers, strict=True))
    return known


class CachedJudgements:
    """A model that is asked for each pair once; its answers stay in memory.

    For many selections of the same claims, e.g. under many settings.

    Args:
        model: an entailment model, a UNLI model, or both in one.
    """

    def __init__(self, model: EntailmentModel | UnliModel):
        self.model = model
        self._relations: dict[Pair, np.ndarray] = {}
        self._likelihoods: dict[Pair, np.ndarray] = {}

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        """As the model's, shape (n, 3)."""
        _fill(self._relations, self.model.relations, pairs)
        return np.array([self._relations[pair] for pair in pairs]).reshape(-1, 3)

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        """As the model's, shape (n,)."""
        _fill(self._likelihoods, self.model.likelihood, pairs)
        return np.array([self._likelihoods[pair] for pair in pairs])


def _fill(
    known: dict[Pair, np.ndarray],
    ask: Callable[[Sequence[Pair]], np.ndarray],
    pairs: Sequence[Pair],
) -> None:
    new = [pair for pair in dict.fromkeys(pairs) if pair not in known]
    if new:
        known.update(zip(new, np.asarray(ask(new), dtype=float), strict=True))
