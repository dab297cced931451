"""Inference: against enumeration, among its methods, at the edges, and UAI files."""

import math

import numpy as np
import pytest

from eval.verify.factreasoner.annealing import anneal
from eval.verify.factreasoner.elimination import min_fill
from eval.verify.factreasoner.inference import solve
from eval.verify.factreasoner.mini_buckets import mini_buckets
from eval.verify.factreasoner.network import Factor, Network, logs
from eval.verify.factreasoner.uai import read_mar, read_uai, write_mar, write_uai
from records import UserError


def random_network(rng, variables, factors, zeros=0.0, arity=3):
    found = []
    for _ in range(factors):
        size = int(rng.integers(0, min(variables, arity) + 1))
        scope = tuple(map(int, rng.permutation(variables)[:size]))
        table = rng.random((2,) * size)
        found.append(Factor(scope, np.where(rng.random(table.shape) < zeros, 0.0, table)))
    return Network(variables, found)


def documents(rng, atoms, contexts, density, low=0.5, high=1.0):
    """Priors 0.5 and 0.99, and the three relations between pairs taken at random."""
    found = [Factor((v,), np.array([0.5, 0.5])) for v in range(atoms)]
    found += [Factor((v,), np.array([0.01, 0.99])) for v in range(atoms, atoms + contexts)]
    for v in range(atoms, atoms + contexts):
        for u in range(v):
            if rng.random() < density and (u < atoms or v >= atoms):
                p = rng.uniform(low, high)
                row = {0: (1 - p, p), 1: (p, 1 - p), 2: (1 - p, p)}[kind := int(rng.integers(3))]
                above = (p, 1 - p) if kind == 2 else (p, p)
                found.append(Factor((v, u), np.array([above, row])))
    return Network(atoms + contexts, found)


def enumerate_marginals(network: Network) -> tuple[np.ndarray, float]:
    """P(variable is true), shape (variables,), and ln Z by summing over all assignments.

    What is compared with: 2**variables entries, so for about 16 variables.

    Raises:
        ValueError: no assignment has a positive product.
    """
    total = np.zeros((2,) * network.variables)
    for scope, table in network.factors:
        with np.errstate(divide="ignore"):
            own = np.log(np.asarray(table, dtype=float))
        shape = [2 if v in scope else 1 for v in range(network.variables)]
        total = total + np.transpose(own, np.argsort(scope)).reshape(shape)
    top = float(total.max())
    if top == -np.inf:
        raise ValueError("no assignment has a positive product")
    mass = np.exp(total - top)
    z = mass.sum()
    p = np.array([mass.take(1, axis=v).sum() / z for v in range(network.variables)])
    return p, top + float(np.log(z))


def test_marginals_agree_with_enumeration():
    rng = np.random.default_rng(0)
    impossible = 0
    for trial in range(150):
        n = int(rng.integers(1, 13))
        zeros = 0.15 if trial % 3 == 0 else 0.0
        network = random_network(rng, n, int(rng.integers(0, 3 * n)), zeros)
        try:
            p, log_z = enumerate_marginals(network)
        except ValueError:
            impossible += 1
            with pytest.raises(UserError, match="contradict each other"):
                solve([network])
            continue
        (found,) = solve([network])
        assert found.method == "exact"
        np.testing.assert_allclose(found.p, p, rtol=0, atol=1e-9)
        assert found.log_z == pytest.approx(log_z, abs=1e-9)
    assert impossible > 3
    for density in (0.1, 0.5, 1.0):
        network = documents(rng, 6, 10, density, 0.5, 1 - 1e-12)
        np.testing.assert_allclose(
            solve([network], max_width=16)[0].p, enumerate_marginals(network)[0], atol=1e-9
        )


def test_the_approximate_methods_come_near():
    rng = np.random.default_rng(1)
    network = documents(rng, 8, 12, 0.5)
    exact = solve([network], max_width=20)[0]
    p, log_z = anneal(logs(network))
    assert np.abs(p - exact.p).mean() < 0.01
    assert log_z == pytest.approx(exact.log_z, abs=1.0)
    whole = logs(network)
    order, width = min_fill(whole)
    plain, loose = mini_buckets(whole, order, 3)
    matched, tight = mini_buckets(whole, order, 3, rounds=30)
    assert width > 6
    assert loose > tight > exact.log_z  # bounds from above, matching tightens
    assert np.abs(matched - exact.p).mean() < np.abs(plain - exact.p).mean()
    same, equal = mini_buckets(whole, order, width)
    np.testing.assert_allclose(same, exact.p, atol=1e-9)
    assert equal == pytest.approx(exact.log_z)
    asked = solve([network], i_bound=3, max_width=3, approximate="wmb")[0]
    assert (asked.method, asked.width) == ("wmb", width)
    np.testing.assert_array_equal(asked.p, plain)


