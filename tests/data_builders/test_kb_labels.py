"""The labels of kb_pairs, checked against the facts they were made from."""

from __future__ import annotations

import re

import pytest

from components.words import is_subsequence, keep_targets
from data_builders.kb.graph import PREFIXES
from data_builders.kb.kb_pairs.world import SPLIT_PROPERTIES
from data_builders.kb.language.statements import facts_of
from data_builders.kb.language.wording import bank, lexicon
from data_builders.kb.server import open_client
from data_builders.splits import SPLITS
from records import Document, read_records


@pytest.fixture(scope="module")
def continents():
    """Pairs of a country and a continent that it lies on, by label."""
    query = f"""{PREFIXES}SELECT ?country ?continent WHERE {{
      ?a wdt:P30 ?b . ?a rdfs:label ?country . ?b rdfs:label ?continent
      FILTER(LANG(?country) = "en" && LANG(?continent) = "en") }}"""
    with open_client() as client:
        return {(r["country"], r["continent"]) for r in client.select(query, family="continents")}


def _values(person, prop):
    return person.aliases if prop == "alias" else [v.label for v in person.facts.get(prop, ())]


def _spoken(country):
    return lexicon("countries").get(country, (country,))[0]


def holds(person, common, continents):
    """Whether a fact of many (``P569.before=1900``) is true of a person."""
    key, _, value = common.partition("=")
    prop, _, kind = key.partition(".")
    values = _values(person, prop)
    years = [v.year for v in person.facts.get(prop, ()) if prop in ("P569", "P570")]
    if kind == "half":
        which, century = re.match(r"the (first|second) half of the (\d+)", value).groups()
        start = int(century) * 100 - 99 + (50 if which == "second" else 0)
        return any(start <= year < start + 50 for year in years)
    if kind == "age":
        return years[0] - person.facts["P569"][0].year > int(value)
    if kind == "elsewhere":
        born = _values(person, "P19")
        return bool(born and values and born != values)
    if kind == "continent":
        return any((country, value) in continents for country in values)
    stated = {_spoken(v) for v in values} if prop == "P27" else set(values)
    if kind == "either":
        return bool(stated & set(value.split(" / ")))
    if kind == "area":
        return bool(stated & set(lexicon("areas")[value]))
    return len(values) > (1 if kind == "several" else 0)


def test_unli_shares_are_the_counts_of_the_knowledge_base(rows, people, continents):
    """Counted again in Python from the loaded people, independently of the COUNT queries."""
    people_by_iri = {person.iri: person for person in people}
    for split in SPLITS:
        owned = {
            person.iri: {str(f) for prop in SPLIT_PROPERTIES[split] for f in facts_of(person, prop)}
            for person in people
        }
        counted = [r for r in rows["unli", split] if r.source.startswith("kb/share")]
        assert len(counted) > 10
        for row in counted:
            matching = [iri for iri, facts in owned.items() if facts.issuperset(row.given)]
            both = [iri for iri in matching if row.asked in owned[iri]]
            if row.asked.partition("=")[0] in bank("common")[split]:
                both = [i for i in matching if holds(people_by_iri[i], row.asked, continents)]
            assert row.counts == [len(both), len(matching)], row
            assert row.label == pytest.approx(max(0.002, len(both) / len(matching)), abs=1e-4)
            assert len(matching) >= 8


def test_relation_classes_and_kinds_are_balanced(rows):
    for split in SPLITS:
        labels = [r.label for r in rows["relation", split]]
        assert 0.3 < labels.count("entailment") / len(labels) < 0.55
        assert 0.3 < labels.count("neutral") / len(labels) < 0.55
        assert labels.count("contradiction") / len(labels) > 0.1
    kinds = {r.source for r in rows["relation", "train"]}
    assert {"kb/paraphrase", "kb/bleached_premise", "kb/unlisted", "kb/embellished"} <= kinds


def test_no_pair_has_two_labels(rows):
    labels = {}
    for row in rows["relation", "train"]:
        key = (row.premise, row.hypothesis)
        assert labels.setdefault(key, row.label) == row.label


