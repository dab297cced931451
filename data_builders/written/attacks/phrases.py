"""The phrase banks (``phrases.yaml``) of attacks on the judge and on relevance, and true twins."""

from functools import cache
from pathlib import Path
from typing import Literal

import yaml

from data_builders.written.claims.clauses import (
    capitalise,
    clause_of,
    mid_sentence,
    name_of,
    name_topic,
)

Bank = Literal["seen", "unseen"]
Kind = Literal[
    "denied", "relative", "rival", "namesake", "refuted", "fictional", "vague", "bleached"
]
_HEADS = frozenset({"in", "at", "on", "for", "from", "as", "of", "by", "the", "a", "an", "that"})


@cache
def phrase_bank() -> dict:
    """Load the file; blocks of text are templates, one per line."""
    return yaml.safe_load((Path(__file__).parent / "phrases.yaml").read_text(encoding="utf-8"))


def lines_of(name: str) -> list[str]:
    """Load the templates of a block outside the families."""
    return phrase_bank()[name].splitlines()


def family_of(kind: Kind) -> str:
    """``judge`` or ``relevance``."""
    return next(family for family in ("judge", "relevance") if kind in phrase_bank()[family])


def phrases(kind: Kind, bank: str) -> list[str]:
    """Templates of a kind: ``seen``, ``unseen``, or the twins ``true_seen`` and ``true_unseen``."""
    return phrase_bank()[family_of(kind)][kind][bank].splitlines()


def fill(template: str, text: str, topic: str, false: str | None = None) -> str | None:
    """Put a claim into a phrase; ``None`` if the phrase needs another form of claim.

    Args:
        text: the claim; its subject is the topic's name or a pronoun.
        false: the same claim with a false value, for phrases that name both.
    """
    clause = clause_of(text, topic)
    if "{rest}" in template and clause is None:
        return None
    slots = {"X": name_of(topic), "rest": clause and clause.rest}
    slots["p"] = mid_sentence(name_topic(text, topic))
    if "{w}" in template:
        values = false and _values(slots["p"], mid_sentence(name_topic(false, topic)))
        if not values:
            return None
        slots |= values
    return capitalise(template.format(**slots))


def join_claims(template: str, first: str, second: str, topic: str) -> str:
    """Put two claims into one sentence."""
    p, q = (mid_sentence(name_topic(text, topic)) for text in (first, second))
    return capitalise(template.format(p=p, q=q))


def _values(true: str, false: str) -> dict[str, str] | None:
    left, right = true.split(), false.split()
    shared = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
    while shared and left[shared - 1] in _HEADS:
        shared -= 1
    v, w = left[shared:], right[shared:]
    if not shared or v[-1] == w[-1]:
        return None
    return {"head": " ".join(left[:shared]), "v": " ".join(v), "w": " ".join(w)}
