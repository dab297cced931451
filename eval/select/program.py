"""Core's integer program (2407.03572, Eq. 1), as a pure function of matrices.

    maximise    Σ wᵢ xᵢ,   x binary
    subject to  xᵢ + xⱼ ≤ 1     where claim i entails claim j or j entails i
                Σ pᵢ xᵢ ≤ 0     with pᵢ = p − 1[the source sentence entails claim i]

The second constraint is the coherence budget: the source sentences must entail at least a share p
of the selected claims. The paper does not state p; p = 0 disables the budget and p = 1 only allows
entailed claims. ``program_parts.py`` contains what makes the program fast and its optimum unique.

Extensions and departures:

- Ties go to more claims, then to the earlier claims. Core passes claims that entail others first,
  then in the order of their texts, so that permuting or duplicating claims changes nothing.
- Weights are multiples of ``STEP``, so that sums are exact and ties are equal.
- p is rounded to the nearest fraction with a denominator of at most ``MAX_DENOMINATOR``, so that
  "half of ten claims" is exact.
"""

from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array, vstack

from eval.select.program_parts import clique_rows, components, first_optimum, undominated

STEP = 1e-6
MAX_DENOMINATOR = 10_000


def solve(
    weights: np.ndarray, exclusion: np.ndarray | csr_array, coherent: np.ndarray, p: float
) -> np.ndarray:
    """Solve Eq. 1 to optimality.

    The program is first solved without the budget, which separates it into the components of the
    exclusion graph. If that optimum meets the budget, it is the solution.

    Args:
        weights: wᵢ, shape (n,), finite.
        exclusion: whether claim i entails claim j or j entails i, shape (n, n), symmetric.
        coherent: whether the source sentence entails claim i, shape (n,).
        p: share of the selected claims that must be coherent, in [0, 1].

    Returns:
        Which claims are selected, bool of shape (n,).

    Raises:
        RuntimeError: HiGHS did not end with an optimum; the message holds its status.
    """
    units = np.rint(np.asarray(weights, float) / STEP).astype(np.int64)
    share = Fraction(p).limit_denominator(MAX_DENOMINATOR)
    # pᵢ times the denominator of p, so that the coefficients are whole numbers
    budget = share.numerator - share.denominator * np.asarray(coherent, np.int64)
    exclusion = csr_array(exclusion, dtype=bool)
    selected = np.zeros(len(units), bool)
    nodes = undominated(units, exclusion, np.zeros_like(units))
    for part in components(exclusion, nodes):
        selected[part] = _maximise(units[part], exclusion[part][:, part])
    if budget @ selected > 0:
        selected[:] = False
        nodes = undominated(units, exclusion, budget)
        graph = exclusion[nodes][:, nodes]
        selected[nodes] = _maximise(units[nodes], graph, budget[nodes])
    return selected


def _maximise(
    units: np.ndarray, exclusion: csr_array, budget: np.ndarray | None = None
) -> np.ndarray:
    if not exclusion.nnz and budget is None:
        return units >= 0  # at weight 0: more claims
    rows = clique_rows(exclusion)  # xᵢ + xⱼ ≤ 1 for all pairs of a clique: Σ xᵢ ≤ 1
    upper = np.ones(rows.shape[0])
    if budget is not None:
        rows, upper = vstack([rows, csr_array(budget[None, :])], format="csr"), np.append(upper, 0)
    return first_optimum(units, rows, upper)
