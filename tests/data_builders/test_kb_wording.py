"""The wordings of the knowledge base: wide, apart by split, and sayable in every voice."""

from __future__ import annotations

import re

import pytest

from data_builders.kb.language.wording import bank, unlisted
from data_builders.splits import SPLITS


def _lines(value):
    if isinstance(value, dict):
        return [line for item in value.values() for line in _lines(item)]
    return list(value)


def _plain(template):
    """A template without its slots and in one tense: what a reader would call the wording."""
    text = re.sub(r"\[[^|\]]*\|([^\]]*)\]", r"\1", template)
    text = re.sub(r"\{was!?\}", "was", text).replace("{has}", "had")
    return re.sub(r"\{(?!X|he\}|his\}|him\}|s\})[^}]*\}", "*", text).lower()


@pytest.fixture(scope="module")
def wordings():
    """Split to all its wordings; ``pages`` beside the splits."""
    files = ("facts", "common", "compounds", "clauses", "bleached", "embellishments")
    by_name = {
        split: {_plain(line) for name in files for line in _lines(bank(name)[split])}
        | {_plain(text) for entry in unlisted(split) for text in entry.paraphrases}
        for split in SPLITS
    }
    return by_name | {"pages": {_plain(line) for line in _lines(bank("pages"))}}


def test_splits_share_no_wording(wordings):
    names = sorted(wordings)
    for index, left in enumerate(names):
        for right in names[index + 1 :]:
            assert not wordings[left] & wordings[right], (left, right)


def test_evaluation_text_repeats_no_training_bleached_sentence(rows):
    """Also in the texts themselves, whoever they are about."""

    def bleached_texts(split):
        return {
            s.text.replace(r.topic, "X").replace(r.topic.split()[-1], "X").lower()
            for r in rows["generations", split]
            if r.kind == "uninformative"
            for s in r.sentences
        }

    assert not bleached_texts("train") & (bleached_texts("dev") | bleached_texts("test"))


@pytest.mark.parametrize("split", SPLITS)
def test_a_date_is_told_as_such(split):
    """Who "did not live beyond" a day may have died long before; the label says on that day."""
    for key, lines in bank("facts")[split].items():
        for line in lines if key.startswith(("P569", "P570")) else ():
            assert not re.search(r"(?:beyond|before|after|since|by) (?:the )?\{", line), line


@pytest.mark.parametrize("split", SPLITS)
def test_clauses_of_facts_tell_nobody_s_thoughts(split):
    """A citizen of a country need not consider it home, nor have dated the own birth."""
    by_name = {prop: lines for prop, lines in bank("clauses")[split].items() if prop != "unlisted"}
    assert by_name
    for line in _lines(by_name):
        assert not re.match(r"(?:considered|dated|thought|believed|felt|loved|liked|hoped)\b", line)


def test_every_template_can_be_said(rows):
    """No slot is left open anywhere."""
    for (kind, split), entry in rows.items():
        for row in entry:
            for field in ("premise", "hypothesis", "claim", "reference", "text"):
                message = getattr(row, field, None) or ""
                assert not set(message) & set("{}[]|"), (kind, split, message)
