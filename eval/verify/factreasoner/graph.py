"""FactReasoner's graphical model of a document: Table 1's factors over atoms and contexts.

2502.18573, section 3: each atom and each context is a variable, true or false, with a prior; each
relation from a context X to an atom or a context Y is a factor of its probability p:

    X Y     entailment   contradiction   equivalence
    0 0     p            p               p
    0 1     p            p               1 - p
    1 0     1 - p        p               1 - p
    1 1     p            1 - p           p

Neutral pairs have no factor.

The released code has these tables behind ``use_priors=False``; by default its rows of X = 0 are
1 - prior, prior instead. Those of the paper are taken here, since its examples follow from them:

- Example 1: a context that entails the atom with 0.8 and one that contradicts it with 0.9, both of
  prior 0.99, give P(atom) = 0.318.
- Example 2: a third context contradicts the second. The probability is not stated; with 0.9 and one
  factor for the two contexts P(atom) = 0.41, with a factor a direction 0.60. Here an unordered pair
  of contexts has one factor, so that it is 0.41. The released code has one as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from components.encoding import Pair
from eval.verify.factreasoner.network import Factor, Network
from eval.verify.factreasoner.relations import (
    Answer,
    Context,
    Plan,
    RelationName,
    both_directions,
)
from records import Claim

# Probabilities of 0 and 1 would make hard constraints, which may contradict each other.
_EPSILON = 1e-6


class Edge(NamedTuple):
    """A relation of two variables of a graph, by their numbers."""

    source: int
    target: int
    relation: RelationName
    p: float


@dataclass
class Graph:
    """One graph: its variables are the claims, then the contexts.

    Attributes:
        document: place of the document in the batch.
        version: 1, 2 or 3 (FR1, FR2, FR3).
        claims: the atoms.
        contexts: with their priors.
        atom_prior: of every atom.
        to_claims: relations from contexts to claims, neutral ones left out.
        between: relations between contexts, one a pair, neutral ones left out.
        asked, failed: numbers of pairs of each claim; ``failed`` ones have no answer.
        failed_between: pairs of contexts without an answer in either direction.
        skipped: pairs that were not asked.
    """

    document: int
    version: int
    claims: list[Claim]
    contexts: list[Context]
    atom_prior: float
    to_claims: list[Edge] = field(default_factory=list)
    between: list[Edge] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    failed_between: int = 0
    skipped: int = 0

    def network(self) -> Network:
        """The Markov network; variable i is claim i, or context i - len(claims)."""
        priors = [self.atom_prior] * len(self.claims) + [c.prior for c in self.contexts]
        factors = [Factor((number,), _prior(p)) for number, p in enumerate(priors)]
        for edge in [*self.to_claims, *self.between]:
            factors.append(Factor((edge.source, edge.target), table(edge.relation, edge.p)))
        return Network(len(priors), factors)


def table(relation: RelationName, p: float) -> np.ndarray:
    """Table 1, shape (2, 2): index 0 is false, 1 true; source first.

    Raises:
        KeyError: a neutral relation, which has no factor.
    """
    p = _inside(p)
    rows = {
        "entailment": [[p, p], [1 - p, p]],
        "contradiction": [[p, p], [p, 1 - p]],
        "equivalence": [[p, 1 - p], [1 - p, p]],
    }
    return np.array(rows[relation])


def _prior(p: float) -> np.ndarray:
    p = _inside(p)
    return np.array([1 - p, p])


def _inside(p: float) -> float:
    return min(max(p, _EPSILON), 1 - _EPSILON)


def build(plan: Plan, answers: Mapping[Pair, Answer | None], atom_prior: float) -> Graph:
    """The graph of a plan whose pairs were answered."""
    own = len(plan.claims)
    graph = Graph(
        plan.document,
        plan.version,
        plan.claims,
        plan.contexts,
        atom_prior,
        asked=[0] * own,
        failed=[0] * own,
        skipped=plan.skipped,
    )
    for context, claim in plan.to_claims:
        answer = answers[plan.claim_pair(context, claim)]
        graph.asked[claim] += 1
        graph.failed[claim] += answer is None
        if answer is not None and answer.relation != "neutral":
            graph.to_claims.append(Edge(own + context, claim, *answer))
    for one, other in plan.between:
        found = both_directions(
            answers[plan.context_pair(one, other)], answers[plan.context_pair(other, one)]
        )
        graph.failed_between += found is None
        if found is not None and found[0].relation != "neutral":
            answer, direction = found
            ends = (one, other) if direction == "there" else (other, one)
            graph.between.append(Edge(own + ends[0], own + ends[1], *answer))
    return graph
