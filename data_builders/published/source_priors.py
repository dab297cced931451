"""``source_priors``: reliability of sources, learned from their agreement.

FactReasoner uses one prior for all contexts. After ConTrust (IBM/FactReasoner, pull request 34) a
source has

    prior(s) = (1 - β) · start + β · r,   r = (1 + agreed) / (2 + seen),   β = min(seen / 2, 0.7)

where ``seen`` is the number of votes of its passages for or against claims on which the weighted
votes of the other sources are not tied, ``agreed`` the number of those on their side, and r the
mean of a Beta posterior. Votes are weighted by the priors, which are recomputed until they
converge. With ``labels`` the claims' labels replace the votes of the other sources.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from data_builders.builder import Builder, Made, Work
from data_builders.dataset import read_card
from eval.retrieve.trusted import By, source_of
from eval.stages import EntailmentModel, call_relation
from records import Document, SourcePrior, UserError, read_records

# Maximum weight of a source's record, reached after this many votes.
_MAX_WEIGHT, _FULL_VOTES = 0.7, 2
# Maximum number of iterations; the priors converge after three or four.
_MAX_ROUNDS = 50
# The finer label of a claim, if any, comes first: an unsupported claim may still be true.
_TRUTHS = {"supported": 1, "refuted": -1, "S": 1, "NS": -1}


class Vote(NamedTuple):
    """The vote of a source's passage on a claim: 1 for it, -1 against it."""

    source: str
    sign: int


@dataclass
class SourcePriors(Builder):
    """Priors of sources, learned from the agreement of their passages' verdicts on claims.

    Args:
        documents: files of documents with claims and passages, or Climate-FEVER, AVeriTeC.
        entailment: relation model that decides which passages support or contradict a claim.
        by: field that identifies a source: ``source``, ``title``, or the ``host`` of the url.
        start: prior of a source without a record.
        labels: compare votes with the claims' labels (true or refuted) instead of other sources.
        seed: has no effect: nothing is random.
    """

    documents: list[str]
    entailment: EntailmentModel
    by: By = "source"
    start: float = 0.5
    labels: bool = False

    reads = ("documents",)
    probabilities = ("start",)

    def files(self) -> dict[str, dict[str, str]]:
        return {"priors": {"train": "priors.jsonl"}}

    def make(self, work: Work) -> Made:
        rows = [d for path in self.documents for d in read_records(path, Document)[: self.limit]]
        votes, truths = self._votes(rows, work)
        if not votes:
            raise UserError(f"documents: no passage with a {self.by} is for or against a claim")
        priors = self._learn(votes, truths)
        card = read_card("source_priors", claims=len(votes), sources=len(priors))
        return Made({"priors.jsonl": priors}, card, details={"claims": len(votes)})

    def _votes(
        self, documents: Sequence[Document], work: Work
    ) -> tuple[list[list[Vote]], list[int | None]]:
        pairs, owners, truths = [], [], []
        for document in documents:
            passages = {passage.id: passage for passage in document.passages or []}
            for claim in document.claims or []:
                ids = passages if claim.contexts is None else claim.contexts
                passages_of_claim = [passages[name] for name in ids if name in passages]
                sourced = [(passage, source_of(passage, self.by)) for passage in passages_of_claim]
                work.dropped["passage without a source"] += sum(not s for _, s in sourced)
                truths.append(_TRUTHS.get(getattr(claim, "finer", None) or claim.label))
                pairs += [(passage.text, claim.text) for passage, source in sourced if source]
                owners += [(len(truths) - 1, source) for _, source in sourced if source]
        votes: list[list[Vote]] = [[] for _ in truths]
        answers = np.asarray(self.entailment.relations(pairs)).reshape(-1, 3)
        for (index, source), row in zip(owners, answers, strict=True):
            if np.isnan(row).any():
                work.dropped["pair that the model failed to judge"] += 1
            elif sign := 1 - int(call_relation(row)):  # entailed 1, contradicted -1
                votes[index].append(Vote(source, sign))
            else:
                work.dropped["neutral passage"] += 1
        kept = [index for index, claim_votes in enumerate(votes) if claim_votes]
        return [votes[index] for index in kept], [truths[index] for index in kept]

    def _learn(
        self, votes: Sequence[Sequence[Vote]], truths: Sequence[int | None]
    ) -> list[SourcePrior]:
        names = sorted({vote.source for claim_votes in votes for vote in claim_votes})
        priors = dict.fromkeys(names, self.start)
        counts: Mapping[str, list[int]] = {}
        for _ in range(_MAX_ROUNDS):
            counts = self._count(names, votes, truths, priors)
            new = {name: self._prior(*counts[name]) for name in names}
            if new == priors:
                break
            priors = new
        return [
            SourcePrior(
                source=name, prior=priors[name], agreed=counts[name][0], seen=counts[name][1]
            )
            for name in names
        ]

    def _count(
        self,
        names: Sequence[str],
        votes: Sequence[Sequence[Vote]],
        truths: Sequence[int | None],
        priors: Mapping[str, float],
    ) -> dict[str, list[int]]:
        counts = {name: [0, 0] for name in names}
        for claim_votes, truth in zip(votes, truths, strict=True):
            for vote in claim_votes:
                side = truth if self.labels else consensus(claim_votes, vote.source, priors)
                if side:
                    counts[vote.source][0] += vote.sign == side
                    counts[vote.source][1] += 1
        return counts

    def _prior(self, agreed: int, seen: int) -> float:
        record = (1 + agreed) / (2 + seen)
        weight = min(seen / _FULL_VOTES, _MAX_WEIGHT)
        return round((1 - weight) * self.start + weight * record, 6)


def consensus(votes: Iterable[Vote], source: str, priors: Mapping[str, float]) -> int:
    """Return the sign of the other sources' weighted votes: 1, -1, or 0 for a tie."""
    total = sum(vote.sign * priors[vote.source] for vote in votes if vote.source != source)
    return int(np.sign(round(total, 9)))
