"""The real SPARQL server over the snapshot, asked by the client code that would ask Wikidata."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlsplit

import pytest

from data_builders.kb.server import local_endpoint, open_client
from tests.kb_people import load_people

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def client():
    with open_client() as running:
        yield running


@pytest.fixture(scope="module")
def people(client):
    return load_people(client)


def test_one_person_whole(people):
    (person,) = [p for p in people if p.title == "Winston Churchill (novelist)"]
    assert person.name == "Winston Churchill"
    assert (person.group, person.continent, person.frequency_bin) == ("B", "North America", 1)
    assert [v.label for v in person.facts["P106"]] == ["novelist", "politician", "writer"]
    assert person.facts["P569"][0].label == "10 November 1871"
    assert [v.label for v in person.facts["P19"]] == ["St. Louis"]


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
        assert client.select("SELECT ?s WHERE { ?s ?p ?o } LIMIT 1")
    assert "no_proxy" not in os.environ
