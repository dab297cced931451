"""Long premises: windows of which the best counts, or one extract that fits the hypothesis.

FactReasoner (2502.18573) and WiCE judge a claim against the window that supports it best. An
extract is one input instead of many, and what it leaves out was seldom evidence.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from nupunkt import sent_tokenize

Pair = tuple[str, str]

_WORD = re.compile(r"\w+")
# A sentence costs its words and this many more, so that scraps do not win by being short.
_COST = 8
# A word that an earlier choice already covers still counts this much.
_AGAIN = 0.3


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


def focus_premise(premise: str, hypothesis: str, focus_words: int | None) -> str:
    """The sentences of a long premise that share most with the hypothesis, in their order.

    Sentences are chosen one by one for the words of the hypothesis that they add per word of their
    own; a word counts the more, the fewer sentences of the premise have it. A sentence that
    overflows the room is cut, and so is the premise where it shares nothing.

    Args:
        premise: lines or sentences of any number.
        hypothesis: what is to be judged.
        focus_words: words of the extract; ``None``, or a premise that fits, changes nothing.
    """
    if focus_words is None or len(premise.split()) <= focus_words:
        return premise
    lines = [line for line in premise.split("\n") if line.strip()]
    sentences = [s for line in lines for s in sent_tokenize(line) if s.strip()]
    bags = [set(_WORD.findall(sentence.lower())) for sentence in sentences]
    spread = Counter(word for bag in bags for word in bag)
    wanted = set(_WORD.findall(hypothesis.lower())) & set(spread)
    worth = {w: math.log((len(bags) + 1) / (spread[w] + 0.5)) + 0.05 for w in wanted}
    sizes = [len(sentence.split()) for sentence in sentences]
    uncovered, room = set(wanted), focus_words
    chosen: dict[int, int] = {}  # sentence -> how many of its words fit

    def gain(index: int) -> float:
        shared = bags[index] & wanted
        found = sum(worth[w] * (_AGAIN + (w in uncovered)) for w in sorted(shared))
        return found / (_COST + min(sizes[index], room))

    while room > 0 and len(chosen) < len(sentences):
        best = max((i for i in range(len(sentences)) if i not in chosen), key=gain)
        if not bags[best] & wanted:
            break
        chosen[best] = room
        room -= sizes[best]
        uncovered -= bags[best]
    if not chosen:
        return " ".join(premise.split()[:focus_words])
    return "\n".join(" ".join(sentences[i].split()[: chosen[i]]) for i in sorted(chosen))


def windows_of(
    pairs: Sequence[Pair], chunk_words: int | None, focus_words: int | None = None
) -> tuple[list[int], list[Pair]]:
    """The windows of all premises, each with its hypothesis.

    Args:
        pairs: (premise, hypothesis).
        chunk_words: words of a window; ``None`` leaves every premise whole.
        focus_words: a longer premise is first reduced to its extract; see ``focus_premise``.

    Returns:
        The row of each window in ``pairs``, ascending, and the (window, hypothesis) pairs. Every
        row has at least one window.
    """
    rows, windows = [], []
    for row, (premise, hypothesis) in enumerate(pairs):
        extract = focus_premise(premise, hypothesis, focus_words)
        for window in chunk_premise(extract, chunk_words):
            rows.append(row)
            windows.append((window, hypothesis))
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
