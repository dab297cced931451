"""Which of people's claims does a decomposition find, and which of its subclaims are theirs?

Claims are matched by what they mean, by one of

- :class:`ByEntailment`: two claims say the same where each entails the other, as in
  :func:`eval.metrics.decomposition.same_claims`. One of people's claims is *covered* where some
  subclaim entails it (element-level coverage, after Claimify, 2502.10855, section 4.2: its elements
  are here people's own claims, and a model judges, where the paper asks a language model);
- :class:`ByCosine`: two claims say the same where a sentence encoder's vectors are near.

Each of people's claims is matched by one subclaim at most, and the other way round, as many as can
be: who says a claim twice gains nothing, and who splits one that people did not split loses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jsonargparse.typing import ClosedUnitInterval
from pydantic import BaseModel
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from eval.retrieve.dense import SentenceEncoder, unit_vectors
from eval.select.judgements import relations
from eval.stages import EntailmentModel, entails

Claims = Sequence[Sequence[str]]


class Matches(BaseModel):
    """Of one text.

    Attributes:
        people: number of people's claims.
        matched: how many of them a subclaim of its own matches; as many subclaims are matched.
        covered: how many of them some subclaim entails; ``None`` where that is not asked.
    """

    people: int
    matched: int
    covered: int | None = None


class ClaimMatcher(Protocol):
    """Matches the subclaims of some texts with people's claims."""

    def __call__(self, subclaims: Claims, people: Claims) -> list[Matches]:
        """One :class:`Matches` a text."""


@dataclass(eq=False)
class ByEntailment:
    """Two claims say the same where each entails the other.

    Args:
        entailment: the relation model; it has to judge every pair.
        threshold: least probability of entailment; None: the argmax.
    """

    entailment: EntailmentModel
    threshold: float | None = None

    def __call__(self, subclaims: Claims, people: Claims) -> list[Matches]:
        """One :class:`Matches` a text.

        The model is asked first whether subclaims entail people's claims, and the other direction
        only where they do.
        """
        texts = list(zip(subclaims, people, strict=True))
        forth = relations(self.entailment, ((a, b) for s, p in texts for a in s for b in p))
        covers = {pair for pair, row in forth.items() if entails(row, self.threshold)}
        back = relations(self.entailment, [(b, a) for a, b in forth if (a, b) in covers])
        same = {(a, b) for a, b in covers if entails(back[b, a], self.threshold)}
        matches = []
        for subs, gold in texts:
            table = np.asarray([[(a, b) in same for b in gold] for a in subs], dtype=bool)
            covered = sum(any((a, b) in covers for a in subs) for b in gold)
            matched = _one_to_one(table)
            matches.append(Matches(people=len(gold), matched=matched, covered=covered))
        return matches


@dataclass(eq=False)
class ByCosine:
    """Two claims say the same where their vectors' cosine reaches a threshold.

    Args:
        encoder: a sentence encoder.
        threshold: least cosine.
    """

    encoder: SentenceEncoder
    threshold: ClosedUnitInterval = 0.85

    def __call__(self, subclaims: Claims, people: Claims) -> list[Matches]:
        distinct = list(dict.fromkeys(claim for subs in (*subclaims, *people) for claim in subs))
        place = {claim: number for number, claim in enumerate(distinct)}
        units, matches = unit_vectors(self.encoder, distinct), []
        for subs, gold in zip(subclaims, people, strict=True):
            rows, columns = [place[claim] for claim in subs], [place[claim] for claim in gold]
            table = units[rows] @ units[columns].T >= self.threshold - 1e-9
            matches.append(Matches(people=len(gold), matched=_one_to_one(table)))
        return matches


def _one_to_one(table: np.ndarray) -> int:
    """The most pairs that share no claim, of those that may be paired.

    Args:
        table: bools of shape (subclaims, people's claims).
    """
    if not table.size or not table.any():
        return 0
    matched = maximum_bipartite_matching(csr_array(table.astype(np.int8)), perm_type="column")
    return int((matched >= 0).sum())
