"""The fault proxy itself, before a real Oxigraph and a real MediaWiki."""

from __future__ import annotations

import json
import threading
import time

import pytest
import requests

from data_builders.kb.server import local_endpoint
from tests.integration.faults import ANYWHERE, MEDIAWIKI, SPARQL, Fault, FaultProxy, random_mix
from tests.integration.spoil import KINDS

pytestmark = pytest.mark.integration

PEOPLE = "SELECT ?p WHERE { ?p <http://www.wikidata.org/prop/direct/P31> ?x } ORDER BY ?p"
JSON = {"Accept": "application/sparql-results+json", "User-Agent": "us/1 (me@lab.example)"}


@pytest.fixture(scope="module")
def oxigraph():
    with local_endpoint() as url:
        yield url


@pytest.fixture
def sparql(oxigraph):
    with FaultProxy(oxigraph) as proxy:
        yield proxy


@pytest.fixture
def api(wiki):
    with FaultProxy(wiki.api) as proxy:
        yield proxy


def ask(proxy, query=PEOPLE, **options):
    return requests.post(proxy.url, data={"query": query}, headers=JSON, timeout=10, **options)


def look(proxy, **params):
    asked = {"action": "query", "format": "json", "formatversion": 2, "maxlag": 5, **params}
    return requests.get(proxy.url, params=asked, timeout=30)


def test_answers_pass_unchanged(oxigraph, sparql):
    direct = requests.post(oxigraph, data={"query": PEOPLE}, headers=JSON, timeout=10)
    reply = ask(sparql)
    assert reply.content == direct.content
    assert reply.headers["Content-Type"] == direct.headers["Content-Type"]
    (seen,) = sparql.seen
    assert (seen.method, seen.path, seen.params) == ("POST", "/query", {"query": PEOPLE})
    assert seen.headers["user-agent"] == "us/1 (me@lab.example)"
    assert (seen.fault, seen.status, seen.answered) == (None, 200, True)


def test_all_ways_to_ask_are_passed_on(sparql):
    got = requests.get(sparql.url, params={"query": PEOPLE}, headers=JSON, timeout=10)
    plain = {**JSON, "Content-Type": "application/sparql-query"}
    posted = requests.post(sparql.url, data=PEOPLE, headers=plain, timeout=10)
    assert got.content == posted.content == ask(sparql).content
    assert [s.params for s in sparql.seen] == [
        {"query": PEOPLE},
        {"body": PEOPLE},
        {"query": PEOPLE},
    ]
    assert ask(sparql, "SELECT ?x WHERE {").status_code == 400
    assert not sparql.seen[-1].answered


def test_statuses(sparql):
    sparql.faults = [
        Fault("429", retry_after=2),
        Fault("503", retry_after="Wed, 21 Oct 2026 07:28:00 GMT"),
        Fault("503"),
    ]
    replies = [ask(sparql) for _ in range(4)]
    assert [r.status_code for r in replies] == [429, 503, 503, 200]
    waits = [r.headers.get("Retry-After") for r in replies]
    assert waits == ["2", "Wed, 21 Oct 2026 07:28:00 GMT", None, None]
    assert [s.retry_after for s in sparql.seen] == waits
    assert [s.fault for s in sparql.seen] == ["429", "503", "503", None]
    assert sparql.repeated() == []


