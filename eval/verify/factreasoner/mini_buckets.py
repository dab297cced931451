"""Weighted mini-buckets: FactReasoner's published solver, and an upper bound of ln Z."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from eval.verify.factreasoner.elimination import scopes_and_tables
from eval.verify.factreasoner.network import Logs

# How far a matching step goes towards equal marginals; a whole step may swing.
STEP = 0.5


@dataclass
class _Mini:
    """One mini-bucket.

    Attributes:
        scope: its variables in the order of elimination; the first is summed out.
        table: sum of its factors' logarithms, shape (2,) * len(scope).
        weight: its share of the variable; those of one bucket add up to 1.
        children: the mini-buckets whose messages it takes.
        parent: the one that takes its message, if any.
        message: what it sends, over ``scope[1:]``.
        true: P(first variable is true | the rest).
        joint: its distribution over the scope.
    """

    scope: tuple[int, ...]
    table: np.ndarray
    weight: float
    children: list[int] = field(default_factory=list)
    parent: int | None = None
    message: np.ndarray | None = None
    true: np.ndarray | None = None
    joint: np.ndarray | None = None


def mini_buckets(
    logs: Logs, order: list[int], i_bound: int, rounds: int = 1
) -> tuple[np.ndarray, float]:
    """P(true) of each variable, shape (variables,), and an upper bound of ln Z.

    Weighted mini-bucket elimination (Liu and Ihler, ICML 2011, Section 3): a bucket that holds
    more than ``i_bound + 1`` variables is split into parts that fit, and each sums its variable
    out with a power sum of weight w_r, sum_r w_r = 1, which bounds the bucket's sum from above
    (Hoelder). Marginals are those of the bound's gradient: downwards, a part's distribution is its
    parent's marginal times the part's conditional, and a variable's P is the weighted mean over
    its parts. Where no bucket is split this is exact elimination.

    Every further round first moves mass between the parts of a bucket until their marginals of the
    variable agree (moment matching, Section 4), which changes nothing of the product and tightens
    the bound; the lowest bound found is returned with its marginals. One round, with equal
    weights, is the plain method. A factor of more than ``i_bound + 1`` variables is kept whole.
    """
    minis, buckets = _split(logs, order, i_bound)
    best, bound = np.empty(len(order)), np.inf
    for _ in range(max(1, rounds)):
        found = logs.constant + _upwards(minis)
        p = _downwards(minis, buckets)
        if found < bound or not np.isfinite(bound):
            best, bound = p, found
        if found == -np.inf:
            break
        _match(minis, buckets)
    return best, float(bound)


def _split(logs: Logs, order: list[int], i_bound: int) -> tuple[list[_Mini], list[list[int]]]:
    place = {v: k for k, v in enumerate(order)}
    waiting: list[list[tuple]] = [[] for _ in order]
    for scope, table in scopes_and_tables(logs):
        axes = sorted(range(len(scope)), key=lambda k: place[scope[k]])
        scope = tuple(scope[k] for k in axes)
        waiting[place[scope[0]]].append((scope, np.transpose(table, axes), None))
    minis: list[_Mini] = []
    buckets: list[list[int]] = [[] for _ in order]
    for k, v in enumerate(order):
        parts: list[tuple[set[int], list]] = []
        # The largest first, each to the part that it makes the least larger.
        items = sorted(waiting[k], key=lambda i: (-len(i[0]), [place[u] for u in i[0]]))
        for item in items:
            grown = [(len(part[0] | set(item[0])), number) for number, part in enumerate(parts)]
            fit = [
                (size - len(parts[number][0]), number)
                for size, number in grown
                if size <= i_bound + 1 or size == len(parts[number][0])
            ]
            if fit:
                inside, content = parts[min(fit)[1]]
                inside.update(item[0])
                content.append(item)
            else:
                parts.append((set(item[0]), [item]))
        for inside, content in parts:
            scope = tuple(sorted(inside, key=place.__getitem__))
            mini = _Mini(scope, np.zeros((2,) * len(scope)), 1 / len(parts))
            number = len(minis)
            for own, table, child in content:
                if child is None:
                    mini.table += _spread(own, table, scope)
                else:
                    mini.children.append(child)
                    minis[child].parent = number
            if len(scope) > 1:
                waiting[place[scope[1]]].append((scope[1:], None, number))
            minis.append(mini)
            buckets[place[v]].append(number)
    return minis, buckets


def _spread(own: tuple[int, ...], table: np.ndarray, scope: tuple[int, ...]) -> np.ndarray:
    return table.reshape([2 if u in own else 1 for u in scope])


def _upwards(minis: list[_Mini]) -> float:
    bound = 0.0
    for mini in minis:
        total = mini.table.copy()
        for child in mini.children:
            total += _spread(minis[child].scope[1:], minis[child].message, mini.scope)
        total /= mini.weight
        mini.message = mini.weight * np.logaddexp(total[0], total[1])
        with np.errstate(invalid="ignore"):
            odds = np.nan_to_num(total[1] - total[0], nan=0.0, posinf=1e3, neginf=-1e3)
        mini.true = expit(odds)
        if len(mini.scope) == 1:
            bound += float(mini.message)
    return bound


def _downwards(minis: list[_Mini], buckets: list[list[int]]) -> np.ndarray:
    for mini in reversed(minis):
        rest: np.ndarray = np.float64(1.0)
        if mini.parent is not None:
            above = minis[mini.parent]
            lost = tuple(i for i, u in enumerate(above.scope) if u not in mini.scope)
            rest = above.joint.sum(axis=lost)
        mini.joint = np.stack([rest * (1 - mini.true), rest * mini.true])
    p = np.zeros(len(buckets))
    for numbers in buckets:
        parts = [minis[number] for number in numbers]
        p[parts[0].scope[0]] = sum(part.weight * part.joint[1].sum() for part in parts)
    return p


def _match(minis: list[_Mini], buckets: list[list[int]]) -> None:
    for numbers in buckets:
        parts = [minis[number] for number in numbers]
        if len(parts) < 2:
            continue
        weight = np.array([part.weight for part in parts])
        own = np.array([part.joint.reshape(2, -1).sum(axis=1) for part in parts])
        own = np.log(np.maximum(own, 1e-12))
        shift = STEP * weight[:, None] * (weight @ own - own)
        for part, table in zip(parts, shift, strict=True):
            part.table += table.reshape((2,) + (1,) * (len(part.scope) - 1))
