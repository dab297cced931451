"""Core's integer program (2407.03572, Eq. 1), as a pure function of matrices.

    maximise    Σ wᵢ xᵢ,   x binary
    subject to  xᵢ + xⱼ ≤ 1     where claim i entails claim j or j entails i
                Σ pᵢ xᵢ ≤ 0     with pᵢ = p − 1[the source sentence entails claim i]

The second constraint is the coherence budget: the source sentences must entail at least a share p
of the selected claims. The paper does not state p; p = 0 disables the budget and p = 1 only allows
entailed claims.

Extensions and departures:

- Claims with weight ≤ 0 are removed first, so that bleached claims cannot provide budget for
  incoherent ones; ``strict=True`` keeps them, as Eq. 1 is printed.
- Ties go to more claims, then to the smallest sorted texts, so that permuting or duplicating claims
  does not change the result.
- Weights are multiples of ``STEP``, so that sums are exact and ties are equal.
- p is rounded to the nearest fraction with a denominator of at most ``MAX_DENOMINATOR``, so that
  "half of ten claims" is exact.
"""

from collections.abc import Sequence
from fractions import Fraction

import highspy
import numpy as np
from scipy.sparse import csr_array, eye_array, vstack
from scipy.sparse.csgraph import connected_components

STEP = 1e-6
MAX_DENOMINATOR = 10_000
# Texts that one objective of the tie-break decides; few enough to be exact in HiGHS
DIGITS = 16
# Rows of the exclusion graph per matrix product
BLOCK = 256
# Graphs with at least 1 edge per DENSE entries are stored as dense matrices.
DENSE = 32


def solve(
    weights: np.ndarray,
    entails: np.ndarray | csr_array,
    coherent: np.ndarray,
    p: float,
    strict: bool,
    texts: Sequence[str],
) -> np.ndarray:
    """Solve Eq. 1 to optimality.

    The components of the exclusion graph are first solved separately without the budget. If their
    union meets the budget, it is the optimum; otherwise the whole program is solved.

    Args:
        weights: wᵢ, shape (n,), finite.
        entails: whether claim i entails claim j, shape (n, n), dense or sparse; either direction
            excludes, the diagonal is ignored.
        coherent: whether the source sentence entails claim i, shape (n,).
        p: share of the selected claims that must be coherent, in [0, 1].
        strict: keep claims with weight ≤ 0.
        texts: n normalised texts; identical texts always exclude each other.

    Returns:
        Which claims are selected, bool of shape (n,).

    Raises:
        RuntimeError: HiGHS did not end with an optimum; the message holds its status.
    """
    weights, coherent = np.asarray(weights, float), np.asarray(coherent, bool)
    entails = csr_array(entails, dtype=bool)
    share = Fraction(p).limit_denominator(MAX_DENOMINATOR)
    # Coefficients of the budget, times the denominator so that they are whole numbers.
    budget = share.numerator - share.denominator * coherent.astype(np.int64)

    allowed = np.ones(len(weights), bool) if strict else weights > 0
    if share == 1:  # every pᵢ is ≥ 0, so the budget is met exactly by coherent claims
        allowed &= coherent
    # Canonical order: by text; among identical texts the coherent one, then the earlier one.
    nodes = sorted(np.flatnonzero(allowed), key=lambda i: (texts[i], budget[i], i))
    nodes = np.array(nodes, dtype=np.int64)
    units = np.rint(weights[nodes] / STEP).astype(np.int64)
    # equal texts share a rank
    _, ranks = np.unique(np.array([texts[i] for i in nodes], dtype=object), return_inverse=True)
    conflict = _conflicts(entails, nodes, ranks)

    chosen = _by_components(units, conflict, ranks)
    if share < 1 and budget[nodes] @ chosen > 0:
        chosen = _with_budget(units, conflict, ranks, budget[nodes])
    selected = np.zeros(len(weights), bool)
    selected[nodes[chosen]] = True
    return selected


def _conflicts(entails: csr_array, nodes: np.ndarray, ranks: np.ndarray) -> csr_array:
    """The symmetric exclusion matrix, bool of shape (nodes, nodes), without the diagonal."""
    between = entails[nodes][:, nodes]
    n = len(nodes)
    texts = csr_array((np.ones(n, bool), (np.arange(n), ranks)), shape=(n, n))  # ranks < n
    conflict = csr_array(between + between.T + texts @ texts.T)
    conflict.setdiag(False)
    conflict.eliminate_zeros()
    return conflict


