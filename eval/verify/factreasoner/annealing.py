"""Marginals of networks too dense for elimination, by population annealing."""

from itertools import pairwise

import numpy as np

from eval.verify.factreasoner.network import Logs, interaction

# Population size: STATES // variables assignments, but at least CHAINS (even).
STATES, CHAINS = 48_000, 512
# Effective share of the population per temperature step, and the minimum step size.
EFFECTIVE, SMALLEST = 0.7, 0.004
# Burn-in sweeps and counted sweeps at the target distribution.
SETTLING, COUNTED = 4, 26


def anneal(logs: Logs, seed: int = 0) -> np.ndarray:
    """Estimate P(true) of each variable, shape (variables,), by population annealing.

    Population annealing (Hukushima and Iba 2003; Machta 2010): a population of assignments starts
    uniform at inverse temperature 0 and moves to the network's distribution at 1, in steps of
    reweighting, resampling and one Gibbs sweep. Resampling weights all modes against each other,
    so that contradicting contexts do not trap it, unlike belief propagation or a chain that starts
    from the priors. P(true) is the mean conditional probability over sweeps and population.

    A sweep updates sets of variables without edges among each other in one matrix product. The mean
    error is 0.002 to 0.004 at document size (benchmarks/inference.py) and falls with the square
    root of the population size. With two separated modes of similar mass it can be 0.05.
    """
    n = len(logs.single)
    first, second = logs.pairs.T
    coupling = np.zeros((n, n))
    coupling[first, second] = coupling[second, first] = interaction(logs.joint)
    field = logs.single[:, 1] - logs.single[:, 0]
    np.add.at(field, first, logs.joint[:, 1, 0] - logs.joint[:, 0, 0])
    np.add.at(field, second, logs.joint[:, 0, 1] - logs.joint[:, 0, 0])
    sets = _independent(coupling != 0)
    order = np.concatenate(sets)
    chains = _Chains(field[order], coupling[np.ix_(order, order)], list(map(len, sets)), seed)
    chains.cool()
    for _ in range(SETTLING):
        chains.sweep(1.0)
    total = np.zeros(n)
    for _ in range(COUNTED):
        chains.sweep(1.0)
        total += chains.conditional()
    p = np.empty(n)
    p[order] = total / COUNTED
    return p


def _independent(edges: np.ndarray) -> list[np.ndarray]:
    colour = np.full(len(edges), -1)
    for v in np.lexsort((np.arange(len(edges)), -edges.sum(axis=1))):
        taken = set(colour[edges[v]].tolist())
        colour[v] = next(c for c in range(len(edges)) if c not in taken)
    return [np.flatnonzero(colour == c) for c in range(colour.max() + 1)]


class _Chains:
    """A population of assignments of 0 and 1, shape (variables, chains).

    ``field`` has the log-odds of each variable if all others are false, ``coupling`` their increase
    by another true variable, and ``sizes`` the sizes of the sets that are updated together.
    """

    def __init__(self, field: np.ndarray, coupling: np.ndarray, sizes: list[int], seed: int):
        self.field = field.astype(np.float32)[:, None]
        self.coupling = coupling.astype(np.float32)
        ends = np.cumsum([0, *sizes])
        self.sets = [(slice(*pair), self.coupling[slice(*pair)]) for pair in pairwise(ends)]
        self.random = np.random.Generator(np.random.SFC64(seed))
        self.count = max(CHAINS, STATES // len(field) // 2 * 2)
        shape = (len(field), self.count)
        self.state = (self.random.random(shape, np.float32) < 0.5).astype(np.float32)
        self.share = np.full(self.count, 1 / self.count, np.float32)
        self.half = np.empty((len(field), self.count // 2), np.float32)
        self.odds, self.noise = np.empty(shape, np.float32), np.empty(shape, np.float32)

    def sweep(self, beta: float) -> None:
        # Half of the chains use the negated noise of the other half, which is cheaper.
        half = self.random.random(out=self.half, dtype=np.float32)
        half *= np.float32(1 - 2**-22)
        half += np.float32(2**-23)  # never 0 nor 1
        np.log(np.divide(half, np.float32(1) - half, out=half), out=half)
        noise = np.concatenate((half, -half), axis=1, out=self.noise)
        noise *= np.float32(1 / beta)
        noise -= self.field
        for rows, coupling in self.sets:
            odds = np.matmul(coupling, self.state, out=self.odds[rows])
            np.greater(odds, noise[rows], out=self.state[rows])

    def conditional(self) -> np.ndarray:
        odds = self.odds
        odds += self.field
        np.exp(np.clip(np.negative(odds, out=odds), None, 80, out=odds), out=odds)
        odds += np.float32(1)
        return np.reciprocal(odds, out=odds) @ self.share

    def cool(self) -> None:
        beta = 0.0
        while beta < 1:
            energy = np.matmul(self.coupling, self.state)
            energy *= np.float32(0.5)
            energy += self.field
            exponent = np.einsum("vc,vc->c", energy, self.state).astype(float)
            exponent -= exponent.max()
            left = 1 - beta
            step = min(left, max(SMALLEST, _largest(exponent, left)))
            self._resample(np.exp(step * exponent))
            beta = 1.0 if step == left else beta + step
            self.sweep(beta)

    def _resample(self, weight: np.ndarray) -> None:
        places = (np.arange(self.count) + self.random.random()) / self.count
        chosen = np.searchsorted(np.cumsum(weight) / weight.sum(), places)
        self.state = np.take(self.state, np.minimum(chosen, self.count - 1), axis=1)


def _largest(exponent: np.ndarray, limit: float) -> float:
    low, high, step = 0.0, limit, limit
    for _ in range(10):
        weight = np.exp(step * exponent)
        if weight.sum() ** 2 >= EFFECTIVE * len(weight) * (weight @ weight):
            low = step
        else:
            high = step
        if low == limit:
            break
        step = (low + high) / 2
    return low