def test_a_split_bucket_is_bounded_by_hoelders_inequality():
    rng = np.random.default_rng(7)
    f, g = rng.random((2, 2, 2))
    network = logs(Network(3, [Factor((0, 1), f), Factor((0, 2), g)]))
    halves = [np.log(np.sqrt((t**2).sum(axis=0)).sum()) for t in (f, g)]
    assert mini_buckets(network, [0, 1, 2], 1)[1] == pytest.approx(sum(halves))


def test_two_modes_are_weighted_by_their_mass():
    """Contexts that agree pairwise, all or none: 0.7 and 0.3 of the mass, no way between."""
    n = 24
    found = [Factor((0,), np.array([0.3, 0.7]))]
    agree = np.array([[0.99, 0.01], [0.01, 0.99]])
    found += [Factor((u, v), agree) for v in range(n) for u in range(v)]
    posterior = solve([Network(n, found)])[0]
    assert posterior.method == "annealed"
    np.testing.assert_allclose(posterior.p, 0.7, atol=0.06)


def test_large_dense_networks_neither_overflow_nor_underflow():
    rng = np.random.default_rng(2)
    sharp = documents(rng, 20, 150, 0.3, 1 - 1e-9, 1 - 1e-12)
    hard = Network(60, [Factor((u, v), np.eye(2)) for v in range(60) for u in range(v)])
    fixed = Network(60, [*hard.factors, Factor((0,), np.array([0.0, 1.0]))])
    many = Network(2, [Factor((0, 1), np.array([[1e-300, 1.0], [1.0, 1e-300]]))] * 2000)
    for posterior in solve([sharp, fixed, many]):
        assert np.isfinite(posterior.log_z)
        assert ((posterior.p >= 0) & (posterior.p <= 1)).all()
    assert (solve([fixed])[0].p > 0.99).all()
    np.testing.assert_allclose(solve([many])[0].p, 0.5, atol=1e-9)
    with pytest.raises(UserError, match="contradict"):
        solve([Network(60, [*fixed.factors, Factor((1,), np.array([1.0, 0.0]))])])


def test_what_does_not_count_changes_nothing():
    rng = np.random.default_rng(3)
    network = documents(rng, 8, 12, 0.2)
    p = solve([network])[0].p
    turn = rng.permutation(20)
    turned = [Factor(tuple(int(turn[v]) for v in f.variables), f.table) for f in network.factors]
    np.testing.assert_allclose(solve([Network(20, turned[::-1])])[0].p[turn], p, atol=1e-9)
    halves = [Factor(f.variables, np.sqrt(f.table)) for f in network.factors for _ in range(2)]
    flipped = [Factor(f.variables[::-1], f.table.T) for f in halves]
    np.testing.assert_allclose(solve([Network(20, flipped)])[0].p, p, atol=1e-9)
    posterior = solve([Network(0, [])])[0]
    assert (posterior.p.shape, posterior.log_z, posterior.width) == ((0,), 0.0, 0)


def test_a_pair_that_does_not_interact_still_weighs_on_both():
    apart = Factor((0, 1), np.outer([0.3, 0.9], [0.8, 0.4]))
    posterior = solve([Network(2, [apart])])[0]
    np.testing.assert_allclose(posterior.p, [0.9 / 1.2, 0.4 / 1.2])
    assert posterior.log_z == pytest.approx(math.log(1.2 * 1.2))


def test_a_wide_factor_over_three_takes_mini_buckets():
    table = np.random.default_rng(0).random((2, 2, 2))
    assert solve([Network(3, [Factor((0, 1, 2), table)])], max_width=1)[0].method == "wmb"


def test_an_atom_that_nothing_speaks_about_is_exactly_undecided():
    rng = np.random.default_rng(4)
    network = documents(rng, 10, 40, 0.6)
    neutral = Factor((50, 20), np.full((2, 2), 0.5))
    posterior = solve([Network(52, [*network.factors, neutral, Factor((51,), np.ones(2))])])[0]
    assert posterior.method == "annealed"
    assert abs(posterior.p[50] - 0.5) <= 1e-9
    assert posterior.p[51] == 0.5