def test_sex_revealed_by_a_pronoun_is_not_neutral(rows, people):
    """ "Anna Mani was in Pune when she died" tells that Anna Mani is female."""
    stated = re.compile(r"\b(?:fe)?male\b|\b(?:wo)?man\b")
    pronoun = re.compile(r"(?i)\b(?:he|his|him|she|her)\b")
    neutral = [
        row.premise
        for kind in ("relation", "articles")
        for row in rows[kind, "dev"]
        if row.label == "neutral" and stated.search(row.hypothesis)
    ]
    shares = [row for row in rows["unli", "dev"] if "asked" in row.model_extra]
    queries = [row.premise for row in shares if row.asked.startswith("P21")]
    assert neutral
    assert queries
    assert not [p for p in [*neutral, *queries] if pronoun.search(p) and not stated.search(p)]
    sex = {person.iri: person.sex for person in people}
    clauses = {
        "male": "a man by sex|a male individual",
        "female": "a woman by sex|a female individual",
    }
    for row in rows["lss", "dev"]:
        clause = re.search(clauses[sex[row.person]], row.claim)
        if clause and pronoun.search(row.reference) and not stated.search(row.reference):
            assert clause[0] in row.annotations[0].lss, row


def test_articles_have_all_labels_and_facts_behind_contradictions(rows):
    for split in SPLITS:
        pairs = rows["articles", split]
        assert {r.label for r in pairs} == {"entailment", "neutral", "contradiction"}
        labels = {(r.source, r.label) for r in pairs}
        assert len(labels) == len({source for source, _ in labels}), "a kind has one label"
        assert all(len(r.facts) == 2 for r in pairs if r.label == "contradiction")
        assert len({(r.premise, r.hypothesis) for r in pairs}) == len(pairs)


def test_lss_is_a_subsequence_and_aligns(rows):
    empty = full = 0
    for split in SPLITS:
        for row in rows["lss", split]:
            lss = row.annotations[0].lss
            assert is_subsequence(lss, row.claim)
            assert keep_targets(row)[2] == 0
            empty += not lss
            full += lss == row.claim
    assert empty > 10
    assert full > 10


def test_generations_keep_each_sentence_and_its_truth(rows):
    for split in SPLITS:
        texts = rows["generations", split]
        assert {row.group for row in texts} <= set("ABCD")
        assert {row.bin for row in texts} <= {"very rare", "rare", "medium", "frequent"}
        assert {r.kind for r in texts} == {"normal", "uninformative", "repetitive"}
        for row in texts:
            assert row.text == " ".join(s.text for s in row.sentences)
            if row.kind == "uninformative":
                assert 8 <= len(row.sentences) <= 20
            if row.kind != "normal":
                assert all(s.true for s in row.sentences)
                assert len({s.text for s in row.sentences}) == len(row.sentences)
    normal = [
        s.true for r in rows["generations", "train"] if r.kind == "normal" for s in r.sentences
    ]
    assert 0.2 < normal.count(False) / len(normal) < 0.4


def test_class_claims_are_true_and_as_shared_as_their_class_says(dataset, people, continents):
    by_iri = {person.iri: person for person in people}
    for split in ("dev", "test"):
        documents = read_records(dataset / f"claims_{split}.jsonl", Document)
        assert {d.kind for d in documents} == {"bleached", "common", "specific", "unlisted"}
        for document in documents:
            person = by_iri[document.person]
            assert document.topic == person.name
            assert 1 <= len(document.claims) <= 6
            facts = {str(f) for prop in SPLIT_PROPERTIES[split] for f in facts_of(person, prop)}
            for claim in document.claims:
                assert hasattr(claim, "asked") == (document.kind in ("common", "specific"))
                if document.kind in ("common", "specific"):
                    assert claim.asked in facts or holds(person, claim.asked, continents)
                    share = claim.counts[0] / claim.counts[1]
                    assert 0.3 <= share <= 0.8 if document.kind == "common" else share <= 0.05


def test_lss_rating_follows_what_is_kept(rows):
    for row in rows["lss", "train"]:
        annotation = row.annotations[0]
        assert (annotation.rating == 1) == (annotation.lss == "")
        assert (annotation.rating == 5) == (annotation.lss == row.claim)
