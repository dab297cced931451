"""Marginals by bucket elimination: exact, or by FactReasoner's weighted mini-buckets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from eval.verify.factreasoner.network import Logs

# Skip min-fill if the minimum-degree order is wider than the limit by more than this.
SLACK = 4


def min_fill(logs: Logs, max_width: int | None = None) -> tuple[list[int], int]:
    """Find an elimination order by min-fill, and its induced width.

    Deterministic: ties go to the smaller degree, then to the smaller variable number. The search
    stops when the width exceeds ``max_width`` and returns the partial order and that width. It is
    skipped if the faster minimum-degree order is wider than ``max_width + SLACK``.
    """
    n = len(logs.single)
    near = [0] * n  # neighbours as the bits of an integer
    for u, v in logs.pairs.tolist():
        near[u] |= 1 << v
        near[v] |= 1 << u
    if max_width is not None and (lowest := _min_degree(near)) > max_width + SLACK:
        return [], lowest
    cost = [(_fill(near, v), near[v].bit_count(), v) for v in range(n)]
    remaining, order, width = set(range(n)), [], 0
    while remaining:
        best = min(cost[v] for v in remaining)[2]
        neighbours = near[best]
        width = max(width, neighbours.bit_count())
        if max_width is not None and width > max_width:
            return order, width
        order.append(best)
        remaining.remove(best)
        _join(near, best)
        changed = neighbours
        for v in _bits(neighbours):
            changed |= near[v]
        for v in _bits(changed):
            cost[v] = (_fill(near, v), near[v].bit_count(), v)
    return order, width


def _min_degree(near: list[int]) -> int:
    near = list(near)
    remaining, width = set(range(len(near))), 0
    while len(remaining) > width:  # the remaining variables cannot be wider
        best = min(remaining, key=lambda v: (near[v].bit_count(), v))
        width = max(width, near[best].bit_count())
        remaining.remove(best)
        _join(near, best)
    return width


def _join(near: list[int], variable: int) -> None:
    neighbours = near[variable]
    for v in _bits(neighbours):
        near[v] = (near[v] | neighbours) & ~((1 << v) | (1 << variable))


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def _fill(near: list[int], variable: int) -> int:
    neighbours = near[variable]
    return sum((neighbours & ~near[v]).bit_count() - 1 for v in _bits(neighbours))


@dataclass
class _Mini:
    """One mini-bucket.

    Attributes:
        scope: variables in the order of elimination; the first is summed out.
        weight: weight of the mini-bucket; weights of a bucket sum to 1.
        true: P(first variable is true | the rest), shape (2,) * (len(scope) - 1).
        parent: mini-bucket that receives its message, if any.
        joint: distribution over the scope.
    """

    scope: tuple[int, ...]
    weight: float
    true: np.ndarray
    parent: _Mini | None = None
    joint: np.ndarray | None = None


# A scope in the order of elimination, its table, and the mini-bucket that sent it.
_Item = tuple[tuple[int, ...], np.ndarray, _Mini | None]


def eliminate(logs: Logs, order: Sequence[int], i_bound: int) -> np.ndarray:
    """Compute P(true) of each variable, shape (variables,), by weighted mini-buckets.

    Weighted mini-bucket elimination (Liu and Ihler, ICML 2011, Section 3): a bucket with more than
    ``i_bound + 1`` variables is split into parts. Each part sums its variable out with a power sum
    of weight w_r, sum_r w_r = 1, which bounds the bucket's sum from above (Hoelder); the weights
    are equal. Marginals are those of the bound's gradient: in the downward pass, a part's
    distribution is its parent's marginal times the part's conditional, and a variable's P is the
    weighted mean over its parts. Without split buckets, e.g. with an ``i_bound`` of the order's
    width, this is exact bucket elimination. The upward pass uses logarithms and the downward pass
    probabilities, which avoids overflow.
    """
    rank = {v: k for k, v in enumerate(order)}
    buckets: list[list[_Item]] = [[] for _ in order]
    for v, table in enumerate(logs.single):
        buckets[rank[v]].append(((v,), table, None))
    for (u, v), table in zip(logs.pairs.tolist(), logs.joint, strict=True):
        scope, table = ((u, v), table) if rank[u] < rank[v] else ((v, u), table.T)
        buckets[rank[scope[0]]].append((scope, table, None))
    minis: list[_Mini] = []
    for bucket in buckets:
        parts = _parts(bucket, rank, i_bound + 1)
        for part in parts:
            scope = tuple(sorted({u for inner, _, _ in part for u in inner}, key=rank.__getitem__))
            total = np.zeros((2,) * len(scope))
            for inner, table, _ in part:
                total += table.reshape([2 if u in inner else 1 for u in scope])
            total *= len(parts)  # divided by the weight
            mini = _Mini(scope, 1 / len(parts), expit(total[1] - total[0]))
            for _, _, child in part:
                if child is not None:
                    child.parent = mini
            if len(scope) > 1:
                message = mini.weight * np.logaddexp(total[0], total[1])
                buckets[rank[scope[1]]].append((scope[1:], message, mini))
            minis.append(mini)
    return _pass_down(minis, len(order))


def _parts(bucket: list[_Item], rank: dict[int, int], size: int) -> list[list[_Item]]:
    if len({u for scope, _, _ in bucket for u in scope}) <= size:
        return [bucket]
    parts: list[tuple[set[int], list[_Item]]] = []
    # The largest item first, each to the part that grows least.
    for item in sorted(bucket, key=lambda i: (-len(i[0]), [rank[u] for u in i[0]])):
        growth = [(len(inside | set(item[0])), len(inside)) for inside, _ in parts]
        fit = [
            (new - old, number)
            for number, (new, old) in enumerate(growth)
            if new <= size or new == old
        ]
        inside, content = parts[min(fit)[1]] if fit else (set(), [])
        if not fit:
            parts.append((inside, content))
        inside.update(item[0])
        content.append(item)
    return [content for _, content in parts]


def _pass_down(minis: Sequence[_Mini], variables: int) -> np.ndarray:
    p = np.zeros(variables)
    for mini in reversed(minis):
        rest: np.ndarray = np.float64(1.0)
        if mini.parent is not None:
            parent = mini.parent
            summed = tuple(i for i, u in enumerate(parent.scope) if u not in mini.scope)
            rest = parent.joint.sum(axis=summed)
        mini.joint = np.stack([rest * (1 - mini.true), rest * mini.true])
        p[mini.scope[0]] += mini.weight * mini.joint[1].sum()
    return p
