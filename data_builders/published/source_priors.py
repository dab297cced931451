"""``source_priors``: how far sources are to be trusted, learnt from how they agree.

FactReasoner gives every context one prior. After ConTrust (IBM/FactReasoner, pull request 34) a
source has

    prior(s) = (1 - β) · start + β · r,   r = (1 + agreed) / (2 + seen),   β = min(seen / 2, 0.7)

where ``seen`` counts the votes of its passages for or against a claim on which the votes of other
sources, each weighed by its own prior, were not even, and ``agreed`` those that were on their side:
r is the mean of a Beta posterior, and ``start`` holds until a source has a record. The priors are
computed again with the new weights until they stay. With ``labels`` the claims' own labels stand
for the votes of the others: what people called true.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from data_builders.builder import Builder, Made, Work
from data_builders.dataset import Card
from data_builders.journal import identity_of
from eval.retrieve.trusted import By, source_of
from eval.stages import EntailmentModel, call_relation
from records import Document, SourcePrior, UserError, read_records

# A record may weigh at most so much, and does after so many votes.
_MOST, _VOTES = 0.7, 2
# Rounds after which the priors are what they are; they stay after three or four.
_ROUNDS = 50
# A claim that is not supported may still be true, unless a set says no finer word for it.
_TRUTHS = {"supported": 1, "refuted": -1, "S": 1, "NS": -1}


class Vote(NamedTuple):
    """What a passage of a source says of a claim: 1 for it, -1 against it."""

    source: str
    sign: int


@dataclass
class SourcePriors(Builder):
    """Priors of sources, learnt from how their passages' verdicts on claims agree.

    Args:
        output: folder of the dataset.
        documents: files of documents with claims and passages, or Climate-FEVER, AVeriTeC.
        entailment: the relation model that says which passages are for a claim, which against it.
        by: what a passage's source is: its ``source``, its ``title``, or the ``host`` of its url.
        start: prior of a source without a record.
        labels: agree with the claims' labels, where they are true or refuted, not with the others.
        limit: only the first so many documents of each file, for a trial.
        seed: has no effect: nothing is drawn.
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

    def config(self) -> dict:
        return super().config() | {"entailment": identity_of(self.entailment)}

    def make(self, work: Work) -> Made:
        every = [d for path in self.documents for d in read_records(path, Document)[: self.limit]]
        votes, truths = self._votes(every, work)
        if not votes:
            raise UserError(f"documents: no passage with a {self.by} is for or against a claim")
        known = self._learnt(votes, truths)
        card = Card(
            pretty_name="Priors of sources",
            license="other",
            tags=("factuality", "source-reliability"),
            text=CARD.format(claims=len(votes), sources=len(known)),
        )
        return Made({"priors.jsonl": known}, card, found={"claims": len(votes)})

    def _votes(
        self, documents: Sequence[Document], work: Work
    ) -> tuple[list[list[Vote]], list[int | None]]:
        pairs, owners, truths = [], [], []
        for document in documents:
            passages = {passage.id: passage for passage in document.passages or []}
            for claim in document.claims or []:
                named = passages if claim.contexts is None else claim.contexts
                there = [passages[name] for name in named if name in passages]
                found = [(passage, source_of(passage, self.by)) for passage in there]
                work.dropped["passage without a source"] += sum(not s for _, s in found)
                truths.append(_TRUTHS.get(getattr(claim, "finer", None) or claim.label))
                pairs += [(passage.text, claim.text) for passage, source in found if source]
                owners += [(len(truths) - 1, source) for _, source in found if source]
        votes: list[list[Vote]] = [[] for _ in truths]
        answers = np.asarray(self.entailment.relations(pairs)).reshape(-1, 3)
        for (place, source), row in zip(owners, answers, strict=True):
            if np.isnan(row).any():
                work.dropped["pair that the model failed to judge"] += 1
            elif sign := 1 - int(call_relation(row)):  # entailed 1, contradicted -1
                votes[place].append(Vote(source, sign))
            else:
                work.dropped["passage that takes no side"] += 1
        kept = [place for place, own in enumerate(votes) if own]
        return [votes[place] for place in kept], [truths[place] for place in kept]

    def _learnt(
        self, votes: Sequence[Sequence[Vote]], truths: Sequence[int | None]
    ) -> list[SourcePrior]:
        names = sorted({vote.source for own in votes for vote in own})
        priors = dict.fromkeys(names, self.start)
        counts: Mapping[str, list[int]] = {}
        for _ in range(_ROUNDS):
            counts = self._counted(names, votes, truths, priors)
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

    def _counted(
        self,
        names: Sequence[str],
        votes: Sequence[Sequence[Vote]],
        truths: Sequence[int | None],
        priors: Mapping[str, float],
    ) -> dict[str, list[int]]:
        counts = {name: [0, 0] for name in names}
        for own, truth in zip(votes, truths, strict=True):
            for vote in own:
                side = truth if self.labels else consensus(own, vote.source, priors)
                if side:
                    counts[vote.source][0] += vote.sign == side
                    counts[vote.source][1] += 1
        return counts

    def _prior(self, agreed: int, seen: int) -> float:
        record = (1 + agreed) / (2 + seen)
        weight = min(seen / _VOTES, _MOST)
        return round((1 - weight) * self.start + weight * record, 6)


def consensus(votes: Iterable[Vote], source: str, priors: Mapping[str, float]) -> int:
    """On which side the other sources' weighed votes are: 1, -1, or 0 where they are even."""
    total = sum(vote.sign * priors[vote.source] for vote in votes if vote.source != source)
    return int(np.sign(round(total, 9)))


CARD = """\
How far each source is to be trusted: `prior`, from `agreed` of `seen` votes of its passages on
{claims} claims with those of the {sources} sources' others (`config` says whether with labels
instead). A prior is of these claims and of the relation model that read the passages; it says
nothing of what a source says elsewhere.
"""
