"""The NLI verifier: a claim is supported when some passage entails it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.encoding import Pair
from eval.stages import EntailmentModel, called, entails, probabilities
from eval.verify.claim_by_claim import ByPassage
from records import Claim, Passage, Verdict

_UNTOLD = "the relation to a passage could not be told"


@dataclass(eq=False)
class NLI(ByPassage):
    """Judge each claim against its own passages with a relation model.

    The passage with the highest entailment probability decides: entailment is likelier than both
    other relations (or reaches ``threshold``) → supported; else contradiction is for some passage →
    contradicted; else not_supported. A relation that the model could not tell (a row of NaN, from
    a prompted model) cannot support: a claim that no other passage supports is then ``failed``.

    Args:
        entailment: the relation model.
        threshold: entailment probability that counts as support; without it entailment must
            be likelier than both other relations.
        title_in_premise: put the passage's title before its text.
    """

    assessor = "nli"

    entailment: EntailmentModel
    threshold: float | None = None
    title_in_premise: bool = False

    def answers(self, pairs: Sequence[Pair]) -> np.ndarray:
        return probabilities(self.entailment.relations, pairs, 3)

    def decide(
        self, claim: Claim, passages: Sequence[Passage], answers: Sequence[np.ndarray]
    ) -> Verdict:
        known = [index for index, row in enumerate(answers) if not np.isnan(row).any()]
        if not known:
            return self.failed(claim, _UNTOLD)
        best = max(known, key=lambda index: answers[index][0])
        supported = bool(entails(answers[best], self.threshold))
        if not supported and len(known) < len(answers):
            return self.failed(claim, _UNTOLD)
        contradicted = any(called(row) == 2 for row in answers)
        label = "supported" if supported else "contradicted" if contradicted else "not_supported"
        return self.verdict(claim, label, p=float(answers[best][0]), evidence=[passages[best].id])
