"""Which value of a property is another one, false of whom the known ones are true: by hand."""

from __future__ import annotations

import pytest

from data_builders.kb.facts import Person
from data_builders.kb.graph import Value, parse_date
from data_builders.kb.language.statements import facts_of, is_another


def person(name: str, sex: str = "", **facts: list[str]) -> Person:
    values = {
        prop: tuple(parse_date(t, "date") if t[0].isdigit() else Value(t, f"e:{t}") for t in texts)
        for prop, texts in facts.items()
    }
    return Person(f"e:{name}", name, name, (), sex, values, None, "D", 0)


@pytest.mark.parametrize(
    ("prop", "true", "other", "false"),
    [
        ("P19", ["Brooklyn"], "Queens", True),
        ("P19", ["Brooklyn"], "Brooklyn", False),
        # A part of the place, the place of which it is a part, whatever the letters' case.
        ("P19", ["Brooklyn"], "Brooklyn Heights", False),
        ("P19", ["old Brooklyn"], "Old Brooklyn Heights", False),
        # What is true implies it, and it implies what is true: the writer may be a poet.
        ("P106", ["novelist"], "writer", False),
        ("P106", ["writer"], "poet", False),
        # Both are writers, and a novelist is not known to be a poet.
        ("P106", ["novelist"], "poet", True),
    ],
)
def test_another_value_is_false_beside_all_true_ones(prop, true, other, false):
    true_facts = facts_of(person("Ann", **{prop: true}), prop)
    (fact, *_) = facts_of(person("Bo", **{prop: [other]}), prop)
    assert is_another(fact, true_facts) == false


@pytest.mark.parametrize(
    ("other", "false_aspects"),
    [
        ("1861-05-09", []),  # of another year only
        ("1862-05-07", ["day", "year"]),
        ("1875-01-01", ["day", "year", "decade"]),
        ("1790-01-01", ["day", "year", "decade", "century"]),
    ],
)
def test_another_date_is_one_in_each_aspect_that_differs(other, false_aspects):
    true_facts = facts_of(person("Ann", P569=["1861-05-07"]), "P569")
    facts = facts_of(person("Bo", P569=[other]), "P569")
    assert [fact.aspect for fact in facts if is_another(fact, true_facts)] == false_aspects


def test_there_are_two_sexes_though_one_word_holds_the_other():
    (male,), (female,) = (facts_of(person("X", sex), "P21") for sex in ("male", "female"))
    assert is_another(female, [male])
    assert is_another(male, [female])
    assert not is_another(male, [male])
