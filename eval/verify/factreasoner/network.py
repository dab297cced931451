"""A Markov network over binary variables: what FactReasoner infers from (arXiv 2502.18573)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from records import UserError

# A pair whose log-odds interact by less than this moves no posterior by more than it: no edge.
DECOUPLED = 1e-13

IMPOSSIBLE = (
    "{}: its factors contradict each other, no assignment has a probability (Z = 0); "
    "give probabilities between 0 and 1, both excluded"
)


class Factor(NamedTuple):
    """A non-negative table over some variables.

    Attributes:
        variables: the scope, without repeats.
        table: shape (2,) * len(variables), axis k for ``variables[k]``; index 0 is false, 1 true.
    """

    variables: tuple[int, ...]
    table: np.ndarray


class Network(NamedTuple):
    """A distribution: the product of the factors, divided by its sum Z over all assignments.

    Attributes:
        variables: how many there are; they are numbered from 0.
        factors: in any order; several may have one scope.
    """

    variables: int
    factors: list[Factor]


class Logs(NamedTuple):
    """A network's factors as natural logarithms, one table a scope.

    Attributes:
        constant: the sum of the factors without variables.
        single: shape (variables, 2).
        pairs: shape (m, 2), the smaller variable first, no pair twice.
        joint: shape (m, 2, 2), one table a pair.
        larger: scopes of three variables or more (sorted) and their tables.
    """

    constant: float
    single: np.ndarray
    pairs: np.ndarray
    joint: np.ndarray
    larger: list[tuple[tuple[int, ...], np.ndarray]]


def logs(network: Network, name: str = "network") -> Logs:
    """Check a network, take logarithms and add up the factors of one scope.

    Pairs that do not interact (a table that is a product of two) become single factors, so that an
    atom that nothing speaks about keeps exactly its prior.
    """
    n = network.variables
    by_arity: dict[int, list[Factor]] = {}
    for number, factor in enumerate(network.factors):
        scope, table = factor
        if np.shape(table) != (2,) * len(scope):
            shapes = f"the table's shape is {np.shape(table)}; give {(2,) * len(scope)}"
            raise UserError(f"{name}: factor {number} over {tuple(scope)}: {shapes}")
        by_arity.setdefault(len(scope), []).append(factor)
    constant, single, larger = 0.0, np.zeros((n, 2)), {}
    pairs, joint = np.zeros((0, 2), int), np.zeros((0, 2, 2))
    for arity, own in sorted(by_arity.items()):
        scopes = np.array([scope for scope, _ in own], dtype=int).reshape(len(own), arity)
        tables = np.array([table for _, table in own], dtype=float)
        _refuse(scopes, tables, n, name)
        with np.errstate(divide="ignore"):
            tables = np.log(tables)
        if arity == 0:
            constant = float(tables.sum())
        elif arity == 1:
            np.add.at(single, scopes[:, 0], tables)
        elif arity == 2:
            pairs, joint = _merge_pairs(scopes, tables)
        else:
            for scope, table in zip(scopes, tables, strict=True):
                key = tuple(sorted(map(int, scope)))
                larger[key] = larger.get(key, 0) + np.transpose(table, np.argsort(scope))
    with np.errstate(invalid="ignore"):
        apart = np.abs(interaction(joint)) <= DECOUPLED
    np.add.at(single, pairs[apart, 0], joint[apart, :, 0])
    np.add.at(single, pairs[apart, 1], joint[apart, 0, :] - joint[apart, 0, :1])
    return Logs(constant, single, pairs[~apart], joint[~apart], list(larger.items()))


def interaction(joint: np.ndarray) -> np.ndarray:
    """Shape (m,): by how much one variable's truth changes the other's log-odds."""
    return joint[:, 1, 1] - joint[:, 1, 0] - joint[:, 0, 1] + joint[:, 0, 0]


def _merge_pairs(scopes: np.ndarray, tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    turned = scopes[:, 0] > scopes[:, 1]
    tables[turned] = tables[turned].transpose(0, 2, 1)
    pairs, where = np.unique(np.sort(scopes, axis=1), axis=0, return_inverse=True)
    joint = np.zeros((len(pairs), 2, 2))
    np.add.at(joint, where.reshape(-1), tables)
    return pairs, joint


def _refuse(scopes: np.ndarray, tables: np.ndarray, variables: int, name: str) -> None:
    rows = np.sort(scopes, axis=1)
    unknown = ((scopes < 0) | (scopes >= variables)).any(axis=1)
    unknown |= (rows[:, 1:] == rows[:, :-1]).any(axis=1)
    flat = tables.reshape(len(tables), -1)
    wrong = ~(np.isfinite(flat) & (flat >= 0)).all(axis=1)
    for bad, message in (
        (unknown, f"give different variables from 0 to {variables - 1}"),
        (wrong, "potentials must be finite numbers and not negative"),
    ):
        if bad.any():
            scope = tuple(map(int, scopes[bad.argmax()]))
            raise UserError(f"{name}: the factor over {scope}: {message}")
