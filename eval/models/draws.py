"""Drawing tokens: a text's random numbers, the nucleus, and what a token's probability was."""

import hashlib
import random

import numpy as np


def text_draws(seed: int, topic: str, index: int) -> random.Random:
    """The random numbers of one text."""
    digest = hashlib.sha256(f"{seed}\0{index}\0{topic}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))


def log_probability(logits: np.ndarray, token: int) -> float:
    """ln p of a token, by logits of shape (vocabulary,)."""
    high = logits.max()
    return float(logits[token] - high) - float(np.log(np.exp(logits - high).sum()))


def draw_token(logits: np.ndarray, uniform: float, temperature: float, top_p: float) -> int:
    """One token by inverting the cumulative distribution of the nucleus.

    Args:
        logits: shape (vocabulary,).
        uniform: a random number in [0, 1).
        temperature: 0 takes the likeliest token.
        top_p: the nucleus is the smallest set of likeliest tokens with at least this probability.
    """
    if temperature == 0:
        return int(logits.argmax())
    p = np.exp((logits - logits.max()) / temperature)
    p /= p.sum()
    # All tokens below this together weigh less than 1 - top_p, so the nucleus has none of them.
    tokens = np.nonzero(p >= (1 - top_p) / len(p))[0]
    p = p[tokens]
    # Sorting values instead of tokens takes a third of the time, and this runs for every token.
    rising = np.sort(p)
    falling = rising[::-1]
    total = falling.cumsum(dtype=np.float64)
    size = min(int(np.searchsorted(total, top_p)) + 1, len(tokens))
    at = int(np.searchsorted(total[:size], uniform * total[size - 1], side="right"))
    at = min(at, size - 1)
    # Tokens of the same probability are in the vocabulary's order.
    before = len(p) - int(np.searchsorted(rising, falling[at], side="right"))
    return int(tokens[np.nonzero(p == falling[at])[0][at - before]])
