"""Core's integer program (2407.03572, Eq. 1), as a pure function of matrices.

    maximise    Σ wᵢ xᵢ,   x binary
    subject to  xᵢ + xⱼ ≤ 1     where claim i entails claim j or j entails i
                Σ pᵢ xᵢ ≤ 0     with pᵢ = p − 1[the source sentence entails claim i]

The second line is the coherence budget: at least a share p of the selected claims must be entailed
by the sentence they came from. The paper leaves p's value open; p = 0 switches the budget off and
p = 1 admits entailed claims only.

Where we go beyond or depart from the paper:

- Claims of weight ≤ 0 are removed first, so that bleached claims cannot buy budget for incoherent
  ones; ``strict=True`` keeps them in, as Eq. 1 is printed.
- The optimum need not be unique. Ties go to more claims, then to the smallest texts (the sorted
  texts compared one by one), so that permuting or duplicating claims changes nothing.
- Weights are compared in steps of ``STEP``, so that a sum of weights is exact and a tie is a tie.
- p is read as the nearest fraction with a denominator of at most ``MAX_DENOMINATOR``, so that
  "half of ten claims" is not lost to rounding.
"""

from collections.abc import Sequence
from fractions import Fraction

import highspy
import numpy as np
from scipy.sparse import csr_array, eye_array, vstack
from scipy.sparse.csgraph import connected_components

STEP = 1e-6
MAX_DENOMINATOR = 10_000
# How many texts of the tie-break one objective decides; few enough to be exact in HiGHS.
DIGITS = 16
# Rows of the exclusion graph whose neighbours are compared at a time.
BLOCK = 256
# A graph with at least one edge in so many places is as well kept whole.
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

    The budget couples all claims, so the exclusion graph is first solved component by component
    without it. If the union meets the budget it is the optimum; otherwise the whole program is
    solved.

    Args:
        weights: wᵢ, shape (n,), finite.
        entails: ``entails[i, j]`` where claim i entails claim j, shape (n, n), dense or sparse;
            either direction excludes, the diagonal is ignored. Memory grows with its pairs.
        coherent: whether the source sentence entails claim i, shape (n,).
        p: share of the selected claims that must be coherent, in [0, 1].
        strict: keep claims of weight ≤ 0.
        texts: n normalised texts; identical ones exclude each other whatever ``entails`` says.

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
    # Equal texts share a rank, so that the order knows texts and not their copies.
    _, ranks = np.unique(np.array([texts[i] for i in nodes], dtype=object), return_inverse=True)
    conflict = _conflicts(entails, nodes, ranks)

    chosen = _by_components(units, conflict, ranks)
    if share < 1 and budget[nodes] @ chosen > 0:
        chosen = _with_budget(units, conflict, ranks, budget[nodes])
    selected = np.zeros(len(weights), bool)
    selected[nodes[chosen]] = True
    return selected


def _conflicts(entails: csr_array, nodes: np.ndarray, ranks: np.ndarray) -> csr_array:
    """Which nodes exclude each other: symmetric, bool of shape (nodes, nodes), no diagonal."""
    between = entails[nodes][:, nodes]
    n = len(nodes)
    texts = csr_array((np.ones(n, bool), (np.arange(n), ranks)), shape=(n, n))  # ranks < n
    conflict = csr_array(between + between.T + texts @ texts.T)
    conflict.setdiag(False)  # every node has the text of itself, so the entry is there
    conflict.eliminate_zeros()
    return conflict


def _by_components(units: np.ndarray, conflict: csr_array, ranks: np.ndarray) -> np.ndarray:
    chosen = np.zeros(len(units), bool)
    left = _undominated(units, conflict, np.zeros_like(units))
    count, component = connected_components(conflict[left][:, left], directed=False)
    sizes = np.bincount(component, minlength=count)
    alone = left[sizes[component] == 1] if len(left) else left
    chosen[alone] = units[alone] >= 0  # at 0: more claims
    for part in np.flatnonzero(sizes > 1):
        inside = left[component == part]
        rows, upper = _exclusion_rows(conflict[inside][:, inside])
        chosen[inside] = maximise(units[inside], ranks[inside], rows, upper)
    return chosen


def _with_budget(
    units: np.ndarray, conflict: csr_array, ranks: np.ndarray, budget: np.ndarray
) -> np.ndarray:
    """The optimum of the whole program; ``budget`` has Eq. 1's pᵢ as whole numbers."""
    chosen = np.zeros(len(units), bool)
    left = _undominated(units, conflict, budget)
    rows, upper = _exclusion_rows(conflict[left][:, left])
    rows = vstack([rows, csr_array(budget[left][None, :])], format="csr")
    upper = np.append(upper, 0)
    chosen[left] = maximise(units[left], ranks[left], rows, upper)
    return chosen


