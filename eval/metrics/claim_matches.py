"""Matching of subclaims with human-written claims by meaning.

- :class:`ByEntailment`: two claims match if each entails the other, as in
  :func:`eval.metrics.decomposition.same_claims`. A human claim is *covered* if any subclaim entails
  it (element-level coverage, Claimify, 2502.10855, section 4.2; there elements are judged by a
  language model, here human claims by an entailment model).
- :class:`ByCosine`: two claims match if the cosine of their sentence embeddings is high.

The matching is one-to-one and maximal: repeated subclaims gain nothing, and splitting a claim that
people did not split lowers the score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jsonargparse.typing import ClosedUnitInterval
from pydantic import BaseModel
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from eval.models.sentence_encoder import SentenceEncoder, unit_vectors
from eval.select.judgements import relations
from eval.stages import EntailmentModel, entails

Claims = Sequence[Sequence[str]]


class Matches(BaseModel):
    """Matches of one text.

    Attributes:
        people: number of human claims.
        matched: number of one-to-one matches.
        covered: number of human claims that any subclaim entails; ``None`` if not computed.
    """

    people: int
    matched: int
    covered: int | None = None


class ClaimMatcher(Protocol):
    """Matches the subclaims of texts with human claims."""

    def __call__(self, subclaims: Claims, people: Claims) -> list[Matches]:
        """Return one :class:`Matches` per text."""


@dataclass(eq=False)
class ByEntailment:
    """Two claims match if each entails the other.

    Args:
        entailment: the relation model; a failure on a pair is an error.
        threshold: minimum entailment probability; null: entailment must be the argmax.
    """

    entailment: EntailmentModel
    threshold: float | None = None

    def __call__(self, subclaims: Claims, people: Claims) -> list[Matches]:
        # The reverse direction is judged only for pairs that hold in the first direction.
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
    """Two claims match if the cosine of their embeddings reaches a threshold.

    Args:
        encoder: a sentence encoder.
        threshold: minimum cosine.
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
    # Size of the maximum matching; `table`: bools of shape (subclaims, human claims).
    if not table.size or not table.any():
        return 0
    matched = maximum_bipartite_matching(csr_array(table.astype(np.int8)), perm_type="column")
    return int((matched >= 0).sum())