def _by_components(units: np.ndarray, conflict: csr_array, ranks: np.ndarray) -> np.ndarray:
    chosen = np.zeros(len(units), bool)
    nodes = _undominated(units, conflict, np.zeros_like(units))
    count, component = connected_components(conflict[nodes][:, nodes], directed=False)
    sizes = np.bincount(component, minlength=count)
    isolated = nodes[sizes[component] == 1] if len(nodes) else nodes
    chosen[isolated] = units[isolated] >= 0  # at 0: more claims
    for part in np.flatnonzero(sizes > 1):
        inside = nodes[component == part]
        rows, upper = _exclusion_rows(conflict[inside][:, inside])
        chosen[inside] = maximise(units[inside], ranks[inside], rows, upper)
    return chosen


def _with_budget(
    units: np.ndarray, conflict: csr_array, ranks: np.ndarray, budget: np.ndarray
) -> np.ndarray:
    """Solve the whole program; ``budget`` contains Eq. 1's pᵢ as whole numbers."""
    chosen = np.zeros(len(units), bool)
    nodes = _undominated(units, conflict, budget)
    rows, upper = _exclusion_rows(conflict[nodes][:, nodes])
    rows = vstack([rows, csr_array(budget[nodes][None, :])], format="csr")
    upper = np.append(upper, 0)
    chosen[nodes] = maximise(units[nodes], ranks[nodes], rows, upper)
    return chosen


def _undominated(units: np.ndarray, conflict: csr_array, budget: np.ndarray) -> np.ndarray:
    """Indices of the claims that an optimum may contain, in order.

    Claim b is removed if a claim a excludes it, excludes nothing else that b does not, costs no
    more budget, and is better (heavier, or as heavy and earlier in text order): replacing b by a
    improves any selection. This solves all cliques.
    """
    nodes = np.arange(len(units))
    while len(nodes):
        graph = conflict[nodes][:, nodes]
        graph.sort_indices()
        a, b = np.repeat(np.arange(len(nodes)), np.diff(graph.indptr)), graph.indices
        u, cost = units[nodes], budget[nodes]
        better = (u[a] > u[b]) | ((u[a] == u[b]) & (a < b))
        dominated = b[_within(graph) & better & (cost[a] <= cost[b])]
        if not len(dominated):
            break
        nodes = np.delete(nodes, np.unique(dominated))
    return nodes


def _within(graph: csr_array) -> np.ndarray:
    n = graph.shape[0]
    closed = (graph + eye_array(n, dtype=bool)).astype(np.float32)
    if closed.nnz * DENSE > n * n:
        closed = closed.toarray()
    results = []
    for start in range(0, n, BLOCK):
        block = graph[start : start + BLOCK].astype(np.float32)
        degree = np.diff(block.indptr)
        shared = block.toarray() @ closed  # (block, n); counts in float32 are exact and use BLAS
        a = np.repeat(np.arange(len(degree)), degree)
        results.append(shared[a, block.indices] == degree[a])
    return np.concatenate(results)


def _exclusion_rows(conflict: csr_array) -> tuple[csr_array, np.ndarray]:
    """Constraints Σ xᵢ ≤ 1 over cliques that cover the edges of the exclusion graph.

    For whole numbers they are equivalent to xᵢ + xⱼ ≤ 1 for every edge, with fewer and tighter
    rows. Each clique starts from an uncovered edge and prefers uncovered edges.

    Returns:
        A sparse matrix of shape (cliques, n) and its upper bounds.
    """
    ends, neighbours = conflict.indptr, conflict.indices
    is_open = np.ones(conflict.nnz, bool)
    # masks of nodes, reset after each use
    in_clique, adjacent = np.zeros((2, conflict.shape[0]), bool)
    cliques = []
    for first in range(conflict.shape[0]):
        edges_of = slice(ends[first], ends[first + 1])
        while is_open[edges_of].any():
            # nodes with an uncovered edge to the first node come first
            candidates = neighbours[edges_of][np.argsort(~is_open[edges_of], kind="stable")]
            clique = [first]
            while len(candidates):
                clique.append(candidates[0])
                following = neighbours[ends[candidates[0]] : ends[candidates[0] + 1]]
                adjacent[following] = True
                candidates = candidates[adjacent[candidates]]
                adjacent[following] = False
            in_clique[clique] = True
            edges = np.concatenate([np.arange(ends[node], ends[node + 1]) for node in clique])
            is_open[edges[in_clique[neighbours[edges]]]] = False
            in_clique[clique] = False
            cliques.append(np.sort(clique))
    sizes = [len(clique) for clique in cliques]
    rows, columns = np.repeat(np.arange(len(cliques)), sizes), np.concatenate([[], *cliques])
    matrix = csr_array(
        (np.ones(rows.size, np.int64), (rows, columns.astype(np.int64))),
        shape=(len(cliques), conflict.shape[0]),
    )
    return matrix, np.ones(len(cliques), np.int64)


