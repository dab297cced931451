"""Another value of the same property: the one definition of what is false of a topic.

``kb_pairs`` contradicts and corrupts with such facts, ``kb_conflicts`` claims them, and the
rule-based corrupter puts them in the place of true ones. Which of them is drawn is each one's own.
A knowledge base does not hold all that is true, so a value that may well be true beside the known
one is no other value, either: a place of which the other's name is a part, the poet that a writer
may be. The corrupter's claims come from anywhere, so it also keeps countries apart of which one
once was part of the other (``KIN``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from data_builders.kb.graph import Value
from data_builders.kb.language.statements import Fact


def overlap(left: str, right: str) -> bool:
    """Whether the words of one contain the other's: Brooklyn, Brooklyn Heights."""
    left, right = left.casefold(), right.casefold()
    return left in right or right in left


def is_another(fact: Fact, own: Iterable[Fact]) -> bool:
    """Whether a fact is false of somebody.

    Args:
        fact: of the property; a date is another one if its year is.
        own: what the knowledge base holds of the person and the property.
    """
    if fact.prop == "P21":  # "female" has a "male", and yet there are two
        return fact not in own
    return not any(
        overlap(fact.value, known.value)
        or fact in known.coarser
        # A date that implies a true decade is false all the same.
        or (not fact.aspect and known in fact.coarser)
        for known in own
    )


def other_values(value: Value, pool: Sequence[Value]) -> list[Value]:
    """Those of a pool that are false where a property has this value alone.

    Of dates those of another year and the same precision.
    """
    if value.year is None:
        return [other for other in pool if not overlap(other.label, value.label)]
    words = len(value.label.split())
    return [v for v in pool if v.year != value.year and len(v.label.split()) == words]
