"""Core's integer program against enumeration, and its ties, budget and errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from eval.select.program import maximise, solve


def by_enumeration(weights, entails, coherent, p, strict, texts):
    """The optimum's sorted texts, by trying all selections."""
    n = len(weights)
    every = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(bool)  # (2^n, n)
    if not strict:
        every = every[~every[:, weights <= 0].any(axis=1)]
    names = np.array(texts)
    conflict = entails | entails.T | (names[:, None] == names)
    np.fill_diagonal(conflict, False)
    every = every[~((every.astype(int) @ conflict) * every).any(axis=1)]
    every = every[p * every.sum(axis=1) - (every & coherent).sum(axis=1) <= 1e-9]
    total = np.rint(every @ np.rint(weights * 1e6))
    every = every[total == total.max()]
    every = every[every.sum(axis=1) == every.sum(axis=1).max()]
    return min(sorted(names[x].tolist()) for x in every)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 0.7, 1.0])
def test_agrees_with_enumeration(p, strict):
    draw = np.random.default_rng([int(p * 10), strict])
    for trial in range(40):
        n = int(draw.integers(1, 15 if trial % 10 == 0 else 10))
        weights = (draw.integers(-2, 6, n) * 0.5, np.ones(n), draw.normal(1, 1, n))[trial % 3]
        entails = draw.random((n, n)) < draw.choice([0.03, 0.1, 0.3, 0.7])
        coherent = draw.random(n) < draw.choice([0.2, 0.5, 0.8])
        texts = [f"{number:04d}" for number in draw.integers(0, (12, 9999)[trial % 2], n)]
        found = solve(weights, entails, coherent, p, strict, texts)
        expected = by_enumeration(weights, entails, coherent, p, strict, texts)
        assert sorted(np.array(texts)[found].tolist()) == expected


def test_a_sparse_matrix_says_what_a_dense_one_says(monkeypatch):
    draw = np.random.default_rng(0)
    dense = draw.random((40, 40)) < 0.1
    weights, texts = draw.integers(1, 5, 40) * 0.5, [f"{i:02d}" for i in range(40)]
    program = (draw.random(40) < 0.5, 0.6, False, texts)
    expected = solve(weights, dense, *program)
    # A graph too dense and too large for one block, and one that is neither.
    for block, density in ((7, 1), (256, 1_000)):
        monkeypatch.setattr("eval.select.program.BLOCK", block)
        monkeypatch.setattr("eval.select.program.DENSE", density)
        assert (solve(weights, csr_array(dense), *program) == expected).all()


def test_no_claim():
    nothing = np.zeros(0)
    assert solve(nothing, np.zeros((0, 0)), nothing, 0.5, False, []).tolist() == []


def test_tie_goes_to_more_claims_and_then_to_the_smallest_texts():
    # b (2) excludes a (1) and c (1): the same weight, but two claims.
    star = np.zeros((3, 3), bool)
    star[1, [0, 2]] = True
    assert solve([1, 2, 1], star, [1, 1, 1], 0, False, "abc").tolist() == [True, False, True]
    # A ring of four: {a, c} and {b, d} weigh the same.
    ring = np.zeros((4, 4), bool)
    ring[[0, 1, 2, 3], [1, 2, 3, 0]] = True
    assert solve(np.ones(4), ring, np.ones(4), 0, False, "dabc").tolist() == [0, 1, 0, 1]


def test_budget_counts_exactly():
    # p times the number of claims is a hair above or below a whole number in floats.
    for coherent, of, p in [(7, 10, 0.7), (1, 3, 1 / 3), (9, 30, 0.3)]:
        is_coherent = np.arange(of) < coherent
        texts = [f"{i:02d}" for i in range(of)]
        assert solve(np.ones(of), np.zeros((of, of)), is_coherent, p, False, texts).all()


def test_bleached_claims_buy_no_budget_unless_eq1_is_taken_strictly():
    # Two coherent claims that are worth nothing, and two incoherent informative ones.
    weights, coherent = np.array([-0.1, -0.1, 5.0, 4.0]), np.array([True, True, False, False])
    program = (weights, np.zeros((4, 4)), coherent, 0.5)
    assert not solve(*program, False, "abcd").any()
    assert solve(*program, True, "abcd").all()


def test_solver_without_an_optimum_is_an_error():
    never = csr_array(np.array([[1, 1]]))
    with pytest.raises(RuntimeError, match="Infeasible"):
        maximise(np.ones(2, np.int64), np.arange(2), never, np.array([-1]))
