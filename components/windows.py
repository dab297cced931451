"""Long premises: cut into windows that overlap, judged one by one, and the best one counts.

FactReasoner (2502.18573) and WiCE judge a claim against the window that supports it best.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from components.encoding import Pair
from components.overlap import focus_premise, mark_new_words


def chunk_premise(premise: str, chunk_words: int | None) -> list[str]:
    """Cut a long premise into windows of ``chunk_words`` words, each overlapping half the last.

    A premise that fits, or ``chunk_words=None``, is one window.
    """
    words = premise.split()
    if chunk_words is None or len(words) <= chunk_words:
        return [premise]
    step = max(1, chunk_words // 2)
    starts = range(0, len(words) - chunk_words + step, step)
    return [" ".join(words[start : start + chunk_words]) for start in starts]


def chunks_of(premises: Iterable[str], chunk_words: int | None) -> list[list[str]]:
    """The windows of each premise; of equal premises, which meet many hypotheses, the same ones.

    So they are cut and stand in memory once.
    """
    premises = list(premises)
    cut = {premise: chunk_premise(premise, chunk_words) for premise in set(premises)}
    return [cut[premise] for premise in premises]


def windows_of(
    pairs: Sequence[Pair],
    chunk_words: int | None,
    focus_words: int | None = None,
    mark_new: bool = False,
) -> tuple[list[int], list[Pair]]:
    """The windows of all premises, each with its hypothesis, as a model reads them.

    Args:
        pairs: (premise, hypothesis).
        chunk_words: words of a window; ``None`` leaves every premise whole.
        focus_words: a longer window is reduced to its extract; see ``focus_premise``.
        mark_new: mark the words of the hypothesis that the window lacks; see ``mark_new_words``.

    Returns:
        The row of each window in ``pairs``, ascending, and the (window, hypothesis) pairs. Every
        row has at least one window.
    """
    rows, windows = [], []
    chunks = chunks_of((premise for premise, _ in pairs), chunk_words)
    for row, ((_, hypothesis), own) in enumerate(zip(pairs, chunks, strict=True)):
        for window in own:
            rows.append(row)
            seen = mark_new_words(hypothesis, window) if mark_new else hypothesis
            windows.append((focus_premise(window, hypothesis, focus_words), seen))
    return rows, windows


def best_windows(scores: np.ndarray, rows: Sequence[int]) -> np.ndarray:
    """Of each row's windows the index of the one with the highest score.

    Args:
        scores: probability that a window supports its hypothesis, shape (windows,).
        rows: row of each window, ascending, shape (windows,).

    Returns:
        Indices into the windows, one a row that has any, in the rows' order; the first window
        wins a tie.
    """
    best: dict[int, int] = {}
    for index, row in enumerate(rows):
        if row not in best or scores[index] > scores[best[row]]:
            best[row] = index
    return np.asarray(list(best.values()), dtype=int)
