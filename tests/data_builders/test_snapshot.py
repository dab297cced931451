"""What the embedded snapshot promises, checked on its Turtle and on the people read from it."""

from __future__ import annotations

from collections import Counter

import pytest
from rdflib import Graph, Namespace

from data_builders.kb.graph import frequency_of, labels_of
from data_builders.kb.server import SNAPSHOT, open_client
from tests.kb_people import PROPERTIES, load_people

WD = Namespace("http://www.wikidata.org/entity/")
WDT = Namespace("http://www.wikidata.org/prop/direct/")


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph().parse(SNAPSHOT, format="turtle")


@pytest.fixture(scope="module")
def people():
    with open_client() as client:
        return load_people(client)


def test_snapshot_has_enough_people_and_shared_names(people):
    assert len(people) >= 290
    names = Counter(person.name for person in people)
    assert sum(n for n in names.values() if n > 1) >= 60
    assert len({person.title for person in people}) == len(people)


def test_snapshot_has_all_sixteen_sampling_cells(people):
    cells = Counter((p.group, p.frequency_bin) for p in people)
    assert set(cells) == {(group, b) for group in "ABCD" for b in range(4)}


def test_all_people_and_facts_have_english_names(people, graph):
    humans = set(graph.subjects(WDT.P31, WD.Q5))
    assert {p.iri for p in people} == {str(human) for human in humans}
    for prop in PROPERTIES:
        in_file = sum(len(set(graph.objects(human, WDT[prop]))) for human in humans)
        assert sum(len(p.facts.get(prop, ())) for p in people) == in_file


def test_names_in_mul_and_regional_english_count_as_english(tmp_path):
    (tmp_path / "people.ttl").write_text(
        """@prefix wd: <http://www.wikidata.org/entity/> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        wd:Q1 rdfs:label "Ada Brit"@en-GB, "Ada All"@mul, "Ada"@en, "Ida"@de .
        wd:Q2 rdfs:label "Bo Canada"@en-ca, "Bo Brit"@en-gb .
        wd:Q3 rdfs:label "Cy Canada"@en-ca .
        wd:Q4 rdfs:label "Dora"@de ."""
    )
    iris = [str(WD[f"Q{number}"]) for number in range(1, 5)]
    with open_client(snapshot=tmp_path / "people.ttl") as client:
        labels = labels_of(client, iris, "names")
    assert list(labels.values()) == ["Ada", "Bo Brit", "Cy Canada"]


@pytest.mark.parametrize(("text", "number"), [("7.9", 7), ("many", None), ("-1", None)])
def test_a_frequency_is_a_number_of_at_least_zero(text, number):
    assert frequency_of(text) == number
