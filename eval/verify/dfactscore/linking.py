"""Entity linking: which of the retrieved people a group of claims is about.

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
    """The title that each group is linked to (2402.05629, appendix C.1, equation 1).

    Of a group each title supports a share of the claims; the largest share wins. Of equal ones the
    larger mean probability decides, then the order of retrieval (the released code takes the title
    that is first in the alphabet).

    ``hungarian`` gives no two groups one title: it finds the assignment under which most claims
    are supported, the summed probability deciding between equal ones. Groups in excess of the
    titles are linked by argmax.

    What is not told of a claim and a title never decides: a group has no link where another title
    would win if it supported all claims of which nothing was told. In an assignment one link hangs
    on the others, so that then no group has one.

    Args:
        support: probability that a title supports a claim, shape (claims, titles); NaN: not told.
        supported: whether it does, shape (claims, titles).
        groups: label of each claim; a claim without one takes part in no group.

    Returns:
        Group label → column of ``support``, ``None`` where that was not told; empty without titles.
    """
    labels = list(dict.fromkeys(label for label in groups if label is not None))
    if not labels or not support.shape[1]:
        return {}
    rows = [np.array([own == label for own in groups]) for label in labels]
    # Claims that a title supports, and behind the decimal point their probability
    counts = np.stack([supported[own].sum(axis=0) for own in rows])  # (groups, titles)
    sums = np.stack([np.nansum(support[own], axis=0) for own in rows])
    worth = counts + sums / (len(groups) + 1)
    chosen = _assigned(worth, assignment)
    # The others at their best: what was not told of them would be support of probability 1.
    untold = np.stack([np.isnan(support[own]).sum(axis=0) for own in rows])
    rival = worth + untold * (1 + 1 / (len(groups) + 1))
    own = (np.arange(len(labels)), chosen)
    rival[own] = worth[own]
    told = _assigned(rival, assignment) == chosen
    if assignment == "hungarian":
        told[:] = told.all()
    return {
        label: int(title) if sure else None
        for label, title, sure in zip(labels, chosen, told, strict=True)
    }


def _assigned(worth: np.ndarray, assignment: Assignment) -> np.ndarray:
    found = np.argmax(worth, axis=1)
    if assignment == "hungarian":
        groups, titles = linear_sum_assignment(worth, maximize=True)
        found[groups] = titles
    return found


def link_claims(supported: np.ndarray) -> list[int | None]:
    """The title of each claim when every claim is linked by itself (2402.05629, appendix B.1).

    Of the titles that support a claim, the one that supports most of the document's claims; the
    number of different titles is B.1's number of entities.

    Args:
        supported: whether a title supports a claim, shape (claims, titles).

    Returns:
        A column a claim; ``None`` where no title supports it.
    """
    order = np.argsort(-supported.sum(axis=0), kind="stable")
    return [next((int(t) for t in order if own[t]), None) for own in supported]
