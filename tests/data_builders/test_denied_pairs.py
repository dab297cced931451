"""``denied_pairs``, other forms of numbers, and tokenised text."""

import json
import random

import pytest

from data_builders.written.denied_pairs import DeniedPairs, denials_of
from data_builders.written.hard_pairs import change_subject
from data_builders.written.number_forms import other_forms
from records import RelationPair, read_records, write_jsonl
from records.formats.tokenised import join_tokens

LEAD = "Ann Lee was a singer. Ann Lee married Bo Hill in 1921. She sang in Rome."


def pair(premise, hypothesis, label="entailment"):
    return {"premise": premise, "hypothesis": hypothesis, "label": label, "group": "Ann Lee"}


def test_verb_is_denied_and_affirmed_in_evidence():
    forms = [denials_of("Ann Lee married Bo Hill.", random.Random(n)) for n in range(80)]
    verbal = [f for f in forms if f.negation]
    assert {f.contradicted for f in verbal} == {True}
    assert "Ann Lee refused to marry Bo Hill." in {f.denied for f in verbal}
    assert "Ann Lee never married Bo Hill." in {f.denied for f in verbal}
    assert "Ann Lee did not fail to marry Bo Hill." in {f.affirmed for f in verbal}
    assert {f.contradicted for f in forms if not f.negation} == {False}


@pytest.mark.parametrize(
    "claim",
    ["Ann Lee never married.", "Ann Lee, who married Bo Hill, sang.", "Only Ann sleeps."],
)
def test_statement_with_a_negation_a_clause_or_an_unknown_verb_is_not_denied(claim):
    forms = [denials_of(claim, random.Random(n)) for n in range(20)]
    assert all(form is None or form.negation is None for form in forms)


def test_denial_replaces_the_sentence_that_states_the_claim(tmp_path):
    false = pair(LEAD, "Ann Lee was a dancer.", "not_entailment")
    write_jsonl(tmp_path / "a.jsonl", [pair(LEAD, "Ann Lee was a singer."), false])
    build = DeniedPairs(tmp_path / "out", pairs=[str(tmp_path / "a.jsonl")], share=1.0)
    manifest = json.loads(build.build().read_text())
    rows = read_records(tmp_path / "out" / "relation_train.jsonl", RelationPair)
    assert manifest["kept"] == len(rows)
    by_source = {row.source: row for row in rows}
    denied, affirmed = by_source["denied/denied"], by_source["denied/affirmed"]
    assert denied.label in ("contradiction", "not_entailment")
    assert affirmed.label == "entailment"
    assert not any("Ann Lee was a singer. Ann" in row.premise for row in (denied, affirmed))
    other = by_source["denied/another denied"]
    assert other.premise.startswith(LEAD)
    assert "dancer" in other.premise
    assert (other.hypothesis, other.label) == ("Ann Lee was a singer.", "entailment")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("She died on 12 May 1901.", "She died on May 12, 1901."),
        ("She died on May 12, 1901.", "She died on 12 May 1901."),
        ("She won three medals in 1901.", "She won 3 medals in 1901."),
        ("It was her 3rd of 12,000 songs.", "It was her third of 12 thousand songs."),
        ("It grew by 5%, or 3.5.", "It grew by 5 percent, or 3.5."),
        ("In May 3 people came.", "In May 3 people came."),
    ],
)
def test_numbers_and_dates_get_another_form(text, other):
    assert other_forms(text) == other


def test_subject_is_replaced_by_another_name_of_the_premise():
    premise = "Ann Lee taught Cy Park Jr. in Rome."
    pieces = change_subject("Ann Lee was a poet.", premise, random.Random(0))
    assert "".join(text for text, _ in pieces) == "Cy Park Jr was a poet."
    assert change_subject("It was a poet.", premise, random.Random(0)) is None


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("Ann -LRB- 1921 -- 2000 -RRB- , a poet .", "Ann (1921 – 2000), a poet."),
        ("She sang `` Rain '' , did n't she ?", 'She sang "Rain", didn\'t she?'),
        ("The parents ' house in the '90s .", "The parents' house in the '90s."),
        ("Text with 5 % : unchanged.", "Text with 5 % : unchanged."),
    ],
)
def test_tokenised_text_is_written_as_text(tokens, text):
    assert join_tokens(tokens) == text
