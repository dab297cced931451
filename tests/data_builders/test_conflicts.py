"""``conflicts`` and ``kb_conflicts``: who supports what, and that nothing else gives it away."""

import json
from collections import Counter

import pyarrow
import pyarrow.parquet
import pytest

from data_builders.kb.kb_conflicts.cues import (
    LEAKS,
    accuracy,
    claims_with_contexts,
    leak,
    side,
)
from data_builders.kb.kb_conflicts.kb_conflicts import KbConflicts, fill, read_wording
from data_builders.kb.server import local_endpoint
from data_builders.published.conflicts.conflicts import Conflicts
from records import Document, RelationPair, read_records, write_jsonl

CATEGORIES = ("default", "misinformation_conflict", "temporal_conflict", "semantic_conflict")


def evidence_rows(number):
    """The Hub's table: four rows a claim."""
    return [
        {
            "id": str(index),
            "subject": f"Ann Lee{index}",
            "claim": f"Ann Lee{index} studied {'law' if category == 'default' else 'art'}.",
            "evidence": f"{category} evidence of {index}",
            "category": category,
        }
        for index in range(number)
        for category in CATEGORIES
    ]


def built(folder, rows, **options):
    path = folder.parent / f"{folder.name}.jsonl"
    write_jsonl(path, rows)
    builder = Conflicts(folder, [str(path)], **options)
    manifest = json.loads(builder.build().read_text())
    assert set(manifest["files"]) == set(builder.writes())
    return manifest


def data_bytes(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}


def test_claim_has_a_supporting_and_a_conflicting_context(tmp_path):
    built(tmp_path / "out", evidence_rows(10), number=10, prior=0.8)
    documents = read_records(tmp_path / "out" / "documents.jsonl", Document)
    assert len(documents) == 10
    for document in documents:
        (claim,) = document.claims
        name = document.topic.removeprefix("Ann Lee")
        assert claim.text == f"Ann Lee{name} studied law."
        assert (claim.label, claim.contexts) == ("S", ["c_0", "c_1"])
        assert [p.id for p in document.passages] == ["c_0", "c_1"]
        assert [p.text for p in document.passages] == [
            f"default evidence of {name}",
            f"misinformation_conflict evidence of {name}",
        ]
        assert {p.prior for p in document.passages} == {0.8}
    pairs = read_records(tmp_path / "out" / "relation.jsonl", RelationPair)
    assert Counter(p.label for p in pairs) == {"entailment": 10, "contradiction": 10}
    assert all((p.label == "entailment") == p.premise.startswith("default") for p in pairs)


@pytest.mark.parametrize("kind", ["temporal", "semantic"])
def test_kind_selects_the_conflicting_evidence(tmp_path, kind):
    built(tmp_path / "out", evidence_rows(4), number=4, kind=kind)
    documents = read_records(tmp_path / "out" / "documents.jsonl", Document)
    assert all(d.passages[1].text.startswith(f"{kind}_conflict") for d in documents)


def test_shuffled_rows_and_shards_give_the_same_sample(tmp_path):
    rows = evidence_rows(60)
    write_jsonl(tmp_path / "a.jsonl", rows[:100])
    table = pyarrow.Table.from_pylist(rows[100:])
    pyarrow.parquet.write_table(table, tmp_path / "b.parquet")
    write_jsonl(tmp_path / "c.jsonl", rows[:100][::-1])
    left = Conflicts(
        tmp_path / "one", [str(tmp_path / "a.jsonl"), str(tmp_path / "b.parquet")], number=7
    )
    two = Conflicts(
        tmp_path / "two", [str(tmp_path / "b.parquet"), str(tmp_path / "c.jsonl")], number=7
    )
    left.build()
    two.build()

    assert data_bytes(tmp_path / "one") == data_bytes(tmp_path / "two")
    built(tmp_path / "three", rows, number=7, seed=1)
    assert data_bytes(tmp_path / "one") != data_bytes(tmp_path / "three")


def test_incomplete_claims_are_replaced_by_complete_ones(tmp_path):
    rows = evidence_rows(400)
    whole = [row for row in rows if int(row["id"]) % 20 == 0]
    lacking = [row for row in rows if row["category"] == "default" or row in whole]
    built(tmp_path / "out", lacking, number=5)
    built(tmp_path / "whole", whole, number=5)

    assert len(read_records(tmp_path / "out" / "documents.jsonl", Document)) == 5
    assert data_bytes(tmp_path / "out") == data_bytes(tmp_path / "whole")
    manifest = built(tmp_path / "all", lacking, number=50)
    assert manifest["dropped"]["requested claim that is not available"] == 30


