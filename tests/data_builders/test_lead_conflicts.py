"""``lead_conflicts``: which contexts support a claim; only their sources reveal its truth."""

from collections import Counter

import pytest

from data_builders.written.lead_conflicts import LeadConflicts
from records import Document, Passage, read_records


@pytest.fixture
def documents(leads_folder, tmp_path):
    path = LeadConflicts(tmp_path / "conflicts", str(leads_folder), people=12).build()
    return read_records(path.parent / "documents_test.jsonl", Document)


def test_true_and_false_claims_have_equal_numbers_of_supporting_contexts(documents):
    stances = {"S": Counter(), "NS": Counter()}
    for document in documents:
        passages = {passage.id: passage for passage in document.passages}
        for claim in document.claims:
            relations = Counter(passages[name].relation for name in claim.contexts)
            stances[claim.label][relations["entailment"], relations["contradiction"]] += 1
    assert set(stances["S"]) == set(stances["NS"]) == {(1, 1), (1, 3), (3, 1)}
    assert all(abs(stances["S"][sides] - stances["NS"][sides]) <= 1 for sides in stances["S"])


def test_true_contexts_are_the_lead_and_others_lack_the_value(documents, leads_folder):
    leads = {p.title: p.text for p in read_records(leads_folder / "passages_test.jsonl", Passage)}
    assert len(documents) > 5
    for document in documents:
        passages = {passage.id: passage for passage in document.passages}
        for claim in document.claims:
            for context in (passages[name] for name in claim.contexts):
                is_true = (context.relation == "entailment") == (claim.label == "S")
                assert (context.text == leads[document.topic]) == is_true
