"""Inference: against enumeration, among its methods, and at the edges."""

import numpy as np

from eval.verify.factreasoner.annealing import anneal
from eval.verify.factreasoner.elimination import eliminate, min_fill
from eval.verify.factreasoner.inference import solve
from eval.verify.factreasoner.network import Factor, Network, to_logs


def random_network(rng, variables, factors):
    drawn_factors = []
    for _ in range(factors):
        size = int(rng.integers(1, min(variables, 2) + 1))
        scope = tuple(map(int, rng.permutation(variables)[:size]))
        drawn_factors.append(Factor(scope, rng.random((2,) * size)))
    return Network(variables, drawn_factors)


def documents(rng, atoms, contexts, density, low=0.5, high=1.0):
    """Priors 0.5 and 0.99, and the three relations between pairs taken at random."""
    drawn_factors = [Factor((v,), np.array([0.5, 0.5])) for v in range(atoms)]
    drawn_factors += [Factor((v,), np.array([0.01, 0.99])) for v in range(atoms, atoms + contexts)]
    for v in range(atoms, atoms + contexts):
        for u in range(v):
            if rng.random() < density and (u < atoms or v >= atoms):
                p = rng.uniform(low, high)
                row = {0: (1 - p, p), 1: (p, 1 - p), 2: (1 - p, p)}[kind := int(rng.integers(3))]
                above = (p, 1 - p) if kind == 2 else (p, p)
                drawn_factors.append(Factor((v, u), np.array([above, row])))
    return Network(atoms + contexts, drawn_factors)


def enumerate_marginals(network: Network) -> np.ndarray:
    """P(variable is true), shape (variables,), by summing over all assignments.

    What is compared with: 2**variables entries, so for about 16 variables.
    """
    total = np.zeros((2,) * network.variables)
    for scope, table in network.factors:
        shape = [2 if v in scope else 1 for v in range(network.variables)]
        total = total + np.transpose(np.log(table), np.argsort(scope)).reshape(shape)
    mass = np.exp(total - total.max())
    return np.array([mass.take(1, axis=v).sum() / mass.sum() for v in range(network.variables)])


def test_marginals_agree_with_enumeration():
    rng = np.random.default_rng(0)
    for _ in range(150):
        n = int(rng.integers(1, 13))
        network = random_network(rng, n, int(rng.integers(0, 3 * n)))
        (actual,) = solve([network])
        assert actual.method == "exact"
        np.testing.assert_allclose(actual.p, enumerate_marginals(network), rtol=0, atol=1e-9)
    for density in (0.1, 0.5, 1.0):
        network = documents(rng, 6, 10, density, 0.5, 1 - 1e-12)
        np.testing.assert_allclose(
            solve([network], max_width=16)[0].p, enumerate_marginals(network), atol=1e-9
        )


def test_approximate_methods_are_close_to_exact():
    rng = np.random.default_rng(1)
    network = documents(rng, 8, 12, 0.5)
    exact = solve([network], max_width=20)[0]
    whole = to_logs(network)
    assert np.abs(anneal(whole) - exact.p).mean() < 0.01
    order, width = min_fill(whole)
    assert width > 6
    split = eliminate(whole, order, 3)
    assert 0.01 < np.abs(split - exact.p).mean() < 0.3
    np.testing.assert_allclose(eliminate(whole, order, width), exact.p, atol=1e-9)
    approximate = solve([network], i_bound=3, max_width=3, approximate="wmb")[0]
    assert (approximate.method, approximate.width) == ("wmb", width)
    np.testing.assert_array_equal(approximate.p, split)


def test_a_split_bucket_has_the_gradient_of_hoelders_bound():
    rng = np.random.default_rng(7)
    f, g = rng.random((2, 2, 2))
    network = to_logs(Network(3, [Factor((0, 1), f), Factor((0, 2), g)]))
    # Each half sums the squares of its table out: d ln bound / d ln f.
    halves = [np.sqrt((t**2).sum(axis=0)) for t in (f, g)]
    shares = [
        (t[1] ** 2 / (t**2).sum(axis=0) * h).sum() / h.sum()
        for t, h in zip((f, g), halves, strict=True)
    ]
    expected = [np.mean(shares), *(h[1] / h.sum() for h in halves)]
    np.testing.assert_allclose(eliminate(network, [0, 1, 2], 1), expected)


def test_two_modes_are_weighted_by_their_mass():
    """Contexts that agree pairwise, all or none: 0.7 and 0.3 of the mass, no way between."""
    n = 24
    actual = [Factor((0,), np.array([0.3, 0.7]))]
    agree = np.array([[0.99, 0.01], [0.01, 0.99]])
    actual += [Factor((u, v), agree) for v in range(n) for u in range(v)]
    posterior = solve([Network(n, actual)])[0]
    assert posterior.method == "annealed"
    np.testing.assert_allclose(posterior.p, 0.7, atol=0.06)


def test_large_dense_networks_neither_overflow_nor_underflow():
    rng = np.random.default_rng(2)
    sharp = documents(rng, 20, 150, 0.3, 1 - 1e-9, 1 - 1e-12)
    network = Network(2, [Factor((0, 1), np.array([[1e-300, 1.0], [1.0, 1e-300]]))] * 2000)
    for posterior in solve([sharp, network]):
        assert ((posterior.p >= 0) & (posterior.p <= 1)).all()
    np.testing.assert_allclose(solve([network])[0].p, 0.5, atol=1e-9)


def test_factor_order_and_scale_do_not_change_posteriors():
    rng = np.random.default_rng(3)
    network = documents(rng, 8, 12, 0.2)
    p = solve([network])[0].p
    turn = rng.permutation(20)
    turned = [Factor(tuple(int(turn[v]) for v in f.variables), f.table) for f in network.factors]
    np.testing.assert_allclose(solve([Network(20, turned[::-1])])[0].p[turn], p, atol=1e-9)
    flipped = [Factor(f.variables[::-1], 3 * f.table.T) for f in network.factors]
    np.testing.assert_allclose(solve([Network(20, flipped)])[0].p, p, atol=1e-9)


def test_a_pair_that_does_not_interact_still_weighs_on_both():
    apart = Factor((0, 1), np.outer([0.3, 0.9], [0.8, 0.4]))
    posterior = solve([Network(2, [apart])])[0]
    np.testing.assert_allclose(posterior.p, [0.9 / 1.2, 0.4 / 1.2])


def test_atom_without_evidence_is_exactly_undecided():
    rng = np.random.default_rng(4)
    network = documents(rng, 10, 40, 0.6)
    neutral = Factor((50, 20), np.full((2, 2), 0.5))
    posterior = solve([Network(52, [*network.factors, neutral, Factor((51,), np.ones(2))])])[0]
    assert posterior.method == "annealed"
    assert abs(posterior.p[50] - 0.5) <= 1e-9
    assert posterior.p[51] == 0.5


def test_batch_equals_separate_documents():
    rng = np.random.default_rng(5)
    networks = [documents(rng, 5, 30, density) for density in (0.02, 0.7, 0.1, 0.7)]
    together = solve(networks)
    assert {p.method for p in together} == {"exact", "annealed"}
    for network, posterior in zip(networks, together, strict=True):
        (alone,) = solve([network])
        np.testing.assert_array_equal(alone.p, posterior.p)
        assert alone[1:] == posterior[1:]
