"""Entity linking: assign groups of claims to retrieved titles.

Source: Merging Facts, Crafting Fallacies (2402.05629), appendix C.1.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

Assignment = Literal["argmax", "hungarian"]


def link_groups(
    support: np.ndarray,
    supported: np.ndarray,
    groups: Sequence[str | None],
    assignment: Assignment = "argmax",
) -> dict[str, int | None]:
    """Link each group to a title (2402.05629, appendix C.1, equation 1).

    With ``argmax``, a group is linked to the title that supports most of its claims. Ties go to the
    larger mean probability, then to the order of retrieval (released code: alphabetical order).

    With ``hungarian``, each title is linked to at most one group. The assignment maximizes the
    number of supported claims, then the sum of probabilities. If there are more groups than
    titles, the remaining groups are linked by argmax.

    Missing answers (NaN) never decide a link: a group is not linked if another title would win by
    supporting all claims with missing answers. With ``hungarian``, then no group is linked.

    Args:
        support: probability that a title supports a claim, shape (claims, titles); NaN if missing.
        supported: whether a title supports a claim, shape (claims, titles).
        groups: group label of each claim, or ``None``.

    Returns:
        Group label to column of ``support``, or ``None`` if not linked; empty without titles.
    """
    labels = list(dict.fromkeys(label for label in groups if label is not None))
    if not labels or not support.shape[1]:
        return {}
    rows = [np.array([members == label for members in groups]) for label in labels]
    # Number of supported claims plus the summed probability as a fraction below 1
    counts = np.stack([supported[members].sum(axis=0) for members in rows])  # (groups, titles)
    sums = np.stack([np.nansum(support[members], axis=0) for members in rows])
    score = counts + sums / (len(groups) + 1)
    chosen = _assign(score, assignment)
    # Best case of the other titles: every missing answer is support with probability 1.
    missing = np.stack([np.isnan(support[members]).sum(axis=0) for members in rows])
    best_case = score + missing * (1 + 1 / (len(groups) + 1))
    members = (np.arange(len(labels)), chosen)
    best_case[members] = score[members]
    certain = _assign(best_case, assignment) == chosen
    if assignment == "hungarian":
        certain[:] = certain.all()
    return {
        label: int(title) if is_certain else None
        for label, title, is_certain in zip(labels, chosen, certain, strict=True)
    }


def _assign(score: np.ndarray, assignment: Assignment) -> np.ndarray:
    columns = np.argmax(score, axis=1)
    if assignment == "hungarian":
        groups, titles = linear_sum_assignment(score, maximize=True)
        columns[groups] = titles
    return columns


def link_claims(supported: np.ndarray) -> list[int | None]:
    """Link each claim to a title without groups (2402.05629, appendix B.1).

    Of the titles that support a claim, the one that supports most of the document's claims is
    linked; ``None`` without such a title. The number of titles is B.1's number of entities.
    """
    order = np.argsort(-supported.sum(axis=0), kind="stable")
    return [next((int(t) for t in order if row[t]), None) for row in supported]
