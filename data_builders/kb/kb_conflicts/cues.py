"""Accuracy of simple rules, and AUROC of cues that should be uninformative, on ``kb_conflicts``."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from components.statistics import auroc
from records import Claim, Document, Passage

Contexts = Sequence[Passage]


def claims_with_contexts(documents: Sequence[Document]) -> list[tuple[Claim, list[Passage]]]:
    """List every claim with its passages, in order."""
    pairs = []
    for document in documents:
        passages = {passage.id: passage for passage in document.passages}
        pairs.extend((claim, [passages[i] for i in claim.contexts]) for claim in document.claims)
    return pairs


def side(context: Passage) -> int:
    """Return 1 for a context that supports its claim, −1 for one that conflicts with it."""
    return 1 if context.relation == "entailment" else -1


def logit(prior: float) -> float:
    """ln p/(1 − p)."""
    return math.log(prior / (1 - prior))


# Positive values predict a true claim, negative a false one; 0 counts half.
RULES: dict[str, Callable[[Contexts], float]] = {
    "majority of contexts": lambda cs: sum(side(c) for c in cs),
    "first context": lambda cs: side(cs[0]),
    "longest context": lambda cs: side(max(cs, key=lambda c: len(c.text))),
    "most reliable context": lambda cs: sum(
        side(c) for c in cs if c.prior == max(d.prior for d in cs)
    ),
    "majority weighted by prior": lambda cs: sum(side(c) * c.prior for c in cs),
    "sum of log-odds of the priors": lambda cs: sum(side(c) * logit(c.prior) for c in cs),
}

LEAKS: dict[str, Callable[[Claim, Contexts], float]] = {
    "number of contexts": lambda claim, cs: len(cs),
    "number of supporting contexts": lambda claim, cs: sum(side(c) > 0 for c in cs),
    "mean prior of the contexts": lambda claim, cs: sum(c.prior for c in cs) / len(cs),
    "words of the claim": lambda claim, cs: len(claim.text.split()),
    "words of the contexts": lambda claim, cs: sum(len(c.text.split()) for c in cs) / len(cs),
    "words of supporting over conflicting contexts": lambda claim, cs: (
        _mean_words(cs, 1) - _mean_words(cs, -1)
    ),
    "place of the first supporting context": lambda claim, cs: next(
        index for index, c in enumerate(cs) if side(c) > 0
    ),
}


def _mean_words(contexts: Contexts, sign: int) -> float:
    lengths = [len(c.text.split()) for c in contexts if side(c) == sign]
    return sum(lengths) / len(lengths)


def accuracy(documents: Sequence[Document], rule: str) -> float:
    """Share of claims that a rule classifies correctly; a tie counts half."""
    right = 0.0
    pairs = claims_with_contexts(documents)
    for claim, contexts in pairs:
        vote = RULES[rule](contexts)
        # Sums of decimal fractions are not exactly 0.
        tie = abs(vote) < 1e-9
        right += 0.5 if tie else (vote > 0) == (claim.label == "S")
    return right / len(pairs)


def leak(documents: Sequence[Document], cue: str) -> float:
    """AUROC of true claims by a cue that should be uninformative."""
    pairs = claims_with_contexts(documents)
    scores = np.array([LEAKS[cue](claim, contexts) for claim, contexts in pairs], float)
    return auroc(scores, np.array([claim.label == "S" for claim, _ in pairs]))


def rule_table(documents: Sequence[Document]) -> str:
    """Format the accuracy of each rule in Markdown."""
    rows = (f"| {name} | {accuracy(documents, name):.3f} |" for name in RULES)
    return "\n".join(["| rule | accuracy |", "|---|---|", *rows])


def leak_table(documents: Sequence[Document]) -> str:
    """Format the AUROC of each cue in Markdown."""
    rows = (f"| {name} | {leak(documents, name):.3f} |" for name in LEAKS)
    return "\n".join(["| cue | AUROC |", "|---|---|", *rows])


def source_table(documents: Sequence[Document]) -> str:
    """Format prior and share of true contexts per source in Markdown."""
    truths: dict[tuple[float, str], list[bool]] = defaultdict(list)
    for claim, contexts in claims_with_contexts(documents):
        for context in contexts:
            true = (side(context) > 0) == (claim.label == "S")
            truths[context.prior, context.source].append(true)
    rows = (
        f"| {source} | {prior:.2f} | {sum(true) / len(true):.3f} | {len(true)} |"
        for (prior, source), true in sorted(truths.items(), reverse=True)
    )
    return "\n".join(["| source | prior | true | contexts |", "|---|---|---|---|", *rows])
