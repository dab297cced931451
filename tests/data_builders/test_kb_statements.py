"""Facts of people: which are false of them, and which imply which."""

from __future__ import annotations

import random

import pytest

from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import FUNCTIONAL, ordinal


def test_other_value_is_false_and_of_the_same_kind(curie, twain):
    world = World([curie, twain], [curie, twain], "train")
    rng = random.Random(0)
    for fact in world.facts(curie):
        other = world.other_value(rng, curie, fact)
        if fact.aspect in ("day", "century"):  # the other was born in the same century
            assert other is None
            continue
        assert other.key == fact.key
        assert other not in world.facts(curie)
        assert other.functional == (fact.prop in FUNCTIONAL)
        if fact.prop == "P106":
            assert other.value == "novelist"  # never the shared "chemist"


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (21, "21st"), (20, "20th")],
)
def test_ordinal_has_its_ending(number, text):
    assert ordinal(number) == text