def test_a_batch_is_its_documents_one_by_one():
    rng = np.random.default_rng(5)
    networks = [documents(rng, 5, 30, density) for density in (0.02, 0.7, 0.1, 0.7)]
    together = solve(networks)
    assert {p.method for p in together} == {"exact", "annealed"}
    for network, one in zip(networks, together, strict=True):
        (alone,) = solve([network])
        np.testing.assert_array_equal(alone.p, one.p)
        assert alone[1:] == one[1:]


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (Factor((0, 0), np.ones((2, 2))), "different variables from 0 to 1"),
        (Factor((0, 2), np.ones((2, 2))), "different variables from 0 to 1"),
        (Factor((0, 1), np.ones(4)), r"shape is \(4,\); give \(2, 2\)"),
        (Factor((0,), np.array([-0.1, 1])), "not negative"),
        (Factor((0,), np.array([np.nan, 1])), "finite"),
    ],
)
def test_malformed_factors_are_refused(factor, said):
    with pytest.raises(UserError, match=said):
        solve([Network(2, [factor])])


def test_options_are_checked():
    with pytest.raises(UserError, match="i_bound"):
        solve([], i_bound=0)
    with pytest.raises(UserError, match="annealed or wmb"):
        solve([], approximate="guess")


def test_uai_files_keep_every_bit(tmp_path):
    rng = np.random.default_rng(6)
    network = random_network(rng, 9, 30, zeros=0.2)
    write_uai(tmp_path / "net.uai", network)
    read = read_uai(tmp_path / "net.uai")
    assert read.variables == 9
    assert [f.variables for f in read.factors] == [f.variables for f in network.factors]
    for one, other in zip(read.factors, network.factors, strict=True):
        np.testing.assert_array_equal(one.table, other.table)
    p = rng.random(9)
    write_mar(tmp_path / "net.MAR", p)
    np.testing.assert_array_equal(read_mar(tmp_path / "net.MAR"), p)
    bayes = "BAYES\n2\n2 2\n2\n1 0\n2 0 1\n\n2 .3 .7\n4\n .9 .1\n .2 .8\n"
    (tmp_path / "bayes.uai").write_text(bayes)
    posterior = solve([read_uai(tmp_path / "bayes.uai")])[0]
    np.testing.assert_allclose(posterior.p, [0.7, 0.3 * 0.1 + 0.7 * 0.8], atol=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1: the file ends where the preamble"),
        ("MARKOVIAN 1", "1: 'MARKOVIAN': the file should begin with MARKOV or BAYES"),
        ("MARKOV\n2\n2 3", "3: '3': the number of values of variable 1"),
        ("MARKOV\n2\n2 2\n1\n2 0 2\n4 1 1 1 1", "5: '2': a variable of factor 0"),
        ("MARKOV\n2\n2 2\n1\n2 1 1\n4 1 1 1 1", "5: '1': factor 0 names this variable twice"),
        ("MARKOV\n1\n2\n1\n1 0\n3 1 1 1", "6: '3': the number of entries of factor 0"),
        ("MARKOV\n1\n2\n1\n1 0\n2 1 -1", "6: '-1': an entry of factor 0"),
        ("MARKOV\n1\n2\n1\n1 0\n2 1", "6: the file ends where an entry of factor 0"),
        ("MARKOV\n1\n2\n0\n7", "5: '7': the file should end before this"),
    ],
)
def test_bad_uai_files_say_where(tmp_path, text, said):
    path = tmp_path / "bad.uai"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        read_uai(path)
    assert f"bad.uai:{said}" in str(error.value)


def test_bad_results_say_where(tmp_path):
    path = tmp_path / "bad.MAR"
    path.write_text("MAR\n1 2 0.7 0.7\n")
    with pytest.raises(UserError, match=r"bad.MAR:2: '0.7': the probabilities of variable 0"):
        read_mar(path)
    with pytest.raises(UserError, match="give a UAI file"):
        read_mar(tmp_path / "none.MAR")


def test_a_posterior_is_not_above_one_by_its_last_bits():
    tables = [
        ((0, 3), [0.0, 1e-300, 0.0, 1e-300]),
        ((1, 0, 2), [0.01, 1e-12, 0.01, 0.0, 0.5, 0.0, 0.0, 0.0]),
        ((3,), [0.0, 1e-300]),
        ((0, 3), [0.0, 0.3, 0.0, 0.7]),
    ]
    factors = [Factor(own, np.array(table).reshape((2,) * len(own))) for own, table in tables]
    found = solve([Network(4, factors)], max_width=1)[0]
    assert ((found.p >= 0) & (found.p <= 1)).all()
