"""Similarity of held-out rows to the training rows.

Splits without shared documents may still share sentences. The similarity of each held-out row to
its nearest training row shows how far results on the split generalise.
"""

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from heapq import nsmallest

import numpy as np
from scipy.sparse import csr_matrix

from components.english import stems

# Rows this similar differ in a few words only.
NEAR_SIMILARITY = 0.8
_QUANTILES = (0.5, 0.9, 0.99)
_MAX_ROWS = 1000
# Similarities in memory.
_MAX_CELLS = 5_000_000


def nearest_similarities(heldout: Sequence[str], train: Iterable[str]) -> np.ndarray:
    """Return the cosine of each held-out text with the nearest training text, in [0, 1].

    Vectors are TF-IDF over stems: ``tf · (ln((1 + n) / (1 + df)) + 1)`` with ``n`` and ``df`` of
    the training texts, length 1. A text without shared stems has 0.
    """
    columns: dict[str, int] = {}
    train_counts, heldout_counts = _counts(train, columns), _counts(heldout, columns)
    total = train_counts.shape[0]
    train_counts.resize(total, len(columns))
    if not total or not columns:
        return np.zeros(len(heldout))
    idf = np.log((1 + total) / (1 + np.bincount(train_counts.indices, minlength=len(columns)))) + 1
    train_counts, heldout_counts = _unit(train_counts, idf), _unit(heldout_counts, idf)
    by_stem = train_counts.T.tocsr()  # convert once
    step = max(1, _MAX_CELLS // total)
    maxima = [
        (heldout_counts[start : start + step] @ by_stem).max(axis=1).toarray().ravel()
        for start in range(0, len(heldout), step)
    ]
    return np.clip(np.concatenate([np.zeros(0), *maxima]), 0, 1)


def _counts(texts: Iterable[str], columns: dict[str, int]) -> csr_matrix:
    """Return stem counts of shape (texts, stems so far); adds new stems to ``columns``."""
    indices, ends = array("i"), array("q", [0])
    for text in texts:
        indices.extend(columns.setdefault(stem, len(columns)) for stem in stems(text))
        ends.append(len(indices))
    parts = np.ones(len(indices), np.float32), np.asarray(indices), np.asarray(ends)
    counts = csr_matrix(parts, shape=(len(ends) - 1, len(columns)))
    counts.sum_duplicates()
    return counts


def _unit(counts: csr_matrix, idf: np.ndarray) -> csr_matrix:
    weighted = counts.multiply(idf).tocsr()
    norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    return weighted.multiply(1 / np.where(norms > 0, norms, 1)[:, None]).tocsr()


def summarize_nearness(heldout: Iterable[str], train: Iterable[str]) -> dict[str, float]:
    """Return the share of rows at least ``NEAR_SIMILARITY`` to a training row, and quantiles.

    At most a thousand held-out texts are used, selected by their hashes.
    """
    chosen = nsmallest(_MAX_ROWS, heldout, key=lambda text: hashlib.sha256(text.encode()).digest())
    if not chosen:
        return {}
    similarities = nearest_similarities(chosen, train)
    quantiles = {f"q{round(100 * q)}": float(np.quantile(similarities, q)) for q in _QUANTILES}
    return {
        name: round(value, 4)
        for name, value in {"near": (similarities >= NEAR_SIMILARITY).mean(), **quantiles}.items()
    }


def format_nearness(by_field: dict[str, dict[str, float]]) -> str:
    """Format :func:`summarize_nearness` of several fields in one line."""
    return "; ".join(
        f"{name} {100 * summary['near']:.1f} % at {NEAR_SIMILARITY} or more, "
        f"median {summary['q50']:.2f}, 90 % below {summary['q90']:.2f}"
        for name, summary in by_field.items()
        if summary
    )
