"""Majority vote of a claim's passages: how many entail it, and how many contradict it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from components.encoding import Pair
from eval.stages import EntailmentModel, call_relation, model_probabilities, no_answer
from eval.verify.claim_by_claim import ByPassage
from records import Claim, Passage, UserError, Verdict
from records.types import VerdictLabel

_ENTAILMENT, _CONTRADICTION = 0, 2
# Clips priors, since 0 and 1 would outvote all other passages.
_MIN_PRIOR = 1e-6


@dataclass(eq=False)
class Majority(ByPassage):
    """Judge each claim by the majority of its passages' relations to it.

    A baseline for FactReasoner: the same relations without a graphical model. A passage votes by
    its likeliest relation. Neutral relations and ties do not vote. ``p`` is the share of votes for
    the claim, or 0.5 without votes. The claim is supported above 0.5, contradicted below 0.5, and
    undecided at 0.5.

    With ``by_prior`` votes are weighted by reliability. The verdicts are named ``by_prior``, and
    their log-odds are Σ ± ln(prior / (1 - prior)): Bayes' rule, if passages err independently and a
    vote against the claim asserts the opposite. Like FactReasoner, this baseline uses the priors.

    Args:
        entailment: the relation model.
        title_in_premise: prepend the passage's title to its text.
        by_prior: weight votes by the passages' ``prior``, which every passage must have.
    """

    assessor = "majority"

    entailment: EntailmentModel
    title_in_premise: bool = False
    by_prior: bool = False

    def __post_init__(self) -> None:
        self.name = "by_prior" if self.by_prior else "default"

    def answers(self, pairs: Sequence[Pair]) -> np.ndarray:
        return model_probabilities(self.entailment.relations, pairs, 3)

    def decide(
        self, claim: Claim, passages: Sequence[Passage], answers: Sequence[np.ndarray]
    ) -> Verdict:
        votes = [None if np.isnan(row).any() else int(call_relation(row)) for row in answers]
        if all(vote is None for vote in votes):
            reason = no_answer(self.entailment, "no relation to a passage could be judged")
            return self.failed(claim, reason)
        supporting = [p for p, vote in zip(passages, votes, strict=True) if vote == _ENTAILMENT]
        opposing = [p for p, vote in zip(passages, votes, strict=True) if vote == _CONTRADICTION]
        if self.by_prior:
            odds = math.fsum(map(_log_odds, supporting)) - math.fsum(map(_log_odds, opposing))
            p = float(scipy.special.expit(odds))
        else:
            p = len(supporting) / len(supporting + opposing) if supporting or opposing else 0.5
        label: VerdictLabel = "undecided"
        if p != 0.5:
            label = "supported" if p > 0.5 else "contradicted"
        voting = {passage.id for passage in supporting + opposing}
        evidence = [passage.id for passage in passages if passage.id in voting]
        return self.verdict(claim, label, p=p, evidence=evidence)


def _log_odds(passage: Passage) -> float:
    if passage.prior is None:
        raise UserError(
            f"by_prior: passage {passage.id!r} has no prior; add it or disable by_prior"
        )
    p = min(max(passage.prior, _MIN_PRIOR), 1 - _MIN_PRIOR)
    return math.log(p / (1 - p))
