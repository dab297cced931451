"""Posteriors of FactReasoner's networks (arXiv 2502.18573, Section 3.2): P(atom is true)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from eval.verify.factreasoner.annealing import anneal
from eval.verify.factreasoner.elimination import eliminate, min_fill
from eval.verify.factreasoner.network import Logs, Network, to_logs

Method = Literal["exact", "annealed", "wmb"]
RANKS: tuple[Method, ...] = ("exact", "annealed", "wmb")


class Posterior(NamedTuple):
    """The result of inference on one network.

    Attributes:
        p: P(variable is true), shape (variables,).
        method: inference method; the least exact one among the connected parts.
        width: induced width of the elimination order; for ``annealed`` the width at which the
            search for an order stopped.
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
    """Compute the posteriors of a batch of networks, each independently.

    Connected parts are solved separately: exactly if a min-fill order has an induced width of at
    most ``max_width``, otherwise approximately. The paper runs weighted mini-buckets with i-bound 6
    on every network (``wmb``). On dense networks its mean error is 0.2 per posterior
    (benchmarks/inference.py), so the default is population annealing.

    Args:
        networks: one per document.
        i_bound: i-bound of the mini-buckets, which have at most ``i_bound + 1`` variables.
        max_width: maximum induced width for exact inference; tables have 2**(width + 1) entries.
        approximate: method above ``max_width``.
        seed: random seed of the annealing.
    """
    posteriors = []
    for network in networks:
        logs = to_logs(network)
        p = expit(logs.single[:, 1] - logs.single[:, 0])
        method, width = "exact", 0
        for members, part in _parts(logs):
            order, part_width = min_fill(part, max_width)
            part_method: Method = "exact" if part_width <= max_width else approximate
            if part_method == "annealed":
                p[members] = anneal(part, seed)
            elif part_method == "exact":
                p[members] = eliminate(part, order, part_width)
            else:
                order, part_width = min_fill(part)
                p[members] = eliminate(part, order, i_bound)
            method, width = max(method, part_method, key=RANKS.index), max(width, part_width)
        # Sums of products may exceed 1 by rounding errors.
        posteriors.append(Posterior(np.clip(p, 0.0, 1.0), method, width))
    return posteriors


def _parts(logs: Logs) -> list[tuple[np.ndarray, Logs]]:
    n = len(logs.single)
    edges = (np.ones(len(logs.pairs)), tuple(logs.pairs.T))
    count, label = connected_components(coo_array(edges, shape=(n, n)), directed=False)
    parts = []
    for c in np.flatnonzero(np.bincount(label, minlength=count) > 1):
        members = np.flatnonzero(label == c)
        inside = label[logs.pairs[:, 0]] == c
        pairs = np.searchsorted(members, logs.pairs[inside])
        parts.append((members, Logs(logs.single[members], pairs, logs.joint[inside])))
    return parts
