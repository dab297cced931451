"""Several relation models as one: a premise entails a claim only if all of them say so."""

from collections.abc import Sequence

import numpy as np

from components.encoding import Pair
from eval.stages import EntailmentModel, call_relation


class Joint:
    """A relation model that is as strict as the strictest of several.

    Models with different base models make different mistakes, so that fewer false claims convince
    all of them (2310.02743, section 4, for reward models). A model is asked only about pairs for
    which entailment is the most probable relation by those before it, so put the fastest first.

    Args:
        models: the models; the answer is that of the first for which another relation is most
            probable, or else the one with the lowest probability of entailment.
    """

    def __init__(self, models: list[EntailmentModel]):
        self.models = models

    def relations(self, pairs: Sequence[Pair]) -> np.ndarray:
        answers = np.array(self.models[0].relations(pairs), dtype=float)
        for model in self.models[1:]:
            entailed = np.flatnonzero(call_relation(answers) == 0)
            later = np.asarray(model.relations([pairs[place] for place in entailed]), dtype=float)
            later = later.reshape(-1, 3)
            # A pair that a later model cannot judge has no answer: its relation is not entailment.
            stricter = (call_relation(later) != 0) | (later[:, 0] < answers[entailed, 0])
            answers[entailed[stricter]] = later[stricter]
        return answers