def test_skipped_rows_are_counted_by_reason(tmp_path):
    rows = evidence_rows(5)
    rows[0]["evidence"] = ""
    rows[4]["claim"] = None
    rows[8]["subject"] = ""
    manifest = built(tmp_path / "out", rows, number=1)

    assert manifest["dropped"] == {
        "evidence of another kind of conflict": 10,
        "row of a claim that was not drawn": 5,
        "row without claim": 1,
        "row without evidence": 1,
        "row without id or subject": 1,
    }


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kb") / "out"
    builder = KbConflicts(folder, seed=5)
    manifest = json.loads(builder.build().read_text())
    assert set(manifest["files"]) == set(builder.writes())
    return folder


@pytest.fixture(scope="module")
def documents(kb):
    return {
        split: read_records(kb / f"documents_{split}.jsonl", Document)
        for split in ("train", "dev", "test")
    }


@pytest.fixture(scope="module")
def everything(documents):
    return [document for split in documents.values() for document in split]


def test_true_and_false_claims_have_the_same_numbers_of_contexts(documents):
    for split in documents.values():
        cells = {"S": Counter(), "NS": Counter()}
        for claim, contexts in claims_with_contexts(split):
            supporting = sum(side(c) > 0 for c in contexts)
            cells[claim.label][claim.property, len(contexts), supporting] += 1
            assert 2 <= len(contexts) <= 5
            assert 1 <= supporting < len(contexts)
        assert cells["S"] == cells["NS"]
    numbers = Counter(len(contexts) for _, contexts in claims_with_contexts(documents["train"]))
    assert set(numbers) == {2, 3, 4, 5}
    assert max(numbers.values()) - min(numbers.values()) <= 2


def test_only_sources_predict_the_labels(everything):
    assert accuracy(everything, "majority of contexts") == pytest.approx(0.5)
    # Five standard errors of a fair coin, or of an AUROC by chance.
    number = len(claims_with_contexts(everything))
    for rule in ("first context", "longest context"):
        assert abs(accuracy(everything, rule) - 0.5) < 2.5 / number**0.5
    for cue in LEAKS:
        assert abs(leak(everything, cue) - 0.5) < 5 * (12 * number / 4) ** -0.5, cue
    assert accuracy(everything, "most reliable context") > 0.8
    assert accuracy(everything, "majority weighted by prior") > 0.75
    assert accuracy(everything, "sum of log-odds of the priors") > 0.88


def test_share_of_true_contexts_of_a_source_is_its_prior(everything):
    truths = {}
    for claim, contexts in claims_with_contexts(everything):
        for context in contexts:
            truths.setdefault(context.prior, []).append((side(context) > 0) == (claim.label == "S"))
    assert set(truths) == {0.95, 0.85, 0.65, 0.35, 0.15, 0.05}
    for prior, true in truths.items():
        assert abs(sum(true) / len(true) - prior) < 5 * (prior * (1 - prior) / len(true)) ** 0.5


def test_contexts_are_worded_unlike_their_claim(everything):
    wording = read_wording("people", 5)
    for document in everything:
        for claim, contexts in claims_with_contexts([document]):
            assert len({c.text for c in contexts}) == len(contexts)
            for context in contexts:
                assert claim.text.rstrip(".") not in context.text
                assert document.topic in context.text
                assert "#" not in context.text
            templates = wording[claim.property]
            assert not set(templates.claims) & set(templates.contexts)


def test_contexts_state_the_claimed_value_or_one_alternative(everything):
    wording = read_wording("people", 5)
    for document in everything:
        for claim, contexts in claims_with_contexts([document]):
            truths = {1: set(), -1: set()}
            templates = wording[claim.property].contexts
            for context in contexts:
                value = _value(templates, document.topic, context.text)
                truths[side(context)].add(value)
            assert len(truths[1]) == len(truths[-1]) == 1
            assert truths[1] != truths[-1]
            (claimed,) = truths[1]
            assert claimed in claim.text


def _value(templates, topic, text):
    """What a context says: the shortest reading, since asides may stand around it."""
    readings = []
    for template in templates:
        before, after = fill(template, topic, "\0").split("\0")
        start = text.find(before)
        end = text.find(after, start + len(before))
        if start >= 0 and end >= 0:
            readings.append(text[start + len(before) : end].rpartition(". ")[2])
    return min(readings, key=len)


