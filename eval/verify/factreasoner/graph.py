"""FactReasoner's graphical model of a document: Table 1's factors over atoms and contexts.

2502.18573, section 3: each atom and each context is a variable, true or false, with a prior; each
relation from a context X to an atom or a context Y is a factor of its probability p:

    X Y     entailment   contradiction   equivalence
    0 0     p            p               p
    0 1     p            p               1 - p
    1 0     1 - p        p               1 - p
    1 1     p            1 - p           p

Neutral pairs have no factor.

The released code uses these tables only with ``use_priors=False``; by default its rows of X = 0 are
1 - prior, prior. We use the tables of the paper, since they reproduce its examples:

- Example 1: a context that entails the atom with 0.8 and one that contradicts it with 0.9, both
  with prior 0.99, give P(atom) = 0.318.
- Example 2: a third context contradicts the second, and P(atom) = 0.59. The probability of this
  contradiction is not stated; 0.9 gives 0.41 with one factor for the two contexts, 0.60 with one
  factor per direction. The number follows from 0.986 with one factor, from 0.892 with two.

``context_factors`` sets the number of factors of two contexts: one per ``pair``, as in the released
code, or one per ``direction``, as in section 3.3's FR3 (f(Cj, Ck) for j, k = 1..m, j ≠ k).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from components.encoding import Pair
from eval.verify.factreasoner.network import Factor, Network
from eval.verify.factreasoner.relations import (
    Answer,
    Plan,
    RelationName,
    keep_directions,
    merge_directions,
)

ContextFactors = Literal["pair", "direction"]

# Clips probabilities, since 0 and 1 would be hard constraints, which may conflict.
_EPSILON = 1e-6


class Edge(NamedTuple):
    """A relation between two variables of a graph."""

    source: int
    target: int
    relation: RelationName
    p: float


@dataclass
class Graph:
    """A graph whose variables are the claims, then the contexts.

    Attributes:
        plan: claims, contexts, and the judged pairs.
        atom_prior: prior of every claim.
        to_claims: relations from contexts to claims, without neutral ones.
        between: relations between contexts, without neutral ones.
        pair_counts: number of pairs of each claim.
        failed_counts: number of pairs of each claim without an answer.
        failed_between: number of pairs of contexts without an answer in either direction.
    """

    plan: Plan
    atom_prior: float
    to_claims: list[Edge]
    between: list[Edge]
    pair_counts: list[int]
    failed_counts: list[int]
    failed_between: int = 0

    def names(self) -> list[str]:
        """Ids of the variables: the claims, then the contexts."""
        return [node.id for node in (*self.plan.claims, *self.plan.contexts)]

    def network(self) -> Network:
        """Return the Markov network; variable i is claim i or context i - len(claims)."""
        priors = [self.atom_prior] * len(self.plan.claims)
        priors += [context.prior for context in self.plan.contexts]
        factors = [
            Factor((number,), np.array([1 - p, p])) for number, p in enumerate(map(_inside, priors))
        ]
        for edge in [*self.to_claims, *self.between]:
            factors.append(Factor((edge.source, edge.target), table(edge.relation, edge.p)))
        return Network(len(priors), factors)


def table(relation: RelationName, p: float) -> np.ndarray:
    """Return Table 1, shape (2, 2): index 0 is false, 1 true; source first."""
    p = _inside(p)
    rows = {
        "entailment": [[p, p], [1 - p, p]],
        "contradiction": [[p, p], [p, 1 - p]],
        "equivalence": [[p, 1 - p], [1 - p, p]],
    }
    return np.array(rows[relation])


def _inside(p: float) -> float:
    return min(max(p, _EPSILON), 1 - _EPSILON)


def build_graph(
    plan: Plan,
    answers: Mapping[Pair, Answer | None],
    atom_prior: float,
    context_factors: ContextFactors = "pair",
) -> Graph:
    """Build the graph of a plan from the answers; ``None`` is a failed answer."""
    n = len(plan.claims)
    graph = Graph(plan, atom_prior, [], [], [0] * n, [0] * n)
    for context, claim in plan.to_claims:
        answer = answers[plan.claim_pair(context, claim)]
        graph.pair_counts[claim] += 1
        graph.failed_counts[claim] += answer is None
        if answer is not None and answer.relation != "neutral":
            graph.to_claims.append(Edge(n + context, claim, *answer))
    join = merge_directions if context_factors == "pair" else keep_directions
    for first, second in plan.between:
        forward = answers[plan.context_pair(first, second)]
        backward = answers[plan.context_pair(second, first)]
        graph.failed_between += forward is None and backward is None
        for answer, direction in join(forward, backward):
            if answer.relation != "neutral":
                ends = (first, second) if direction == "forward" else (second, first)
                graph.between.append(Edge(n + ends[0], n + ends[1], *answer))
    return graph
