"""How near held-out rows stand to the rows that a model was trained on.

A split without shared documents may still hold the same sentences twice. What a held-out row's
nearest training row has in common with it says how much a result on it can mean.
"""

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from heapq import nsmallest

import numpy as np
from scipy.sparse import csr_matrix

from components.overlap import stems
from records.types import Record

# A row this near has, but for a few words, been seen.
NEAR_SIMILARITY = 0.8
_QUANTILES = (0.5, 0.9, 0.99)
_ROWS = 1000
# Similarities in memory at a time.
_CELLS = 5_000_000


def nearest_similarities(held: Sequence[str], train: Iterable[str]) -> np.ndarray:
    """The cosine of each held-out text with the nearest of the training texts.

    Vectors are TF-IDF over stems: ``tf · (ln((1 + n) / (1 + df)) + 1)`` with ``n`` and ``df`` of
    the training texts, length 1.

    Returns:
        Of shape (held,), in [0, 1]; 0 for a text that shares no word with any.
    """
    known: dict[str, int] = {}
    seen, asked = _counts(train, known), _counts(held, known)
    total = seen.shape[0]
    seen.resize(total, len(known))
    if not total or not known:
        return np.zeros(len(held))
    idf = np.log((1 + total) / (1 + np.bincount(seen.indices, minlength=len(known)))) + 1
    seen, asked = _unit(seen, idf), _unit(asked, idf)
    by_stem = seen.T.tocsr()  # once: each product would turn it over again
    step = max(1, _CELLS // total)
    found = [
        (asked[start : start + step] @ by_stem).max(axis=1).toarray().ravel()
        for start in range(0, len(held), step)
    ]
    return np.clip(np.concatenate([np.zeros(0), *found]), 0, 1)


def _counts(texts: Iterable[str], known: dict[str, int]) -> csr_matrix:
    """Counts of stems, of shape (texts, stems known so far); new stems are added to ``known``."""
    places, ends = array("i"), array("q", [0])
    for text in texts:
        places.extend(known.setdefault(stem, len(known)) for stem in stems(text))
        ends.append(len(places))
    parts = np.ones(len(places), np.float32), np.asarray(places), np.asarray(ends)
    counts = csr_matrix(parts, shape=(len(ends) - 1, len(known)))
    counts.sum_duplicates()
    return counts


def _unit(counts: csr_matrix, idf: np.ndarray) -> csr_matrix:
    weighed = counts.multiply(idf).tocsr()
    norms = np.sqrt(np.asarray(weighed.multiply(weighed).sum(axis=1)).ravel())
    return weighed.multiply(1 / np.where(norms > 0, norms, 1)[:, None]).tocsr()


def summarize_nearness(held: Iterable[str], train: Iterable[str]) -> dict[str, float]:
    """The share of rows at least ``NEAR_SIMILARITY`` to a training row, and quantiles.

    Of more than a thousand held-out texts a thousand are looked at, chosen by their hashes.
    """
    chosen = nsmallest(_ROWS, held, key=lambda text: hashlib.sha256(text.encode()).digest())
    if not chosen:
        return {}
    found = nearest_similarities(chosen, train)
    told = {f"q{round(100 * q)}": float(np.quantile(found, q)) for q in _QUANTILES}
    return {
        name: round(value, 4)
        for name, value in {"near": (found >= NEAR_SIMILARITY).mean(), **told}.items()
    }


def text_fields(record: Record) -> list[str]:
    """The texts of a record that may stand in training as well."""
    names = ("premise", "hypothesis", "reference", "claim", "topic", "text", "prompt")
    return [name for name in names if isinstance(getattr(record, name, None), str)]


def format_nearness(found: dict[str, dict[str, float]]) -> str:
    """:func:`summarize_nearness` of some fields in one line."""
    return "; ".join(
        f"{name} {100 * told['near']:.1f} % at {NEAR_SIMILARITY} or more, "
        f"median {told['q50']:.2f}, 90 % below {told['q90']:.2f}"
        for name, told in found.items()
        if told
    )
