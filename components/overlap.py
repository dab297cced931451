"""Word overlap of premises and hypotheses.

A small encoder that was not pretrained on text pairs needs many examples to compare words across
texts. Two input features help: extracting the relevant sentences of a long premise, and marking
hypothesis words that the premise lacks. Overlap is also a baseline verifier.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
import scipy
from nupunkt import sent_tokenize

from components.english import stems
from components.words import WORD

NEW_WORD_MARK = "*"

_WORD = re.compile(WORD)
# Added to the cost of a sentence (its words), to avoid very short sentences.
_SENTENCE_COST = 8
# Weight of words that selected sentences already cover.
_COVERED_WEIGHT = 0.3


# Cached, because premises have many hypotheses.
@lru_cache(maxsize=1024)
def _stem_set(premise: str) -> frozenset[str]:
    return frozenset(stems(premise))


@lru_cache(maxsize=1024)
def _sentences(premise: str) -> tuple[tuple[str, frozenset[str]], ...]:
    lines = [line for line in premise.split("\n") if line.strip()]
    sentences = [s for line in lines for s in sent_tokenize(line) if s.strip()]
    return tuple((sentence, frozenset(stems(sentence))) for sentence in sentences)


def new_words(words: Sequence[str], premise: str) -> list[bool]:
    """Return whether each word has a stem that the premise lacks; punctuation is never new."""
    premise_stems = _stem_set(premise)
    return [any(stem not in premise_stems for stem in stems(word)) for word in words]


def mark_new_words(hypothesis: str, premise: str) -> str:
    """Append ``*`` to each hypothesis word whose stem the premise lacks."""
    spans = list(_WORD.finditer(hypothesis))
    new = new_words([span.group() for span in spans], premise)
    out, last = [], 0
    for span, is_new in zip(spans, new, strict=True):
        out.append(hypothesis[last : span.end()] + (NEW_WORD_MARK if is_new else ""))
        last = span.end()
    return "".join(out) + hypothesis[last:]


def focus_premise(premise: str, hypothesis: str, focus_words: int | None) -> str:
    """Return the sentences of a long premise that share most with the hypothesis, in order.

    Sentences are selected greedily, up to ``focus_words`` words, by the weight of newly covered
    hypothesis words per sentence word; words in fewer sentences weigh more. The last sentence is
    truncated to fit; a premise without shared words is truncated.
    """
    if focus_words is None or len(premise.split()) <= focus_words:
        return premise
    parsed = _sentences(premise)
    sentences, bags = [sentence for sentence, _ in parsed], [bag for _, bag in parsed]
    frequency = Counter(word for bag in bags for word in bag)
    shared_stems = set(stems(hypothesis)) & set(frequency)
    worth = {w: math.log((len(bags) + 1) / (frequency[w] + 0.5)) + 0.05 for w in shared_stems}
    sizes = [len(sentence.split()) for sentence in sentences]
    uncovered, words_left = set(shared_stems), focus_words
    chosen: dict[int, int] = {}  # sentence -> how many of its words fit

    def gain(index: int) -> float:
        shared = bags[index] & shared_stems
        value = sum(worth[w] * (_COVERED_WEIGHT + (w in uncovered)) for w in sorted(shared))
        return value / (_SENTENCE_COST + min(sizes[index], words_left))

    while words_left > 0 and len(chosen) < len(sentences):
        best = max((i for i in range(len(sentences)) if i not in chosen), key=gain)
        if not bags[best] & shared_stems:
            break
        chosen[best] = words_left
        words_left -= sizes[best]
        uncovered -= bags[best]
    if not chosen:
        return " ".join(premise.split()[:focus_words])
    return "\n".join(" ".join(sentences[i].split()[: chosen[i]]) for i in sorted(chosen))


def stem_weights(texts: Iterable[str]) -> Callable[[str], float]:
    """Return a function of a stem: its inverse document frequency ln((n + 1) / (df + 0.5))."""
    documents = dict.fromkeys(texts)
    frequency = Counter(stem for text in documents for stem in _stem_set(text))
    return lambda stem: math.log((len(documents) + 1) / (frequency[stem] + 0.5))


def stem_shares(texts: Sequence[str]) -> np.ndarray:
    """Return the shares of weighted stems between all pairs of texts, shape (n, n).

    [i, j] is the share of text j's stems that text i has, in [0, 1]; 1 if text j has no stems. A
    stem weighs ln((n + 1) / df) in these n texts, so words of their common topic count little.
    """
    bags = [sorted(set(stems(text))) for text in texts]
    frequency = Counter(stem for bag in bags for stem in bag)
    # Sorted, so that sums do not depend on the order of the texts.
    column_of = {stem: number for number, stem in enumerate(sorted(frequency))}
    rarity = np.array([math.log((len(bags) + 1) / frequency[stem]) for stem in column_of])
    columns = [column_of[stem] for bag in bags for stem in bag]
    starts = np.cumsum([0, *map(len, bags)])
    incidence = scipy.sparse.csr_array(
        (np.ones(len(columns)), columns, starts), shape=(len(bags), len(column_of))
    )
    weights = incidence * rarity[None, :]
    shared, whole = (weights @ incidence.T).toarray(), weights.sum(axis=1)
    return np.divide(shared, whole[None, :], out=np.ones_like(shared), where=whole[None, :] > 0)


def covered_share(claim: str, evidence: Sequence[str], weight: Callable[[str], float]) -> float:
    """Return the weighted share of a claim's distinct stems in its evidence; 0 without stems."""
    claim_stems = sorted(set(stems(claim)))
    evidence_stems = frozenset().union(*map(_stem_set, evidence))
    weights = [max(0.0, weight(stem)) for stem in claim_stems]
    covered = sum(w for s, w in zip(claim_stems, weights, strict=True) if s in evidence_stems)
    return covered / sum(weights) if sum(weights) else 0.0
