"""Query the entailment and UNLI models with distinct pairs in one batch."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from components.encoding import Pair
from eval.select.weights import normalise
from eval.stages import EntailmentModel, UnliModel, model_probabilities, no_answer
from records import UserError


def relations(
    model: EntailmentModel, pairs: Iterable[Pair], require_all: bool = True
) -> dict[Pair, np.ndarray]:
    """Map each pair to its probabilities of entailment, neutral and contradiction, shape (3,).

    Equal texts (up to :func:`~eval.select.weights.normalise`) entail each other without a query.

    Args:
        require_all: raise an error if a pair could not be judged; else it is NaN.
    """
    return _ask(model.relations, pairs, np.array([1.0, 0.0, 0.0]), require_all)


def likelihoods(
    model: UnliModel, pairs: Iterable[Pair], require_all: bool = True
) -> dict[Pair, np.ndarray]:
    """Map each pair to p(hypothesis | premise), shape (); 1 for equal texts, else as relations."""
    return _ask(model.likelihood, pairs, np.array(1.0), require_all)


def _ask(
    ask: Callable[[Sequence[Pair]], np.ndarray],
    pairs: Iterable[Pair],
    of_equal_texts: np.ndarray,
    require_all: bool,
) -> dict[Pair, np.ndarray]:
    by_pair: dict[Pair, np.ndarray] = dict.fromkeys(pairs, of_equal_texts)
    todo = [pair for pair in by_pair if normalise(pair[0]) != normalise(pair[1])]
    if not todo:
        return by_pair
    answers = model_probabilities(ask, todo, *of_equal_texts.shape)
    unanswered = [pair for pair, row in zip(todo, answers, strict=True) if np.isnan(row).any()]
    if unanswered and require_all:
        model = getattr(ask, "__self__", ask)
        premise, hypothesis = unanswered[0]
        raise UserError(
            f"{type(model).__name__}: no answer for {len(unanswered)} of {len(todo)} pairs, e.g. "
            f"({premise!r:.60}, {hypothesis!r:.60}): {no_answer(model, 'it failed')}; remove such "
            "claims or use another model"
        )
    by_pair.update(zip(todo, answers, strict=True))
    return by_pair


class CachedJudgements:
    """Cache an entailment or UNLI model's answers in memory, for several selections of claims."""

    def __init__(self, model: EntailmentModel | UnliModel):
        self.model = model
        self._relations: dict[Pair, np.ndarray] = {}
        self._likelihoods: dict[Pair, np.ndarray] = {}

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        _fill(self._relations, self.model.relations, pairs)
        return np.array([self._relations[pair] for pair in pairs]).reshape(-1, 3)

    def likelihood(self, pairs: Sequence[Pair]) -> np.ndarray:
        _fill(self._likelihoods, self.model.likelihood, pairs)
        return np.array([self._likelihoods[pair] for pair in pairs])


def _fill(
    cache: dict[Pair, np.ndarray],
    ask: Callable[[Sequence[Pair]], np.ndarray],
    pairs: Sequence[Pair],
) -> None:
    pairs_to_ask = [pair for pair in dict.fromkeys(pairs) if pair not in cache]
    if pairs_to_ask:
        cache.update(zip(pairs_to_ask, np.asarray(ask(pairs_to_ask), dtype=float), strict=True))
