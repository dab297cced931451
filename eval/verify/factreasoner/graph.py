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
- Example 2: a third context contradicts the second, and P(atom) = 0.59. The probability is not
  stated; 0.9 gives 0.41 with one factor for the two contexts, 0.60 with a factor a direction. The
  number follows from 0.986 with one, from 0.892 with two.

How many factors two contexts have is ``context_factors``: one a ``pair``, as the released code
makes of the answers to both directions, or one a ``direction``, as section 3.3's FR3 has it (f(Cj,
Ck) for j, k = 1..m, j ≠ k).
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
    both_directions,
    each_direction,
)

ContextFactors = Literal["pair", "direction"]

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
        plan: its claims and contexts, and which pairs were asked.
        atom_prior: of every claim.
        to_claims: relations from contexts to claims, neutral ones left out.
        between: relations between contexts, neutral ones left out.
        asked, failed: numbers of pairs of each claim; ``failed`` ones have no answer.
        failed_between: pairs of contexts without an answer in either direction.
    """

    plan: Plan
    atom_prior: float
    to_claims: list[Edge]
    between: list[Edge]
    asked: list[int]
    failed: list[int]
    failed_between: int = 0

    def names(self) -> list[str]:
        """Ids of the variables: the claims, then the contexts."""
        return [one.id for one in (*self.plan.claims, *self.plan.contexts)]

    def network(self) -> Network:
        """The Markov network; variable i is claim i, or context i - len(claims)."""
        priors = [self.atom_prior] * len(self.plan.claims)
        priors += [context.prior for context in self.plan.contexts]
        factors = [
            Factor((number,), np.array([1 - p, p])) for number, p in enumerate(map(_inside, priors))
        ]
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


def _inside(p: float) -> float:
    return min(max(p, _EPSILON), 1 - _EPSILON)


def build(
    plan: Plan,
    answers: Mapping[Pair, Answer | None],
    atom_prior: float,
    context_factors: ContextFactors = "pair",
) -> Graph:
    """The graph of a plan whose pairs were answered.

    Args:
        plan: its pairs.
        answers: to all of them; ``None`` where the model failed.
        atom_prior: of every claim.
        context_factors: one relation of both directions between contexts, or one of each.
    """
    own = len(plan.claims)
    graph = Graph(plan, atom_prior, [], [], [0] * own, [0] * own)
    for context, claim in plan.to_claims:
        answer = answers[plan.claim_pair(context, claim)]
        graph.asked[claim] += 1
        graph.failed[claim] += answer is None
        if answer is not None and answer.relation != "neutral":
            graph.to_claims.append(Edge(own + context, claim, *answer))
    join = both_directions if context_factors == "pair" else each_direction
    for one, other in plan.between:
        there = answers[plan.context_pair(one, other)]
        back = answers[plan.context_pair(other, one)]
        graph.failed_between += there is None and back is None
        for answer, direction in join(there, back):
            if answer.relation != "neutral":
                ends = (one, other) if direction == "there" else (other, one)
                graph.between.append(Edge(own + ends[0], own + ends[1], *answer))
    return graph
