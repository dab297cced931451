"""A Markov network over binary variables: what FactReasoner infers from (arXiv 2502.18573)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Pairs with a smaller interaction of their log-odds change posteriors by less and have no edge.
DECOUPLED = 1e-13


class Factor(NamedTuple):
    """A positive table over one variable or two.

    Attributes:
        variables: the scope, without repeats.
        table: shape (2,) * len(variables), axis k for ``variables[k]``; index 0 is false, 1 true.
    """

    variables: tuple[int, ...]
    table: np.ndarray


class Network(NamedTuple):
    """A distribution: the product of the factors, divided by its sum over all assignments.

    Attributes:
        variables: number of variables, which are numbered from 0.
        factors: in any order; several may have the same scope.
    """

    variables: int
    factors: Sequence[Factor]


class Logs(NamedTuple):
    """A network's factors as natural logarithms, one table per scope.

    Attributes:
        single: shape (variables, 2).
        pairs: shape (m, 2), the smaller variable first, no pair twice.
        joint: shape (m, 2, 2), one table per pair.
    """

    single: np.ndarray
    pairs: np.ndarray
    joint: np.ndarray


def to_logs(network: Network) -> Logs:
    """Take logarithms and sum the factors of each scope.

    Pairs that do not interact (the table is a product) become single factors, so that an atom
    without evidence keeps exactly its prior.
    """
    scopes, tables = _of_arity(network, 1)
    single = np.zeros((network.variables, 2))
    np.add.at(single, scopes[:, 0], tables)
    scopes, tables = _of_arity(network, 2)
    reversed_pairs = scopes[:, 0] > scopes[:, 1]
    tables[reversed_pairs] = tables[reversed_pairs].transpose(0, 2, 1)
    pairs, inverse = np.unique(np.sort(scopes, axis=1), axis=0, return_inverse=True)
    joint = np.zeros((len(pairs), 2, 2))
    np.add.at(joint, inverse.reshape(-1), tables)
    decoupled = np.abs(interaction(joint)) <= DECOUPLED
    np.add.at(single, pairs[decoupled, 0], joint[decoupled, :, 0])
    np.add.at(single, pairs[decoupled, 1], joint[decoupled, 0, :] - joint[decoupled, 0, :1])
    return Logs(single, pairs[~decoupled], joint[~decoupled])


def interaction(joint: np.ndarray) -> np.ndarray:
    """Return the change of one variable's log-odds by the other's truth, shape (m,)."""
    return joint[:, 1, 1] - joint[:, 1, 0] - joint[:, 0, 1] + joint[:, 0, 0]


def _of_arity(network: Network, arity: int) -> tuple[np.ndarray, np.ndarray]:
    factors = [factor for factor in network.factors if len(factor.variables) == arity]
    scopes = np.array([scope for scope, _ in factors], dtype=int).reshape(-1, arity)
    tables = np.array([table for _, table in factors]).reshape(-1, *[2] * arity)
    return scopes, np.log(tables)
