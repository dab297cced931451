"""What a premise and a hypothesis share, word by word.

A small encoder that was never trained to compare two texts needs many examples before it sees which
words of the one occur in the other. Two readings of the input tell it: the sentences of a long
premise that matter, and marks on the words of the hypothesis that the premise does not have. What
is shared is also a judge by itself, which others are held against.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
import scipy
from nupunkt import sent_tokenize
from Stemmer import Stemmer

from components.words import WORD, to_nfc

NEW_WORD_MARK = "*"

_WORD = re.compile(WORD)
# A sentence costs its words and this many more, so that scraps do not win by being short.
_COST = 8
# A word that an earlier choice already covers still counts this much.
_AGAIN = 0.3
_STEMMER = Stemmer("english")


def stems(text: str) -> list[str]:
    """The stems (Snowball, English) of the words of a text, lower-cased, in order."""
    return _STEMMER.stemWords(_WORD.findall(to_nfc(text).lower()))


# A premise meets many hypotheses, and is read into stems and sentences once.
@lru_cache(maxsize=1024)
def _stem_set(premise: str) -> frozenset[str]:
    return frozenset(stems(premise))


@lru_cache(maxsize=1024)
def _sentences(premise: str) -> tuple[tuple[str, frozenset[str]], ...]:
    lines = [line for line in premise.split("\n") if line.strip()]
    found = [s for line in lines for s in sent_tokenize(line) if s.strip()]
    return tuple((sentence, frozenset(stems(sentence))) for sentence in found)


def new_words(words: Sequence[str], premise: str) -> list[bool]:
    """Which words have no stem in the premise; one without letters or digits is never new."""
    known = _stem_set(premise)
    return [any(stem not in known for stem in stems(word)) for word in words]


def mark_new_words(hypothesis: str, premise: str) -> str:
    """The hypothesis with ``*`` behind each word whose stem the premise does not have."""
    spans = list(_WORD.finditer(hypothesis))
    new = new_words([span.group() for span in spans], premise)
    out, last = [], 0
    for span, is_new in zip(spans, new, strict=True):
        out.append(hypothesis[last : span.end()] + (NEW_WORD_MARK if is_new else ""))
        last = span.end()
    return "".join(out) + hypothesis[last:]


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
    read = _sentences(premise)
    sentences, bags = [sentence for sentence, _ in read], [bag for _, bag in read]
    spread = Counter(word for bag in bags for word in bag)
    wanted = set(stems(hypothesis)) & set(spread)
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


def stem_weights(texts: Iterable[str]) -> Callable[[str], float]:
    """The weight of a stem: its inverse document frequency ln((n + 1) / (df + 0.5)) in some texts.

    Args:
        texts: the documents, n different ones.
    """
    different = dict.fromkeys(texts)
    spread = Counter(stem for text in different for stem in _stem_set(text))
    return lambda stem: math.log((len(different) + 1) / (spread[stem] + 0.5))


def stem_shares(texts: Sequence[str]) -> np.ndarray:
    """How much of each text every other one has: shares of weighted stems.

    A stem weighs ln((n + 1) / df) in these n texts, so that the name of their topic tells nothing.

    Returns:
        Shape (n, n): at [i, j] the share of text j's stems that text i has, from 0 to 1; 1 where
        text j has none.
    """
    bags = [sorted(set(stems(text))) for text in texts]
    spread = Counter(stem for bag in bags for stem in bag)
    # In the order of characters, so that the order of the texts changes no sum.
    place = {stem: number for number, stem in enumerate(sorted(spread))}
    rarity = np.array([math.log((len(bags) + 1) / spread[stem]) for stem in place])
    columns = [place[stem] for bag in bags for stem in bag]
    starts = np.cumsum([0, *map(len, bags)])
    has = scipy.sparse.csr_array(
        (np.ones(len(columns)), columns, starts), shape=(len(bags), len(place))
    )
    weights = has * rarity[None, :]
    shared, whole = (weights @ has.T).toarray(), weights.sum(axis=1)
    return np.divide(shared, whole[None, :], out=np.ones_like(shared), where=whole[None, :] > 0)


def covered_share(claim: str, evidence: Sequence[str], weight: Callable[[str], float]) -> float:
    """The share of the weight of a claim's different stems that some of its evidence has.

    Returns:
        From 0 to 1; 0 for a claim without a stem.
    """
    own = sorted(set(stems(claim)))
    known = frozenset().union(*map(_stem_set, evidence))
    weights = [max(0.0, weight(stem)) for stem in own]
    total = sum(weights)
    return sum(w for s, w in zip(own, weights, strict=True) if s in known) / total if total else 0.0
