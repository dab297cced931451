"""Facts of people: which are false of them, and which imply which."""

from __future__ import annotations

import random

from data_builders.kb.facts import Person
from data_builders.kb.graph import Value
from data_builders.kb.kb_pairs.world import World
from data_builders.kb.language.statements import FUNCTIONAL, facts_of, implies, ordinal


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


def test_two_birth_dates_never_contradict(curie, twain):
    two = (Value("1866", None, 1866), Value("1867", None, 1867))
    unsure = Person("e:x", "X Y", "X Y", (), "male", curie.facts | {"P569": two}, None, "D", 0)
    world = World([unsure], [unsure, twain], "train")
    births = world.known["e:x"]["P569"]
    assert births
    assert all(world.other_value(random.Random(0), unsure, fact) is None for fact in births)


def test_dates_entail_coarser_dates_only(curie):
    day, year, decade, century = facts_of(curie, "P569")
    assert [f.value for f in (day, year, decade, century)] == [
        "7 November 1867",
        "1867",
        "1860s",
        "19th",
    ]
    assert implies(day, century)
    assert implies(year, decade)
    assert not implies(century, year)
    assert [ordinal(n) for n in (1, 2, 3, 11, 21, 20)] == [
        "1st",
        "2nd",
        "3rd",
        "11th",
        "21st",
        "20th",
    ]


def test_narrow_occupations_entail_broad_ones(twain):
    novelist, chemist = sorted(facts_of(twain, "P106"), key=lambda f: f.value, reverse=True)
    assert [f.value for f in novelist.coarser] == ["writer"]
    assert not implies(novelist, chemist)