def maximise(
    units: np.ndarray, ranks: np.ndarray, rows: csr_array, upper: np.ndarray
) -> np.ndarray:
    """Maximise the total weight over binary x, then the number of claims, then text order.

    For selections of equal size, the smaller sorted list of texts is the larger binary number whose
    highest digit is the first text; ``DIGITS`` digits are decided at a time.

    Args:
        units: whole-number weights, shape (n,).
        ranks: rank of each claim's text, shape (n,).
        rows: whole-number constraint matrix of shape (m, n), ``rows @ x <= upper``.
        upper: shape (m,).

    Returns:
        x as bool of shape (n,).

    Raises:
        RuntimeError: HiGHS found no optimum, or one that violates a constraint when rounded.
    """
    units = units // max(1, int(np.gcd.reduce(units)))
    rows, lower = rows.astype(float), np.full(len(upper), -np.inf)
    x = _optimum(units, rows, lower, upper)
    unit_weights = np.ones_like(units)
    if units[0] == 0 or (units != units[0]).any():  # else the weight is the number of claims
        if x.any():
            # The second-best solution: Σ over x of (1 − xᵢ) + Σ over the rest of xᵢ ≥ 1.
            cut = csr_array(np.where(x, -1.0, 1.0)[None, :])
            second = _optimum(units, *_with_rows(rows, lower, upper, cut, 1 - x.sum(), np.inf))
            if units @ second < units @ x:
                return x.astype(bool)
        scale = 1 / min(1_000, max(1, np.abs(units).max()))
        floor, least = csr_array((units * scale)[None, :]), (units @ x - 0.5) * scale
        rows, lower, upper = _with_rows(rows, lower, upper, floor, least, np.inf)
        x = _optimum(unit_weights, rows, lower, upper)
    rows, lower, upper = _with_rows(rows, lower, upper, csr_array([unit_weights]), x.sum(), x.sum())
    distinct = np.unique(ranks)
    for start in range(0, len(distinct), DIGITS):
        digits = distinct[start : start + DIGITS]
        member = (ranks == digits[:, None]).astype(float)  # (texts, n)
        x = _optimum(2 ** np.arange(len(digits))[::-1] @ member, rows, lower, upper)
        fixed = member @ x
        rows, lower, upper = _with_rows(rows, lower, upper, csr_array(member), fixed, fixed)
    return x.astype(bool)


def _with_rows(
    rows: csr_array,
    lower: np.ndarray,
    upper: np.ndarray,
    more: csr_array,
    at_least: float | np.ndarray,
    at_most: float | np.ndarray,
) -> tuple[csr_array, np.ndarray, np.ndarray]:
    rows = vstack([rows, more], format="csr")
    return rows, np.append(lower, at_least), np.append(upper, at_most)


def _optimum(
    objective: np.ndarray, rows: csr_array, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Maximise a whole-number objective over binary x with HiGHS without a gap.

    The rounded solution is checked against the constraints.
    """
    n = len(objective)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n, rows.shape[0]
    lp.sense_ = highspy.ObjSense.kMaximize
    # HiGHS's tolerances are absolute, so coefficients must be small
    lp.col_cost_ = objective / min(1_000, max(1, np.abs(objective).max()))
    lp.col_lower_, lp.col_upper_ = np.zeros(n), np.ones(n)
    lp.row_lower_, lp.row_upper_ = lower, upper.astype(float)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * n
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = rows.indptr.astype(np.int32)
    lp.a_matrix_.index_ = rows.indices.astype(np.int32)
    lp.a_matrix_.value_ = rows.data
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("parallel", "off")
    for gap in ("mip_rel_gap", "mip_abs_gap"):
        model.setOptionValue(gap, 0.0)
    for tolerance in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
        model.setOptionValue(tolerance, 1e-9)
    model.passModel(lp)
    model.run()
    status = model.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"Core: HiGHS ended with {model.modelStatusToString(status)!r}")
    x = np.rint(model.getSolution().col_value).astype(np.int64)
    inside = rows @ x
    if np.any(inside < lower) or np.any(inside > upper):
        raise RuntimeError("Core: HiGHS's optimum violates a constraint when rounded")
    return x
