"""Overlapping windows of long premises; the best window of a claim counts.

As in FactReasoner (2502.18573) and WiCE.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from components.encoding import Pair, window_starts
from components.overlap import focus_premise, mark_new_words


def chunk_premise(premise: str, chunk_words: int | None) -> list[str]:
    """Split a long premise into windows of ``chunk_words`` words with half overlap.

    A premise that fits, or ``chunk_words=None``, is one window.
    """
    words = premise.split()
    if chunk_words is None or len(words) <= chunk_words:
        return [premise]
    starts = window_starts(len(words), chunk_words)
    return [" ".join(words[start : start + chunk_words]) for start in starts]


def chunks_of(premises: Iterable[str], chunk_words: int | None) -> list[list[str]]:
    """Return the windows of each premise; equal premises share one list."""
    premises = list(premises)
    cut = {premise: chunk_premise(premise, chunk_words) for premise in set(premises)}
    return [cut[premise] for premise in premises]


def windows_of(
    pairs: Sequence[Pair],
    chunk_words: int | None,
    focus_words: int | None = None,
    mark_new: bool = False,
) -> tuple[list[int], list[Pair]]:
    """Return the windows of all premises, each with its hypothesis, as model inputs.

    Args:
        pairs: (premise, hypothesis).
        chunk_words: words per window; ``None`` for whole premises.
        focus_words: longer windows are reduced to an extract; see ``focus_premise``.
        mark_new: mark hypothesis words that the window lacks; see ``mark_new_words``.

    ``components.encoding.encode_pairs`` cuts a window with too many tokens into further ones.

    Returns:
        The ascending row of each window, at least one per row, and (window, hypothesis) pairs.
    """
    rows, windows = [], []
    chunks = chunks_of((premise for premise, _ in pairs), chunk_words)
    for row, ((_, hypothesis), row_windows) in enumerate(zip(pairs, chunks, strict=True)):
        for window in row_windows:
            rows.append(row)
            marked = mark_new_words(hypothesis, window) if mark_new else hypothesis
            windows.append((focus_premise(window, hypothesis, focus_words), marked))
    return rows, windows


def best_windows(scores: np.ndarray, rows: Sequence[int]) -> np.ndarray:
    """Return the index of the highest-scoring window of each row; the first on a tie.

    Both arguments have shape (windows,): probability of support, and ascending row.
    """
    best: dict[int, int] = {}
    for index, row in enumerate(rows):
        if row not in best or scores[index] > scores[best[row]]:
            best[row] = index
    return np.asarray(list(best.values()), dtype=int)
