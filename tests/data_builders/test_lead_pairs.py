"""``lead_pairs``: UNLI and LSS records, claims and texts, checked against the leads."""

import re
from collections import Counter

import pytest

from components.words import split_words
from data_builders.written.leads.false_values import read_articles
from data_builders.written.leads.lead_facts import LEAST_PEOPLE, Fact, LeadPerson, Shares
from records import Document, LssExample, UnliPair, read_records

SPLITS = ("train", "dev", "test")


def people_of(leads_folder, split):
    return [LeadPerson(article) for article in read_articles(str(leads_folder), split)]


@pytest.mark.parametrize("split", SPLITS)
def test_unli_labels_are_shares_of_the_people_of_the_same_split(
    leads_folder, lead_pairs_folder, split
):
    people = {
        person.article.passage.title: {str(fact) for fact in person.facts}
        for person in people_of(leads_folder, split)
    }
    pairs = read_records(lead_pairs_folder / f"unli_{split}.jsonl", UnliPair)
    assert {pair.group for pair in pairs} <= people.keys()
    counted = [pair for pair in pairs if "counts" in pair.model_extra]
    assert len(counted) > 10
    for pair in counted:
        both = sum({*pair.given, pair.asked} <= facts for facts in people.values())
        assert pair.counts[0] == both
        assert pair.counts[1] >= LEAST_PEOPLE
        assert pair.label == pytest.approx(min(0.97, max(0.002, both / pair.counts[1])), abs=1e-4)


def test_a_share_is_counted_over_people_whose_lead_states_the_property(leads_folder):
    people = people_of(leads_folder, "train")
    shares = Shares(people)
    born = Fact("born century", "19th")
    writers = Fact("field", "literature")
    dated = [p for p in people if any(s.rule == "born" for s in p.article.statements)]
    texts = [p.article.passage.text for p in dated if writers in p.facts]
    assert len(texts) < sum(writers in person.facts for person in people)
    assert shares.counts([writers], born) == (sum("(18" in t for t in texts), len(texts))
    for nationality in shares.by_slot["nationality"]:
        number = sum(nationality in person.facts for person in dated)
        assert (shares.counts([nationality], born) is None) == (number < LEAST_PEOPLE)


def test_unli_has_bleached_common_and_specific_hypotheses_in_order(lead_pairs_folder):
    pairs = read_records(lead_pairs_folder / "unli_train.jsonl", UnliPair)
    sources = Counter(pair.source for pair in pairs)
    assert sources.keys() >= {"lead/share", "lead/share_given", "prior/unlisted"}
    bleached = [pair.label for pair in pairs if pair.source.endswith("bleached")]
    shares = [pair.label for pair in pairs if pair.source == "lead/share"]
    assert min(bleached) == max(shares + bleached) == 0.97
    assert sum(0.3 <= share <= 0.8 for share in shares) > 10
    assert sum(share <= 0.05 for share in shares) > 10


def test_claims_are_bleached_common_specific_and_unlisted_by_their_share(lead_pairs_folder):
    documents = read_records(lead_pairs_folder / "claims_test.jsonl", Document)
    assert {document.kind for document in documents} == {
        "bleached",
        "common",
        "specific",
        "unlisted",
    }
    ranges = {"common": (0.3, 0.8), "specific": (0, 0.05)}
    for document in documents:
        if document.kind in ranges:
            low, high = ranges[document.kind]
            shares = [claim.counts[0] / claim.counts[1] for claim in document.claims]
            assert all(low <= share <= high for share in shares)


def test_lss_are_subsequences_without_changed_words(lead_pairs_folder):
    for split in SPLITS:
        for example in read_records(lead_pairs_folder / f"lss_{split}.jsonl", LssExample):
            (annotation,) = example.annotations
            claim_words = iter(word.text for word in split_words(example.claim))
            assert all(word.text in claim_words for word in split_words(annotation.lss))
            years = set(re.findall(r"\b\d{4}\b", annotation.lss))
            assert all(year in example.reference for year in years)
            assert (annotation.rating == 5) == (annotation.lss == example.claim)


def test_each_person_has_a_normal_an_uninformative_and_a_repetitive_text(lead_pairs_folder):
    documents = read_records(lead_pairs_folder / "texts_test.jsonl", Document)
    kinds = Counter(document.kind for document in documents)
    assert len(set(kinds.values())) == 1
    for document in documents:
        assert document.text == " ".join(claim.source for claim in document.claims)
        sources = [claim.source for claim in document.claims]
        assert len(set(sources)) == len(sources)
        credited = {claim.label for claim in document.claims} == {"S"}
        match document.kind:
            case "normal":
                assert (document.gold.precision == 1) == credited
            case "uninformative":
                assert len(sources) >= 10
                assert document.gold.f1 == 0
            case "repetitive":
                assert len(sources) >= 12
                assert document.gold.precision == pytest.approx(1 / len(sources))


def test_false_claims_of_normal_texts_have_values_that_the_lead_lacks(
    leads_folder, lead_pairs_folder
):
    leads = {
        article.passage.title: article.passage.text
        for article in read_articles(str(leads_folder), "test")
    }
    documents = read_records(lead_pairs_folder / "texts_test.jsonl", Document)
    claims = [
        (claim, leads[document.topic])
        for document in documents
        if document.kind == "normal"
        for claim in document.claims
    ]
    dated = [(claim, lead, year) for claim, lead in claims for year in _years(claim.text)]
    assert {claim.label for claim, _, _ in dated} == {"S", "NS"}
    assert all((claim.label == "S") == (year in lead) for claim, lead, year in dated)


def _years(text):
    return re.findall(r"\b\d{4}\b", text)
