"""What makes Core's program fast and its optimum unique: dominance, cliques and ties."""

from collections.abc import Iterator

import highspy
import numpy as np
from scipy.sparse import csr_array, eye_array, vstack
from scipy.sparse.csgraph import connected_components

# Claims that one objective of the tie-break decides; few enough to be exact in HiGHS
DIGITS = 16
# Rows of the exclusion graph per matrix product
BLOCK = 256
# Graphs with at least 1 edge per DENSE entries are stored as dense matrices.
DENSE = 32


def components(exclusion: csr_array, nodes: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the nodes without an edge as one array, then those of each connected component."""
    count, component = connected_components(exclusion[nodes][:, nodes], directed=False)
    is_single = np.bincount(component, minlength=count)[component] == 1
    yield nodes[is_single]
    for number in np.unique(component[~is_single]):
        yield nodes[component == number]


def undominated(units: np.ndarray, exclusion: csr_array, budget: np.ndarray) -> np.ndarray:
    """Return the indices of the claims that an optimum may contain, in order.

    Claim b is removed if a claim a excludes it, excludes nothing else that b does not, costs no
    more budget, and is better (heavier, or as heavy and earlier): replacing b by a improves any
    selection. This solves all cliques.
    """
    nodes = np.arange(len(units))
    while len(nodes):
        graph = exclusion[nodes][:, nodes]
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


def clique_rows(exclusion: csr_array) -> csr_array:
    """Return the cliques that cover the edges of the exclusion graph, as rows (cliques, n).

    Σ xᵢ ≤ 1 over each clique is equivalent to xᵢ + xⱼ ≤ 1 for every edge, with fewer and tighter
    rows. Each clique starts from an uncovered edge and prefers uncovered edges.
    """
    exclusion.sort_indices()
    ends, neighbours = exclusion.indptr, exclusion.indices
    is_open = np.ones(exclusion.nnz, bool)
    # masks of nodes, reset after each use
    in_clique, adjacent = np.zeros((2, exclusion.shape[0]), bool)
    cliques = []
    for first in range(exclusion.shape[0]):
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
    starts = np.cumsum([0, *map(len, cliques)])
    columns = np.concatenate([[], *cliques]).astype(np.int64)
    shape = (len(cliques), exclusion.shape[0])
    return csr_array((np.ones(len(columns), np.int64), columns, starts), shape=shape)


def first_optimum(units: np.ndarray, rows: csr_array, upper: np.ndarray) -> np.ndarray:
    """Maximise the total weight over binary x, then the number of claims, then earlier claims.

    For selections of equal size, the earlier claims are the larger binary number whose highest
    digit is the first claim; ``DIGITS`` digits are decided at a time.

    Args:
        units: whole-number weights, shape (n,).
        rows: whole-number constraint matrix of shape (m, n), ``rows @ x <= upper``.
        upper: shape (m,).

    Returns:
        x as bool of shape (n,).

    Raises:
        RuntimeError: HiGHS found no optimum, or one that violates a constraint when rounded.
    """
    units = units // max(1, int(np.gcd.reduce(units)))
    count, free = np.ones_like(units), (np.zeros(len(units)), np.ones(len(units)))
    program = rows.astype(float), np.full(len(upper), -np.inf), upper
    x = _optimum(units, program, free)
    if units[0] == 0 or (units != units[0]).any():  # else the weight is the number of claims
        if x.any():
            # The second-best solution: Σ over x of (1 − xᵢ) + Σ over the rest of xᵢ ≥ 1.
            cut = _with_row(program, np.where(x, -1, 1), 1 - x.sum(), np.inf)
            if units @ _optimum(units, cut, free) < units @ x:
                return x.astype(bool)
        scale = 1 / min(1_000, max(1, np.abs(units).max()))
        program = _with_row(program, units * scale, (units @ x - 0.5) * scale, np.inf)
        x = _optimum(count, program, free)
    program = _with_row(program, count, x.sum(), x.sum())
    for start in range(0, len(units), DIGITS):
        digits = slice(start, start + DIGITS)
        digit_values = np.zeros_like(units)
        digit_values[digits] = 2 ** np.arange(len(units[digits]))[::-1]
        x = _optimum(digit_values, program, free)
        for bound in free:
            bound[digits] = x[digits]
    return x.astype(bool)


# rows, their lower and their upper bounds
Program = tuple[csr_array, np.ndarray, np.ndarray]


def _with_row(program: Program, row: np.ndarray, at_least: float, at_most: float) -> Program:
    rows, lower, upper = program
    rows = vstack([rows, csr_array(row[None, :].astype(float))], format="csr")
    return rows, np.append(lower, at_least), np.append(upper, at_most)


def _optimum(
    objective: np.ndarray, program: Program, bounds: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Maximise a whole-number objective over binary x within its bounds with HiGHS without a gap.

    The rounded solution is checked against the constraints.
    """
    rows, lower, upper = program
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(objective), rows.shape[0]
    lp.sense_ = highspy.ObjSense.kMaximize
    # HiGHS's tolerances are absolute, so coefficients must be small
    lp.col_cost_ = objective / min(1_000, max(1, np.abs(objective).max()))
    lp.col_lower_, lp.col_upper_ = bounds
    lp.row_lower_, lp.row_upper_ = lower, upper
    lp.integrality_ = [highspy.HighsVarType.kInteger] * len(objective)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = rows.indptr, rows.indices
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