def test_topics_are_in_one_split_and_relations_match_documents(kb, documents):
    topics = [{d.topic for d in documents[split]} for split in ("train", "dev", "test")]
    assert all(topics)
    assert len(set.union(*topics)) == sum(map(len, topics))
    for split, made in documents.items():
        pairs = read_records(kb / f"relation_{split}.jsonl", RelationPair)
        assert {p.group for p in pairs} <= {d.topic for d in made}
        by_source = {}
        for pair in pairs:
            by_source.setdefault(pair.source, []).append(pair)
        assert len(by_source["kb/conflict"]) == sum(len(d.passages) for d in made)
        assert {p.label for p in by_source["kb/conflict"]} == {"entailment", "contradiction"}
        assert {p.label for p in by_source["kb/conflict_other"]} == {"neutral"}
        relation = {p.text: p.relation for d in made for p in d.passages}
        agree = {True: "entailment", False: "contradiction"}
        contexts = by_source["kb/conflict_contexts"]
        same = [relation[p.premise] == relation[p.hypothesis] for p in contexts]
        assert [p.label for p in contexts] == [agree[s] for s in same]
        numbers = [len(c.contexts) for d in made for c in d.claims]
        assert len(contexts) == sum(n * (n - 1) // 2 for n in numbers)
        # Every context is told apart from one of another claim, and never from its own claim's.
        claim_of = {p.text: (d.id, p.id.split("_")[1]) for d in made for p in d.passages}
        apart = by_source["kb/conflict_other_contexts"]
        assert {p.label for p in apart} == {"neutral"}
        assert len(apart) == sum(len(d.passages) for d in made if len(d.claims) > 1)
        ends = [(claim_of[p.premise], claim_of[p.hypothesis]) for p in apart]
        assert all(left[0] == other[0] and left[1] != other[1] for left, other in ends)


def test_same_seed_gives_the_same_bytes(kb, tmp_path):
    KbConflicts(tmp_path / "again", seed=5).build()
    names = sorted(path.name for path in kb.iterdir())
    assert "manifest.json" in names
    assert all((kb / n).read_bytes() == (tmp_path / "again" / n).read_bytes() for n in names)


FILMS = """\
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def films():
    lines = [FILMS]
    for index in range(12):
        lines.append(f'wd:Q90{index} rdfs:label "Mara Voss{chr(65 + index)}"@en .')
        lines.append(
            f'wd:Q{index} rdfs:label "The {chr(65 + index)} Road"@mul ; wdt:P31 wd:Q11424 ; '
            f"wdt:P57 wd:Q90{index} ; "
            f'wdt:P577 "19{50 + index}-03-0{1 + index % 9}T00:00:00Z"^^xsd:dateTime .'
        )
    lines.append("wd:Q1 wdt:P57 wd:Q9011 . wd:Q5 wdt:P57 wd:Q9011 .")  # two directors
    lines.append('wd:Q40 rdfs:label "Z"@en ; wdt:P31 wd:Q11424 ; wdt:P577 "soon" .')
    lines.append("wd:Q77 wdt:P31 wd:Q11424 .")  # no name
    lines.append('wd:Q78 rdfs:label "The C Road"@en ; wdt:P31 wd:Q11424 .')
    lines.append("wd:Q3 wdt:P577 wd:Q999 .")
    return "\n".join(lines)


def test_films_with_population_and_wording_are_built(tmp_path):
    (tmp_path / "films.ttl").write_text(films(), encoding="utf-8")
    options = {"population": "?item wdt:P31 wd:Q11424 .", "wording": "films"}
    with local_endpoint(tmp_path / "films.ttl") as url:
        KbConflicts(tmp_path / "out", url, shares=(1, 0, 0), **options).build()
        KbConflicts(tmp_path / "few", url, shares=(0, 0, 1), limit=6, **options).build()
    made = read_records(tmp_path / "out" / "documents_train.jsonl", Document)
    assert {c.property for d in made for c in d.claims} == {"P57", "P577"}
    assert not (tmp_path / "out" / "documents_test.jsonl").exists()
    dropped = json.loads((tmp_path / "out" / "manifest.json").read_text())["dropped"]
    assert dropped == {
        "claim without a partner of opposite truth": 1,
        "item with a shared name": 2,
        "item with several values of P57": 2,
        "item with several values of P577": 1,
        "item without an English name": 1,
        "topic without a value of P57": 3,
        "topic without a value of P577": 2,
        "value of P577 without an English label, or no date": 1,
    }
    few = read_records(tmp_path / "few" / "documents_test.jsonl", Document)
    assert len(few) <= 6