def _undominated(units: np.ndarray, conflict: csr_array, budget: np.ndarray) -> np.ndarray:
    """Indices of the claims that an optimum may need, in order.

    Claim b can go when a claim a excludes it, excludes nothing that b does not, costs no more
    budget, and is better (heavier, or as heavy and earlier in the text order): any selection with
    b is beaten by the one with a in its place. This alone settles all cliques.
    """
    left = np.arange(len(units))
    while len(left):
        graph = conflict[left][:, left]
        graph.sort_indices()
        a, b = np.repeat(np.arange(len(left)), np.diff(graph.indptr)), graph.indices
        u, cost = units[left], budget[left]
        better = (u[a] > u[b]) | ((u[a] == u[b]) & (a < b))
        dominated = b[_within(graph) & better & (cost[a] <= cost[b])]
        if not len(dominated):
            break
        left = np.delete(left, np.unique(dominated))
    return left


def _within(graph: csr_array) -> np.ndarray:
    n = graph.shape[0]
    closed = (graph + eye_array(n, dtype=bool)).astype(np.float32)
    if closed.nnz * DENSE > n * n:
        closed = closed.toarray()
    found = []
    for start in range(0, n, BLOCK):
        block = graph[start : start + BLOCK].astype(np.float32)
        degree = np.diff(block.indptr)
        shared = block.toarray() @ closed  # (block, n); counts in float32 are exact and use BLAS
        a = np.repeat(np.arange(len(degree)), degree)
        found.append(shared[a, block.indices] == degree[a])
    return np.concatenate(found)


def _exclusion_rows(conflict: csr_array) -> tuple[csr_array, np.ndarray]:
    """Cliques of the exclusion graph that cover its edges: Σ xᵢ ≤ 1 over each of them.

    For whole numbers this says what xᵢ + xⱼ ≤ 1 for every edge says, with fewer and tighter rows.
    Each clique starts from an edge that none before it has, and takes such edges first.

    Returns:
        A sparse matrix of shape (cliques, n) and its upper bounds.
    """
    ends, neighbours = conflict.indptr, conflict.indices
    is_open = np.ones(conflict.nnz, bool)
    # Two sets of nodes, emptied after each use
    inside, beside = np.zeros((2, conflict.shape[0]), bool)
    cliques = []
    for first in range(conflict.shape[0]):
        own = slice(ends[first], ends[first + 1])
        while is_open[own].any():
            # Those with an open edge to the first claim, then the others
            left = neighbours[own][np.argsort(~is_open[own], kind="stable")]
            clique = [first]
            while len(left):
                clique.append(left[0])
                others = neighbours[ends[left[0]] : ends[left[0] + 1]]
                beside[others] = True
                left = left[beside[left]]
                beside[others] = False
            inside[clique] = True
            edges = np.concatenate([np.arange(ends[node], ends[node + 1]) for node in clique])
            is_open[edges[inside[neighbours[edges]]]] = False
            inside[clique] = False
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
    """The largest total weight over binary x; among those the most claims; then the first texts.

    Among selections of one size, the smaller sorted list of texts is the larger binary number when
    the first text is the highest digit; ``DIGITS`` of them are decided at a time.

    Args:
        units: whole-number weights, shape (n,).
        ranks: each claim's place in the order of texts, shape (n,).
        rows: whole-number constraint matrix of shape (m, n), ``rows @ x <= upper``.
        upper: shape (m,).

    Returns:
        x as bool of shape (n,).

    Raises:
        RuntimeError: HiGHS ended with anything but an optimum, or with one that does not hold in
            whole numbers.
    """
    units = units // max(1, int(np.gcd.reduce(units)))
    rows, lower = rows.astype(float), np.full(len(upper), -np.inf)
    x = _optimum(units, rows, lower, upper)
    ones = np.ones_like(units)
    if units[0] == 0 or (units != units[0]).any():  # else the weight is the number of claims
        if x.any():
            # The best of all others: Σ over x of (1 − xᵢ) + Σ over the rest of xᵢ ≥ 1.
            cut = csr_array(np.where(x, -1.0, 1.0)[None, :])
            other = _optimum(units, *_with_rows(rows, lower, upper, cut, 1 - x.sum(), np.inf))
            if units @ other < units @ x:
                return x.astype(bool)
        scale = 1 / min(1_000, max(1, np.abs(units).max()))
        floor, least = csr_array((units * scale)[None, :]), (units @ x - 0.5) * scale
        rows, lower, upper = _with_rows(rows, lower, upper, floor, least, np.inf)
        x = _optimum(ones, rows, lower, upper)
    rows, lower, upper = _with_rows(rows, lower, upper, csr_array([ones]), x.sum(), x.sum())
    distinct = np.unique(ranks)
    for start in range(0, len(distinct), DIGITS):
        some = distinct[start : start + DIGITS]
        member = (ranks == some[:, None]).astype(float)  # (texts, n)
        x = _optimum(2 ** np.arange(len(some))[::-1] @ member, rows, lower, upper)
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
    """Maximise one whole-number objective over binary x with HiGHS, no gap allowed.

    The optimum is checked again after rounding, so that a tolerance of the solver's can never let
    a broken constraint through.
    """
    n = len(objective)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n, rows.shape[0]
    lp.sense_ = highspy.ObjSense.kMaximize
    # HiGHS's tolerances are absolute: keep the coefficients small.
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
        raise RuntimeError("Core: HiGHS's optimum breaks a constraint when rounded")
    return x
