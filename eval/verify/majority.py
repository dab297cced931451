"""The vote of a claim's passages: how many entail it, how many contradict it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import expit

from eval.stages import EntailmentModel, called
from eval.verify.evidence import evidence_for, pairs_with_evidence
from records import Claim, Document, Passage, UserError, Verdict
from records.types import VerdictLabel

_ASSESSOR = "majority"
# What a row of probabilities calls a pair.
_ENTAILMENT, _CONTRADICTION = 0, 2
# Priors of 0 and 1 would outvote all others together.
_LEAST = 1e-6


class Majority:
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

    judges_sets = False

    def __init__(
        self, entailment: EntailmentModel, title_in_premise: bool = False, by_prior: bool = False
    ):
        self.entailment = entailment
        self.title_in_premise = title_in_premise
        self.by_prior = by_prior

    def __call__(
        self,
        documents: Sequence[Document],
        claims: Sequence[Sequence[Claim]],
        passages: Sequence[Sequence[Passage]],
    ) -> list[list[Verdict]]:
        """One verdict a claim. A claim without a passage is ``failed``, with the reason.

        So is one without any answer of the model (rows of NaN).

        Raises:
            UserError: ``by_prior``, and a passage without a prior.
        """
        flat = [claim for own in claims for claim in own]
        evidence = evidence_for(claims, passages)
        pairs = pairs_with_evidence(flat, evidence, self.title_in_premise)
        rows = iter(self.entailment.relations(pairs) if pairs else [])
        verdicts = iter(
            self._failed(claim, found)
            if isinstance(found, str)
            else self._judge(claim, found, [next(rows) for _ in found])
            for claim, found in zip(flat, evidence, strict=True)
        )
        return [[next(verdicts) for _ in own] for own in claims]

    def _judge(self, claim: Claim, passages: Sequence[Passage], rows: Sequence) -> Verdict:
        # NaN is unlike itself: a row that failed has no vote.
        votes = [int(called(row)) if (row == row).all() else None for row in rows]
        if all(vote is None for vote in votes):
            return self._failed(claim, "no relation to a passage could be judged")
        given = [p for p, vote in zip(passages, votes, strict=True) if vote == _ENTAILMENT]
        against = [p for p, vote in zip(passages, votes, strict=True) if vote == _CONTRADICTION]
        if self.by_prior:
            odds = math.fsum(map(_log_odds, given)) - math.fsum(map(_log_odds, against))
            p = float(expit(odds))
        else:
            p = len(given) / len(given + against) if given or against else 0.5
        label: VerdictLabel = "undecided"
        if p != 0.5:
            label = "supported" if p > 0.5 else "contradicted"
        voting = {one.id for one in given + against}
        return Verdict(
            claim=claim.id,
            assessor=_ASSESSOR,
            name=self._name,
            label=label,
            p=p,
            evidence=[one.id for one in passages if one.id in voting],
        )

    def _failed(self, claim: Claim, reason: str) -> Verdict:
        return Verdict(
            claim=claim.id, assessor=_ASSESSOR, name=self._name, label="failed", reason=reason
        )

    @property
    def _name(self) -> str:
        return "by_prior" if self.by_prior else "default"


def _log_odds(passage: Passage) -> float:
    if passage.prior is None:
        raise UserError(f"by_prior: passage {passage.id!r} has no prior; give it one, or count")
    p = min(max(passage.prior, _LEAST), 1 - _LEAST)
    return math.log(p / (1 - p))
