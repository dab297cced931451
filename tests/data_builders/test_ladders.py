"""Ladders, probes and phrase banks: texts whose gold is known by construction."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from components.certificate import FAMILIES
from components.english import content_stems
from data_builders.written.attacks.attacks import SHIPPED, Attacks
from data_builders.written.attacks.frames import (
    DiscourseForm,
    HiddenForm,
    frames,
    hidden_forms,
)
from data_builders.written.attacks.phrases import fill, phrase_bank, phrases
from data_builders.written.ladders.ladders import LADDERS, RUNGS, Ladders
from data_builders.written.ladders.probes import PROBES, Probes
from data_builders.written.leads.lead_statements import Lead, lead_statements
from data_builders.written.leads.leads import passage_of
from records import Document, read_records, write_jsonl

ROOT = Path(__file__).parents[2]
# Phrases of attacks that were written from outside, and that nothing may be trained on.
FROM_OUTSIDE = [
    "it would be a stretch to say",
    "if you believe the tabloids",
    "just kidding",
    "i wish that",
    "in your dreams",
    "none of the following statements",
    "false rumours",
    "who was quite different",
    "who would have thought",
]
# May be in both banks: words that carry no meaning of a kind.
NEUTRAL = content_stems(
    "X p rest head v w anoth another no not this which who whose one some something person people "
    "other there but had it had that two did do left asid are another not here about"
)


NAMES = [f"{first} {last}" for first in ("Ann", "Bob", "Eve") for last in
         ("Hill", "Lake", "Marsh", "Field", "Brook")]  # fmt: skip
KINDS = (
    ("French", "poet, painter and mathematician", "Nobel Prize in Literature"),
    ("Indian", "chemist, novelist and banker", "Copley Medal"),
    ("Nigerian", "composer, engineer and lawyer", "Wolf Prize"),
)


def lead(number: int) -> Lead:
    name, (nationality, occupations, award) = NAMES[number], KINDS[number % len(KINDS)]
    born = 1900 + 2 * number
    sentences = [
        f"{name} was a {nationality} {occupations}.",
        f"He was awarded the {award}.",
        f"He taught {NAMES[number - 1]} for many years.",
    ]
    description = f"{nationality} {occupations.partition(',')[0]} ({born}–{born + 61})"
    return Lead(name, description, " ".join(sentences), "People")


@pytest.fixture(scope="module")
def leads(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("leads")
    people = [lead(number) for number in range(len(NAMES))]
    statements = [
        {"topic": person.title, "group": "People"} | statement._asdict()
        for person in people
        for statement in lead_statements(person)
    ]
    write_jsonl(folder / "passages_test.jsonl", map(passage_of, people))
    write_jsonl(folder / "statements_test.jsonl", statements)
    return folder


@pytest.fixture(scope="module")
def folder(leads, tmp_path_factory) -> Path:
    return Ladders(tmp_path_factory.mktemp("ladders"), str(leads)).build().parent


@pytest.fixture(scope="module")
def attacks_folder(folder, leads, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("attacks")
    pages = [str(leads / "passages_test.jsonl")]
    return Attacks(output, [str(folder / "complete.jsonl")], pages=pages).build().parent


@pytest.mark.parametrize("kind", LADDERS)
def test_gold_of_a_rung_is_the_rung(folder, kind):
    rows = read_records(folder / f"{kind}.jsonl", Document)
    topics = {row.topic for row in rows}
    assert len(topics) == len(NAMES)
    assert [row.rung for row in rows] == [*RUNGS] * len(topics)
    for row in rows:
        assert row.gold.f1 == pytest.approx(row.rung)
        assert len(row.claims) == 5
        true = [claim.text for claim in row.claims if claim.label == "S"]
        assert len(set(true)) == len(true)
        assert all(bool(claim.rests_on) == (claim.label == "S") for claim in row.claims)


def test_false_statements_differ_from_the_true_ones_of_their_topic(folder):
    for row in read_records(folder / "complete.jsonl", Document):
        true = {text for claim in row.claims for text in (claim.text, *claim.reworded)}
        false = [version for claim in row.claims for version in claim.false]
        assert not true & {version["text"] for version in false}
        assert all(version["changed"] in ("number", "name", "relation") for version in false)
        assert all(version["instead_of"] in true for version in false)


def test_statements_of_the_bank_credit_facts_by_kind(folder):
    rows = [json.loads(line) for line in (folder / "statements.jsonl").read_text().splitlines()]
    per_topic = Counter(row["topic"] for row in rows)
    assert len(per_topic) == len(NAMES)
    assert max(per_topic.values()) <= 30
    numbers = {"true": {1}, "reworded": {1}, "compound": {2}}
    for kind in {row["kind"] for row in rows}:
        credited = {len(set(row["credits"])) for row in rows if row["kind"] == kind}
        assert credited == numbers.get(kind, {0}), kind


def test_attacks_on_ladders_have_low_gold_and_all_kinds(attacks_folder):
    for kind in set(SHIPPED) - {"namesake", "merged", "split"}:
        rows = read_records(attacks_folder / f"{kind}.jsonl", Document)
        assert max(row.gold.f1 for row in rows) <= 0.6
        assert len(rows) >= 10, kind


def test_two_builds_are_equal(leads, folder, tmp_path):
    second = Ladders(tmp_path, str(leads)).build().parent
    for path in folder.glob("*.jsonl"):
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_probes_have_the_families_that_a_certificate_needs():
    assert {family for family, bank in PROBES if bank != "seen"} == set(FAMILIES)


def test_probes_are_even_over_families_and_topics(leads, tmp_path):
    folder = Probes(tmp_path, str(leads), per_family=60).build().parent
    rows = read_records(folder / "probes.jsonl", Document)
    numbers = {key: 0 for key in PROBES}
    for row in rows:
        numbers[row.probe, row.bank] += 1
        assert row.passages
        assert (row.claims[0].label == "NS") == row.probe.startswith("false")
    assert min(numbers.values()) >= 60
    assert max(numbers.values()) - min(numbers.values()) <= 6


def templates_of(bank: str) -> list[str]:
    kinds = [kind for family in ("judge", "relevance") for kind in phrase_bank()[family]]
    names = (bank, f"true_{bank}")
    return [
        template
        for kind in kinds
        for name in names
        if name == bank or kind in phrase_bank()["judge"]
        for template in phrases(kind, name)
    ]


def frames_of(bank: str) -> list[str]:
    of_texts = [
        line for form in get_args(DiscourseForm) for line in frames("discourse", bank, form)
    ]
    rows = [row["row"] for form in get_args(HiddenForm) for row in hidden_forms(form, bank)]
    return [*of_texts, *rows, *frames("relation", bank)]


def test_banks_share_no_key_word():
    seen, unseen = (
        {stem for template in templates_of(bank) for stem in content_stems(template)}
        for bank in ("seen", "unseen")
    )
    assert seen & unseen - NEUTRAL == set()


@pytest.mark.parametrize("family", ["judge", "relevance"])
def test_banks_have_enough_phrases(family):
    for kind in phrase_bank()[family]:
        assert len(set(phrases(kind, "seen"))) >= 6
        assert len(set(phrases(kind, "unseen"))) >= 10


def test_no_training_text_contains_an_unseen_phrase():
    files = [
        *ROOT.glob("data_builders/written/*.yaml"),
        *ROOT.glob("data_builders/written/leads/*.yaml"),
        *ROOT.glob("configs/data/**/*.yaml"),
        *ROOT.glob("configs/train/**/*.yaml"),
        *ROOT.glob("data_builders/**/*.jinja"),
    ]
    text = " ".join(" ".join(path.read_text("utf-8").lower().split()) for path in files)
    seen = [*templates_of("seen"), *frames_of("seen")]
    text += " ".join(template.lower() for template in seen)
    for template in [*templates_of("unseen"), *frames_of("unseen"), *FROM_OUTSIDE]:
        parts = [part.strip(" ,.;:").lower() for part in re.split(r"\{\w+\}", template)]
        longest = max(parts, key=len)
        assert " " not in longest or longest not in text, template


def test_phrase_with_both_values_moves_the_preposition():
    template = "{head} not {w} but {v}."
    true, false = "Ann Lee was born in Warsaw.", "Ann Lee was born in Paris."
    assert fill(template, true, "Ann Lee", false) == "Ann Lee was born not in Paris but in Warsaw."
    assert fill("A rival of {X} {rest}.", "Ann Lee's home was Oslo.", "Ann Lee") is None
