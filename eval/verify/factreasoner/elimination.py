"""Exact marginals by bucket elimination: one variable after another, and back."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from eval.verify.factreasoner.network import Logs

# How much wider an order by smallest degree may be and min-fill still be worth a try.
SLACK = 4


def scopes_and_tables(logs: Logs) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Every factor of a network, its single ones first."""
    found = [((v,), table) for v, table in enumerate(logs.single)]
    found += [(tuple(map(int, pair)), own) for pair, own in zip(*logs[2:4], strict=True)]
    return found + logs.larger


def min_fill(logs: Logs, max_width: int | None = None) -> tuple[list[int], int]:
    """An elimination order that adds few edges, and its induced width.

    Ties go to the smaller degree and then to the smaller number, so that the order is the same on
    every run. Where the width passes ``max_width`` the search stops: the order is cut short and the
    width is the one that passed it. It does not begin where eliminating by smallest degree, which
    is quicker, comes out at more than ``max_width + SLACK``.
    """
    n = len(logs.single)
    near = [0] * n  # neighbours as the bits of an integer
    scopes = [*logs.pairs.tolist(), *(scope for scope, _ in logs.larger)]
    for scope in scopes:
        bits = sum(1 << v for v in scope)
        for v in scope:
            near[v] |= bits ^ (1 << v)
    if max_width is not None and (lowest := _min_degree(near)) > max_width + SLACK:
        return [], lowest
    cost = [(_fill(near, v), near[v].bit_count(), v) for v in range(n)]
    left, order, width = set(range(n)), [], 0
    while left:
        best = min(cost[v] for v in left)[2]
        own = near[best]
        width = max(width, own.bit_count())
        if max_width is not None and width > max_width:
            return order, width
        order.append(best)
        left.remove(best)
        changed = own
        for v in _bits(own):
            near[v] = (near[v] | own) & ~((1 << v) | (1 << best))
            changed |= near[v]
        for v in _bits(changed):
            cost[v] = (_fill(near, v), near[v].bit_count(), v)
    return order, width


def _min_degree(near: list[int]) -> int:
    near = list(near)
    left, width = set(range(len(near))), 0
    while len(left) > width:  # what is left cannot be wider
        best = min(left, key=lambda v: (near[v].bit_count(), v))
        own = near[best]
        width = max(width, own.bit_count())
        left.remove(best)
        for v in _bits(own):
            near[v] = (near[v] | own) & ~((1 << v) | (1 << best))
    return width


def _bits(number: int) -> list[int]:
    found = []
    while number:
        low = number & -number
        found.append(low.bit_length() - 1)
        number ^= low
    return found


def _fill(near: list[int], variable: int) -> int:
    own = near[variable]
    return sum((own & ~near[v]).bit_count() - 1 for v in _bits(own))


def eliminate(logs: Logs, order: list[int]) -> tuple[np.ndarray, float]:
    """P(true) of each variable, shape (variables,), and ln Z, by a bucket tree in two passes.

    Upwards, each variable's bucket (the factors and messages in which it is the first of the
    order) is added up in logarithms and the variable summed out. Downwards, the bucket's joint
    distribution is its parent's marginal times the variable's conditional; these are probabilities,
    so that nothing can overflow. Where Z = 0, ln Z is -inf and P means nothing.

    Args:
        logs: the network.
        order: all its variables, in the order of elimination.
    """
    place = {v: k for k, v in enumerate(order)}
    buckets: list[list] = [[] for _ in order]
    for scope, table in scopes_and_tables(logs):
        axes = sorted(range(len(scope)), key=lambda k: place[scope[k]])
        scope = tuple(scope[k] for k in axes)
        buckets[place[scope[0]]].append((scope, np.transpose(table, axes)))
    log_z = logs.constant
    parents: list = []
    for k, v in enumerate(order):
        inside = {u for scope, _ in buckets[k] for u in scope} | {v}
        scope = tuple(sorted(inside, key=place.__getitem__))
        belief = np.zeros((2,) * len(scope))
        for own, table in buckets[k]:
            belief += table.reshape([2 if u in own else 1 for u in scope])
        message = np.logaddexp(belief[0], belief[1])
        with np.errstate(invalid="ignore"):
            # Both impossible: any conditional will do, since the parent gives them no mass.
            true = expit(np.nan_to_num(belief[1] - belief[0], nan=0.0, posinf=1e3, neginf=-1e3))
        parents.append((scope, true))
        buckets[k] = []
        if len(scope) > 1:
            buckets[place[scope[1]]].append((scope[1:], message))
        else:
            log_z += float(message)
    return _downwards(order, place, parents), log_z


def _downwards(order: list[int], place: dict[int, int], conditionals: list) -> np.ndarray:
    p = np.zeros(len(order))
    joints: list = [None] * len(order)
    for k in reversed(range(len(order))):
        scope, true = conditionals[k]
        rest: np.ndarray = np.float64(1.0)
        if len(scope) > 1:
            above, joint = joints[place[scope[1]]]
            rest = joint.sum(axis=tuple(i for i, u in enumerate(above) if u not in scope))
        on = rest * true
        p[order[k]] = on.sum()
        joints[k] = scope, np.stack([rest * (1.0 - true), on])
    return p
