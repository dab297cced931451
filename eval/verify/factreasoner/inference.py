"""Posteriors of FactReasoner's networks (arXiv 2502.18573, Section 3.2): P(atom is true)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from eval.verify.factreasoner.annealing import anneal
from eval.verify.factreasoner.elimination import eliminate, min_fill
from eval.verify.factreasoner.mini_buckets import mini_buckets
from eval.verify.factreasoner.network import IMPOSSIBLE, Logs, Network, logs
from records import UserError

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
        log_z: natural logarithm of Z; an estimate for ``annealed``, an upper bound for ``wmb``.
    """

    p: np.ndarray
    method: Method
    width: int
    log_z: float


def solve(
    networks: Sequence[Network],
    i_bound: int = 6,
    max_width: int = 14,
    approximate: Literal["annealed", "wmb"] = "annealed",
    rounds: int = 1,
    seed: int = 0,
) -> list[Posterior]:
    """The posteriors of a batch of documents' networks, each as if it were solved alone.

    Connected parts are solved apart: exactly where a min-fill order has an induced width of at most
    ``max_width``, otherwise approximately. The paper's solver runs weighted mini-buckets with
    i-bound 6 on every network. On dense ones that is off by 0.2 a posterior on average, and
    moment matching to convergence does not mend it (benchmarks/inference.py), so here the default
    is a population annealed by Gibbs sampling; ``wmb`` gives the paper's method. Factors over
    three or more variables, which FactReasoner has not, always take ``wmb`` where exact inference
    is too wide.

    Args:
        networks: one a document.
        i_bound: of the mini-buckets: a part has at most ``i_bound + 1`` variables.
        max_width: the largest induced width for exact inference; tables have 2**(width + 1)
            entries.
        approximate: the method beyond it.
        rounds: of the mini-buckets; each after the first matches moments once more.
        seed: of the annealing's random numbers.
    """
    if i_bound < 1 or max_width < 1 or rounds < 1:
        raise UserError("i_bound, max_width and rounds: give whole numbers of at least 1")
    if approximate not in RANKS[1:]:
        raise UserError(f"approximate: {approximate} is not known; give annealed or wmb")
    found = []
    for number, network in enumerate(networks):
        name = f"network {number}"
        whole = logs(network, name)
        with np.errstate(invalid="ignore"):
            p = expit(whole.single[:, 1] - whole.single[:, 0])
        method: Method = "exact"
        width, log_z = 0, whole.constant
        alone, parts = _parts(whole)
        log_z += float(np.logaddexp(*whole.single[alone].T).sum())
        for members, part in parts:
            own, how, w, z = _solve_part(part, i_bound, max_width, approximate, rounds, seed)
            p[members] = own
            method = max(method, how, key=RANKS.index)
            width, log_z = max(width, w), log_z + z
        if not np.isfinite(log_z):
            raise UserError(IMPOSSIBLE.format(name))
        # Sums of products may be above 1 by their last bits.
        found.append(Posterior(np.clip(p, 0.0, 1.0), method, width, log_z))
    return found


def _solve_part(
    part: Logs, i_bound: int, max_width: int, approximate: Method, rounds: int, seed: int
) -> tuple[np.ndarray, Method, int, float]:
    order, width = min_fill(part, max_width)
    if width <= max_width:
        return _with(eliminate(part, order), "exact", width)
    if approximate == "annealed" and not part.larger:
        return _with(anneal(part, seed), "annealed", width)
    order, width = min_fill(part)
    return _with(mini_buckets(part, order, i_bound, rounds), "wmb", width)


def _with(
    result: tuple[np.ndarray, float], method: Method, width: int
) -> tuple[np.ndarray, Method, int, float]:
    p, log_z = result
    return p, method, width, log_z


def _parts(whole: Logs) -> tuple[np.ndarray, list[tuple[np.ndarray, Logs]]]:
    n = len(whole.single)
    edges = [whole.pairs, *(np.array([(s[0], v) for v in s[1:]]) for s, _ in whole.larger)]
    first, second = np.concatenate(edges).T
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    count, label = connected_components(graph, directed=False) if n else (0, np.zeros(0, int))
    sizes = np.bincount(label, minlength=count)
    found = []
    for c in np.flatnonzero(sizes > 1):
        members = np.flatnonzero(label == c)
        place = np.full(n, -1)
        place[members] = np.arange(len(members))
        inside = label[whole.pairs[:, 0]] == c
        larger = [
            (tuple(place[list(scope)].tolist()), table)
            for scope, table in whole.larger
            if label[scope[0]] == c
        ]
        pairs = place[whole.pairs[inside]]
        found.append(
            (members, Logs(0.0, whole.single[members], pairs, whole.joint[inside], larger))
        )
    return np.flatnonzero(sizes[label] == 1), found