def test_bodies_that_are_no_answers(sparql):
    whole = ask(sparql).content
    sparql.faults = [Fault("html"), Fault("cut_unseen"), Fault("cut_json"), Fault("silent_cut")]
    html, cut, java, short = (ask(sparql) for _ in range(4))
    assert {r.status_code for r in (html, cut, java, short)} == {200}
    assert html.headers["Content-Type"].startswith("text/html")
    assert cut.content == whole[: len(whole) // 2]
    assert java.content.startswith(cut.content)
    assert b"java.util.concurrent.TimeoutException" in java.content[-200:]
    for broken in (html, cut, java):
        with pytest.raises(requests.JSONDecodeError):
            broken.json()
    rows = json.loads(whole)["results"]["bindings"]
    assert short.json()["results"]["bindings"] == rows[:1]
    assert short.json()["head"] == json.loads(whole)["head"]
    assert not any(s.answered for s in sparql.seen[1:])


def test_torn_connections(sparql):
    sparql.faults = [Fault("drop"), Fault("cut"), Fault("cut", keep=0)]
    with pytest.raises(requests.ConnectionError):
        ask(sparql)
    for _ in range(2):
        with pytest.raises(requests.exceptions.ChunkedEncodingError, match="IncompleteRead"):
            ask(sparql)
    assert [(s.fault, s.status) for s in sparql.seen] == [
        ("drop", None),
        ("cut", 200),
        ("cut", 200),
    ]


def test_slow_bodies_are_whole_but_late(sparql):
    whole = ask(sparql).content
    sparql.faults = [Fault("slow", seconds=0.5)]
    began = time.monotonic()
    assert ask(sparql).content == whole
    assert time.monotonic() - began >= 0.5
    assert sparql.seen[-1].answered


def test_a_client_that_gives_up_and_asks_again_does_not_ask_twice_at_once(sparql):
    sparql.faults = [Fault("slow", seconds=4)]
    reply = ask(sparql, stream=True)
    reply.raw.read(10)
    reply.close()
    assert ask(sparql).status_code == 200
    assert sparql.most_at_once == 1


def test_requests_at_once_are_noticed(sparql):
    sparql.faults = lambda request: Fault("slow", seconds=0.3)
    threads = [threading.Thread(target=ask, args=(sparql,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sparql.most_at_once >= 2
    sparql.forget()
    sparql.faults = ()
    for _ in range(5):
        ask(sparql, "ASK {}")
    assert sparql.most_at_once == 1


def test_impatience_and_needless_repeats_are_noticed(sparql):
    sparql.faults = [Fault("429", retry_after=1), None, Fault("503")]
    for _ in range(4):
        ask(sparql)
    assert sparql.too_soon() == sparql.seen[1:]
    assert sparql.too_soon(clock=1e9) == []
    assert sparql.repeated() == sparql.seen[3:], "the spoiled one between is no second repeat"
    assert [s.nth for s in sparql.seen] == [0, 1, 2, 3]


def test_maxlag_is_the_wikis_own_answer(api):
    api.faults = [Fault("maxlag"), Fault("maxlag", retry_after=1), Fault("maxlag")]
    lagged, brief = (look(api, titles="Alan Burns") for _ in range(2))
    assert lagged.status_code == 200
    assert lagged.json()["error"]["code"] == "maxlag"
    assert (lagged.headers["Retry-After"], lagged.headers["X-Database-Lag"]) == ("5", "9")
    assert brief.headers["Retry-After"] == "1"
    careless = requests.get(api.url, params={"action": "query", "format": "json"}, timeout=30)
    assert "error" not in careless.json()
    assert [s.fault for s in api.seen] == ["maxlag", "maxlag", None]
    assert [s.answered for s in api.seen] == [False, False, True]


def test_the_same_batch_again(api):
    more, batches = {}, []
    api.faults = [None, Fault("dup_continue"), None]
    for _ in range(3):
        reply = look(api, list="allpages", aplimit=3, **more).json()
        batches.append([page["title"] for page in reply["query"]["allpages"]])
        more = reply["continue"]
    assert batches[0] == batches[1]
    assert not set(batches[1]) & set(batches[2])
    assert [s.fault for s in api.seen] == [None, "dup_continue", None]


def test_one_bad_id_refuses_its_batch_and_nothing_else(api, sparql):
    for proxy in (api, sparql):
        proxy.faults = lambda request: Fault("bad_id", bad="Q404")
    refused = look(api, action="wbgetentities", ids="Q1|Q404|Q5").json()["error"]
    assert (refused["code"], refused["id"]) == ("no-such-entity", "Q404")
    # This wiki has no entities; what matters is that its own answer comes.
    assert look(api, action="wbgetentities", ids="Q1|Q5").json()["error"]["code"] == "badvalue"
    assert look(api, titles="Q404").json()["query"]["pages"][0]["missing"]
    assert ask(sparql).status_code == 200
    assert [s.fault for s in api.seen] == ["bad_id", None, None]


def test_faults_that_do_not_apply_change_nothing(sparql):
    whole = ask(sparql).content
    kinds = ("maxlag", "dup_continue", "bad_id")
    sparql.faults = [*(Fault(kind) for kind in kinds), Fault("silent_cut", rows=10_000)]
    assert {ask(sparql).content for _ in range(4)} == {whole}
    assert {s.fault for s in sparql.seen} == {None}


def test_a_mix_depends_on_the_seed_and_lets_every_request_through(sparql):
    def course(seed):
        sparql.forget()
        sparql.faults = random_mix(SPARQL, p=0.9, seed=seed, in_a_row=2)
        for number in (1, 2, 3):
            for _ in range(6):
                try:
                    ask(sparql, f"SELECT ?x {{ VALUES ?x {{ {number} }} }}")
                except requests.RequestException:
                    continue
        return [(s.params["query"], s.fault) for s in sparql.seen]

    one = course(1)
    assert course(1) == one
    assert course(2) != one
    for start in range(0, 18, 6):
        row = [fault is not None for _, fault in one[start : start + 6]]
        assert True in row
        assert row[:3] != [True] * 3
        assert row[3:] != [True] * 3


def test_mixes_name_known_faults():
    assert {fault.kind for fault in (*SPARQL, *MEDIAWIKI)} <= set(KINDS)
    assert set(ANYWHERE) == set(SPARQL) & set(MEDIAWIKI)
    with pytest.raises(ValueError, match="none of"):
        Fault("teapot")


def test_a_server_that_is_gone():
    with FaultProxy("http://127.0.0.1:9/query") as proxy:
        assert ask(proxy).status_code == 502
