"""Posteriors of FactReasoner's networks (arXiv 2502.18573, Section 3.2): P(atom is true)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from eval.verify.factreasoner.annealing import anneal
from eval.verify.factreasoner.elimination import eliminate, min_fill
from eval.verify.factreasoner.network import Logs, Network, logs

Method = Literal["exact", "annealed", "wmb"]
RANKS: tuple[Method, ...] = ("exact", "annealed", "wmb")


class Posterior(NamedTuple):
    """What inference says of one network.

    Attributes:
        p: P(variable is true), shape (variables,).
        method: how it was found; where parts of the network that nothing connects were solved in
            different ways, the least exact of them.
        width: induced width of the elimination order; for ``annealed``, which needs none, the
            width at which the search for an order was given up.
    """

    p: np.ndarray
    method: Method
    width: int


def solve(
    networks: Sequence[Network],
    i_bound: int = 6,
    max_width: int = 14,
    approximate: Literal["annealed", "wmb"] = "annealed",
    seed: int = 0,
) -> list[Posterior]:
    """The posteriors of a batch of documents' networks, each as if it were solved alone.

    Connected parts are solved apart: exactly where a min-fill order has an induced width of at most
    ``max_width``, otherwise approximately. The paper's solver runs weighted mini-buckets with
    i-bound 6 on every network. On dense ones that is off by 0.2 a posterior on average
    (benchmarks/inference.py), so here the default is a population annealed by Gibbs sampling;
    ``wmb`` gives the paper's method.

    Args:
        networks: one a document.
        i_bound: of the mini-buckets: a part has at most ``i_bound + 1`` variables.
        max_width: the largest induced width for exact inference; tables have 2**(width + 1)
            entries.
        approximate: the method beyond it.
        seed: of the annealing's random numbers.
    """
    found = []
    for network in networks:
        whole = logs(network)
        p = expit(whole.single[:, 1] - whole.single[:, 0])
        method, width = "exact", 0
        for members, part in _parts(whole):
            order, own_width = min_fill(part, max_width)
            how: Method = "exact" if own_width <= max_width else approximate
            if how == "annealed":
                p[members] = anneal(part, seed)
            elif how == "exact":
                p[members] = eliminate(part, order, own_width)
            else:
                order, own_width = min_fill(part)
                p[members] = eliminate(part, order, i_bound)
            method, width = max(method, how, key=RANKS.index), max(width, own_width)
        # Sums of products may be above 1 by their last bits.
        found.append(Posterior(np.clip(p, 0.0, 1.0), method, width))
    return found


def _parts(whole: Logs) -> list[tuple[np.ndarray, Logs]]:
    n = len(whole.single)
    edges = (np.ones(len(whole.pairs)), tuple(whole.pairs.T))
    count, label = connected_components(coo_array(edges, shape=(n, n)), directed=False)
    found = []
    for c in np.flatnonzero(np.bincount(label, minlength=count) > 1):
        members = np.flatnonzero(label == c)
        inside = label[whole.pairs[:, 0]] == c
        pairs = np.searchsorted(members, whole.pairs[inside])
        found.append((members, Logs(whole.single[members], pairs, whole.joint[inside])))
    return found
