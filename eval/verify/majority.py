"""The vote of a claim's passages: how many entail it, how many contradict it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from components.encoding import Pair
from eval.stages import EntailmentModel, called, probabilities
from eval.verify.claim_by_claim import ByPassage
from records import Claim, Passage, UserError, Verdict
from records.types import VerdictLabel

# What a row of probabilities calls a pair.
_ENTAILMENT, _CONTRADICTION = 0, 2
# Priors of 0 and 1 would outvote all others together.
_LEAST = 1e-6


@dataclass(eq=False)
class Majority(ByPassage):
    """Judge each claim by the majority of its own passages' relations to it.

    What FactReasoner is compared with: the same relations without a graphical model. A passage
    votes by the likeliest relation; a neutral one does not vote, nor one where two are equally
    likely. ``p`` is the share of the votes that are for the claim, 0.5 where nobody votes; above
    0.5 the claim is supported, below contradicted, at 0.5 undecided.

    With ``by_prior`` a vote weighs as much as its passage is reliable: the verdicts, named
    ``by_prior``, have the log-odds Σ ± ln(prior / (1 - prior)), what a claim has by Bayes' rule if
    passages err independently and a vote against it says the opposite. Without it an assessor that
    knows the priors is compared with one that does not.

    Args:
        entailment: the relation model.
        title_in_premise: put a passage's title before its text.
        by_prior: weigh the votes by the passages' ``prior``, which each must have.
    """

    assessor = "majority"

    entailment: EntailmentModel
    title_in_premise: bool = False
    by_prior: bool = False

    def __post_init__(self) -> None:
        self.name = "by_prior" if self.by_prior else "default"

    def answers(self, pairs: Sequence[Pair]) -> np.ndarray:
        return probabilities(self.entailment.relations, pairs, 3)

    def decide(
        self, claim: Claim, passages: Sequence[Passage], answers: Sequence[np.ndarray]
    ) -> Verdict:
        """The vote; ``failed`` without any answer of the model (rows of NaN)."""
        votes = [None if np.isnan(row).any() else int(called(row)) for row in answers]
        if all(vote is None for vote in votes):
            return self.failed(claim, "no relation to a passage could be judged")
        given = [p for p, vote in zip(passages, votes, strict=True) if vote == _ENTAILMENT]
        against = [p for p, vote in zip(passages, votes, strict=True) if vote == _CONTRADICTION]
        if self.by_prior:
            odds = math.fsum(map(_log_odds, given)) - math.fsum(map(_log_odds, against))
            p = float(scipy.special.expit(odds))
        else:
            p = len(given) / len(given + against) if given or against else 0.5
        label: VerdictLabel = "undecided"
        if p != 0.5:
            label = "supported" if p > 0.5 else "contradicted"
        voting = {one.id for one in given + against}
        evidence = [one.id for one in passages if one.id in voting]
        return self.verdict(claim, label, p=p, evidence=evidence)


def _log_odds(passage: Passage) -> float:
    if passage.prior is None:
        raise UserError(f"by_prior: passage {passage.id!r} has no prior; give it one, or count")
    p = min(max(passage.prior, _LEAST), 1 - _LEAST)
    return math.log(p / (1 - p))
