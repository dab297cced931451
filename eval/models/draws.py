"""Token sampling: random numbers of a text, nucleus sampling, and log-probabilities."""

import hashlib
import random

import numpy as np


def text_draws(seed: int, topic: str, index: int) -> random.Random:
    """Return the random number generator of one text."""
    digest = hashlib.sha256(f"{seed}\0{index}\0{topic}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))


def log_probability(logits: np.ndarray, token: int) -> float:
    """Return ln p of a token, from logits of shape (vocabulary,)."""
    high = logits.max()
    return float(logits[token] - high) - float(np.log(np.exp(logits - high).sum()))


def draw_token(logits: np.ndarray, uniform: float, temperature: float, top_p: float) -> int:
    """Sample one token by inverting the cumulative distribution of the nucleus.

    Args:
        logits: shape (vocabulary,).
        uniform: a random number in [0, 1).
        temperature: 0 is greedy decoding.
        top_p: the nucleus is the smallest set of likeliest tokens with at least this probability.
    """
    if temperature == 0:
        return int(logits.argmax())
    p = np.exp((logits - logits.max()) / temperature)
    p /= p.sum()
    # Tokens below this bound have a total probability below 1 - top_p: never in the nucleus.
    tokens = np.nonzero(p >= (1 - top_p) / len(p))[0]
    p = p[tokens]
    # Sorting values instead of tokens takes a third of the time.
    rising = np.sort(p)
    falling = rising[::-1]
    total = falling.cumsum(dtype=np.float64)
    size = min(int(np.searchsorted(total, top_p)) + 1, len(tokens))
    at = int(np.searchsorted(total[:size], uniform * total[size - 1], side="right"))
    at = min(at, size - 1)
    # Tokens of equal probability are in vocabulary order.
    before = len(p) - int(np.searchsorted(rising, falling[at], side="right"))
    return int(tokens[np.nonzero(p == falling[at])[0][at - before]])
