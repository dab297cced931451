"""The real SPARQL server over the snapshot, asked by the client code that would ask Wikidata."""

from __future__ import annotations

import os
import socket
from collections import Counter
from urllib.parse import urlsplit

import pytest

from clients.sparql import EndpointError
from data_builders.kb.facts import count_people, load_people
from data_builders.kb.server import local_endpoint, open_client
from records import UserError

pytestmark = pytest.mark.integration

WIKIDATA_SHAPE = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
wd:Q1x wdt:P31 wd:Q5 ; rdfs:label "Ana"@en, "Anna"@de ;
    wdt:P569 "1901-02-03T00:00:00Z"^^xsd:dateTime ; wdt:P570 _:unknown ;
    wdt:P27 wd:land1, wd:land2, wd:land3 ; wdt:P106 wd:job1, wd:job2 .
wd:Q2x wdt:P31 wd:Q5 ; rdfs:label "Bo"@mul .
wd:Q3x wdt:P31 wd:Q5 ; rdfs:label "Karl"@de .
wd:land1 rdfs:label "One"@en ; wdt:P30 wd:Q46, wd:Q48 .
wd:land2 rdfs:label "Two"@en ; wdt:P30 wd:Q46 .
wd:land3 rdfs:label "Three"@en ; wdt:P30 wd:Q15 .
wd:Q46 rdfs:label "Europe"@en . wd:Q48 rdfs:label "Asia"@en . wd:Q15 rdfs:label "Africa"@en .
wd:job1 rdfs:label "baker"@en .
wd:job2 rdfs:label "Weber"@de .
"""


@pytest.fixture(scope="module")
def client():
    with open_client() as running:
        yield running


@pytest.fixture(scope="module")
def people(client):
    return load_people(client)


def test_counts_agree_with_the_people_read(client, people):
    population = "?person wdt:P106 wd:Q82955 ."
    politicians = [p for p in people if "politician" in {v.label for v in p.facts["P106"]}]
    assert count_people(client, []) == len(people)
    assert count_people(client, [population]) == len(politicians)
    women = sum(p.sex == "female" for p in politicians)
    assert count_people(client, [population, "?person wdt:P21 wd:Q6581072 ."]) == women
    unawarded = sum("P166" not in p.facts for p in politicians)
    none = "FILTER NOT EXISTS { ?person wdt:P166 ?award }"
    assert count_people(client, [population, none]) == unawarded
    assert count_people(client, ["?person wdt:P106 wd:nothing ."]) == 0


def test_one_person_whole(people):
    (person,) = [p for p in people if p.title == "Winston Churchill (novelist)"]
    assert person.name == "Winston Churchill"
    assert (person.group, person.continent, person.frequency_bin) == ("B", "North America", 1)
    assert [v.label for v in person.facts["P106"]] == ["novelist", "politician", "writer"]
    assert person.facts["P569"][0].label == "10 November 1871"
    assert [v.label for v in person.facts["P19"]] == ["St. Louis"]


def test_a_malformed_query_is_the_users_to_mend(client):
    with pytest.raises(UserError, match="rejects the query") as caught:
        client.select("SELECT ?x WHERE {")
    assert not isinstance(caught.value, EndpointError)


def test_the_shapes_that_only_wikidata_has(tmp_path):
    (tmp_path / "wikidata.ttl").write_text(WIKIDATA_SHAPE, encoding="utf-8")
    dropped = Counter()
    with open_client(snapshot=tmp_path / "wikidata.ttl") as client:
        ana, bo = load_people(client, dropped=dropped)
    assert (ana.name, bo.name) == ("Ana", "Bo")
    assert ana.facts["P569"][0].label == "3 February 1901"
    assert "P570" not in ana.facts
    assert [v.label for v in ana.facts["P106"]] == ["baker"]
    assert (ana.group, ana.continent) == ("C", "Europe")  # two of three countries
    assert (bo.group, bo.continent, bo.frequency, bo.title) == ("D", None, 0, "Bo")
    assert +dropped == {
        "person without an English name": 1,
        "value without an English label": 1,
        "invalid date": 1,
    }


def test_the_server_ends_with_the_block_even_on_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="ours"), local_endpoint() as url:
        raise RuntimeError("ours")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout=1)


def test_a_proxy_of_the_environment_is_none_for_loopback(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "intranet.example")
    monkeypatch.delenv("no_proxy", raising=False)
    with open_client() as client:
        assert count_people(client, ["?person wdt:P106 wd:Q82955 ."]) > 0
    assert "no_proxy" not in os.environ


def test_files_that_cannot_be_served(tmp_path):
    with pytest.raises(UserError, match="no such file"), local_endpoint(tmp_path / "none.ttl"):
        pass
    (tmp_path / "bad.ttl").write_text("this is no turtle", encoding="utf-8")
    with pytest.raises(UserError, match="not valid Turtle"), local_endpoint(tmp_path / "bad.ttl"):
        pass
