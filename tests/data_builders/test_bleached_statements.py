"""Bleached statements: the bank of templates, and the sentences that it gives."""

import random

import pytest

from components.words import name_key
from data_builders.written.bleached_statements import bleached_statement, bleached_templates

SPLITS = ("train", "dev", "test")


def test_no_template_is_in_two_splits():
    lines = [name_key(line) for split in SPLITS for line in bleached_templates(split)]
    assert len(set(lines)) == len(lines) > 700


@pytest.mark.parametrize("pronoun", ["he", "she", None])
@pytest.mark.parametrize("split", SPLITS)
def test_each_template_is_a_sentence_about_the_person(split, pronoun):
    rng = random.Random(0)
    for template in bleached_templates(split):
        text = bleached_statement(rng, template, "Ann Lee", pronoun)
        assert "Ann Lee" in text or text.startswith(("He ", "She "))
        assert not set("{}[]|") & set(text)
        named = bleached_statement(rng, template, "Ann Lee", pronoun, named=True)
        assert "Ann Lee" in named
