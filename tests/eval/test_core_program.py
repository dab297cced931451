"""Core's integer program against enumeration, and its ties, budget and errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from eval.select.program import solve


def by_enumeration(weights, exclusion, coherent, p):
    """The optimum by trying all selections."""
    n = len(weights)
    selections = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(bool)  # (2^n, n)
    conflicts = selections.astype(int) @ exclusion * selections
    selections = selections[~conflicts.any(axis=1)]
    budget = p * selections.sum(axis=1) - (selections & coherent).sum(axis=1)
    selections = selections[budget <= 1e-9]
    total = np.rint(selections @ np.rint(weights * 1e6))
    selections = selections[total == total.max()]
    selections = selections[selections.sum(axis=1) == selections.sum(axis=1).max()]
    return max(selections.tolist())


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 0.7, 1.0])
def test_random_programs_have_the_optimum_of_enumeration(p, strict):
    draw = np.random.default_rng([int(p * 10), strict])
    for trial in range(40):
        n = int(draw.integers(1, 15 if trial % 10 == 0 else 10))
        weights = (draw.integers(-2, 6, n) * 0.5, np.ones(n), draw.normal(1, 1, n))[trial % 3]
        weights = weights if strict else np.maximum(weights, 0.5)
        entails = draw.random((n, n)) < draw.choice([0.03, 0.1, 0.3, 0.7])
        exclusion = (entails | entails.T) & ~np.eye(n, dtype=bool)
        coherent = draw.random(n) < draw.choice([0.2, 0.5, 0.8])
        selected = solve(weights, exclusion, coherent, p)
        assert selected.tolist() == by_enumeration(weights, exclusion, coherent, p)


def test_sparse_and_dense_blocks_give_the_same_selection(monkeypatch):
    draw = np.random.default_rng(0)
    exclusion = draw.random((40, 40)) < 0.1
    exclusion = (exclusion | exclusion.T) & ~np.eye(40, dtype=bool)
    weights, coherent = draw.integers(1, 5, 40) * 0.5, draw.random(40) < 0.5
    expected = solve(weights, exclusion, coherent, 0.6)
    # a graph too dense and too large for one block, and one that is neither
    for block, density in ((7, 1), (256, 1_000)):
        monkeypatch.setattr("eval.select.program_parts.BLOCK", block)
        monkeypatch.setattr("eval.select.program_parts.DENSE", density)
        assert (solve(weights, csr_array(exclusion), coherent, 0.6) == expected).all()


def test_no_claims_give_an_empty_selection():
    assert solve(np.zeros(0), np.zeros((0, 0)), np.zeros(0), 0.5).tolist() == []


def test_tie_goes_to_more_claims_and_then_to_the_earlier_ones():
    # The second (2) excludes the others (1): the same weight, but two claims.
    star = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert solve([1, 2, 1], star, [1, 1, 1], 0).tolist() == [True, False, True]
    # A ring of four: the first and third weigh as much as the second and fourth.
    ring = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    assert solve(np.ones(4), ring, np.ones(4), 0).tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("coherent", "claims", "p"),
    [(7, 10, 0.7), (1, 3, 1 / 3), (9, 30, 0.3)],
)
def test_share_that_floats_round_is_met_exactly(coherent, claims, p):
    no_edges = np.zeros((claims, claims))
    assert solve(np.ones(claims), no_edges, np.arange(claims) < coherent, p).all()


def test_bleached_claims_provide_budget_if_they_are_in_the_program():
    # Two coherent claims that are worth nothing, and two incoherent informative ones.
    weights, coherent = np.array([-0.1, -0.1, 5.0, 4.0]), np.array([True, True, False, False])
    assert solve(weights, np.zeros((4, 4)), coherent, 0.5).all()
    assert not solve(weights[2:], np.zeros((2, 2)), coherent[2:], 0.5).any()
