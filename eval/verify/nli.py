"""The NLI verifier: a claim is supported when some passage entails it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.encoding import Pair
from eval.stages import EntailmentModel, call_relation, entails, model_probabilities, no_answer
from eval.verify.claim_by_claim import ByPassage
from records import Claim, Passage, Verdict

_NO_RELATION = "the model returned no relation to a passage"


@dataclass(eq=False)
class NLI(ByPassage):
    """Judge each claim against its own passages with a relation model.

    The claim is supported if the passage with the highest entailment probability entails it, else
    contradicted if contradiction is the likeliest relation of some passage, else not_supported; the
    passages that contradict it are in ``contradicted_by``, also of a supported claim. If
    the model returned no relation (a row of NaN) for some passage and no other passage supports the
    claim, the claim is ``failed``.

    Args:
        entailment: the relation model.
        threshold: minimum entailment probability for support; by default entailment must be more
            probable than both other relations.
        title_in_premise: prepend the passage's title to its text.
    """

    assessor = "nli"

    entailment: EntailmentModel
    threshold: float | None = None
    title_in_premise: bool = False

    def answers(self, pairs: Sequence[Pair]) -> np.ndarray:
        return model_probabilities(self.entailment.relations, pairs, 3)

    def decide(
        self, claim: Claim, passages: Sequence[Passage], answers: Sequence[np.ndarray]
    ) -> Verdict:
        answered = [index for index, row in enumerate(answers) if not np.isnan(row).any()]
        if not answered:
            return self.failed(claim, no_answer(self.entailment, _NO_RELATION))
        best = max(answered, key=lambda index: answers[index][0])
        supported = bool(entails(answers[best], self.threshold))
        if not supported and len(answered) < len(answers):
            return self.failed(claim, no_answer(self.entailment, _NO_RELATION))
        against = [index for index in answered if call_relation(answers[index]) == 2]
        label = "supported" if supported else "contradicted" if against else "not_supported"
        return self.verdict(
            claim,
            label,
            p=float(answers[best][0]),
            evidence=[passages[best].id],
            contradicted_by=[passages[index].id for index in against] or None,
        )
