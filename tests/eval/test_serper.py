"""Web search against a real HTTP server that speaks Serper's published shape."""

from __future__ import annotations

import json
from collections import deque

import pytest

from clients.serper import SerperClient
from eval.retrieve.serper import Serper
from records import Claim, Document, UserError
from tests.web_server import WebServer

KEY = "k3y-of-the-tests"
ADA = {
    "searchParameters": {"q": "ada", "type": "search"},
    "answerBox": {"title": "Ada", "answer": "1815", "link": "https://a.example"},
    "knowledgeGraph": {
        "title": "Ada Lovelace",
        "type": "Mathematician",
        "description": "Ada wrote notes.",
        "descriptionLink": "https://w.example",
        "attributes": {"Born": "10 December 1815", "Died": "1852"},
    },
    "organic": [
        {"title": "A", "link": "https://a.example", "snippet": "Born in 1815.", "position": 1},
        {"title": "B", "link": "https://b.example", "position": 2},
        {"title": "C", "link": "https://c.example", "snippet": "An engine.", "date": "Jan 1, 2020"},
        "of no known shape",
    ],
}


class Search:
    """The pages of a server that speaks Serper's published shape; keeps bodies and keys."""

    def __init__(self):
        self.bodies, self.keys, self.faults = [], [], deque()

    def get(self, *_):
        return self.answer

    def answer(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        self.bodies.append(body)
        self.keys.append(handler.headers["x-api-key"])
        fault = self.faults.popleft() if self.faults else None
        status, content = fault or (200, ADA if body["q"] == "ada" else {"organic": []})
        raw = content if isinstance(content, bytes) else json.dumps(content)
        headers = {"Location": content["to"]} if status == 302 else {}
        handler.answer(status, raw, None, Retry_After="0", **headers)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("SERPER_API_KEY", KEY)
    with WebServer(Search()) as running:
        yield running


def serper(server, **options):
    return Serper(base_url=server.url, **{"retries": 2, **options})


def busy(status):
    return (status, {"message": "Too many requests.", "statusCode": status})


def test_results_are_passages(server):
    search = serper(server)
    (results,) = search.search(["ada"], 9)
    assert [(p.title, p.text, p.url, p.source) for p in results] == [
        ("Ada", "1815", "https://a.example", "Google's answer box"),
        (
            "Ada Lovelace",
            "Ada Lovelace: Mathematician. Ada wrote notes. Ada Lovelace Born: 10 December 1815. "
            "Ada Lovelace Died: 1852.",
            "https://w.example",
            "Google's knowledge graph",
        ),
        ("A", "Born in 1815.", "https://a.example", "Google"),
        ("C", "An engine.", "https://c.example", "Google"),
    ]
    assert results[3].model_extra == {"date": "Jan 1, 2020"}
    assert len({passage.id for passage in results}) == 4, "two texts of one link are two passages"
    assert results == search.search(["ada"], 9)[0], "ids do not change"
    assert server.pages.bodies[0] == {"q": "ada", "gl": "us", "hl": "en", "num": 10}
    assert set(server.pages.keys) == {KEY}
    assert [p.title for p in serper(server, boxes=False).search(["ada"], 1)[0]] == ["A"]


def test_nothing_found_is_not_a_failed_search(server):
    server.pages.faults.extend([(400, {"message": "Query not allowed.", "statusCode": 400})])
    assert serper(server, concurrency=1).search(["bad", "zzz", " "], 3) == [None, [], []]
    assert len(server.pages.bodies) == 2, "an empty query is not asked"


def test_the_stage_asks_each_query_once(server):
    documents = [Document(id="d", topic="ada", text=""), Document(id="e", topic="zzz", text="")]
    claims = [[Claim(id="a", text="x"), Claim(id="b", text="y")], [Claim(id="c", text="x")]]
    results, passages = serper(server, per="topic", k=3)(documents, claims)
    assert sorted(body["q"] for body in server.pages.bodies) == ["ada", "zzz"]
    assert results[0][0].contexts == results[0][1].contexts == [p.id for p in passages[0]]
    assert len(passages[0]) == 3
    assert results[1][0].contexts == []


def test_answers_are_cached_and_failures_are_not(server, tmp_path, monkeypatch):
    cache = tmp_path / "cache.sqlite"
    server.pages.faults.extend([busy(503)] * 3)
    assert serper(server, cache=cache, concurrency=1).search(["ada"], 3) == [None]
    first = serper(server, cache=cache).search(["ada", "zzz"], 3)
    assert first[0]
    n_requests = len(server.pages.bodies)
    monkeypatch.delenv("SERPER_API_KEY")
    assert serper(server, cache=cache).search(["zzz", "ada"], 3) == first[::-1]
    assert len(serper(server, cache=cache).search(["ada"], 1)[0]) == 1
    assert len(server.pages.bodies) == n_requests
    assert KEY.encode() not in cache.read_bytes()
    with pytest.raises(UserError, match="environment variable SERPER_API_KEY"):
        serper(server, cache=cache).search(["new"], 3)


def test_rejected_key_raises_and_is_not_printed(server, tmp_path):
    server.pages.faults.extend([(403, {"message": f"Unauthorized {KEY}", "statusCode": 403})])
    with pytest.raises(UserError, match="environment variable SERPER_API_KEY") as raised:
        serper(server, concurrency=1).search(["ada", "zzz", "yyy"], 3)
    assert KEY not in str(raised.value)
    assert len(server.pages.bodies) == 1
    server.pages.faults.append((503, f"busy with {KEY}".encode()))
    with pytest.raises(UserError, match=r"1 attempts \(HTTP 503: busy with \*\*\*\)"):
        SerperClient(base_url=server.url, retries=0).search("ada")
    # What was under way when the credits ran out is kept.
    server.pages.faults.extend([None, (400, {"message": "Not enough credits", "statusCode": 400})])
    stage = serper(server, concurrency=1, cache=tmp_path / "cache.sqlite")
    with pytest.raises(UserError, match="Not enough credits; add credits"):
        stage.search(["ada", "zzz", "yyy"], 3)
    server.pages.bodies.clear()
    assert stage.search(["ada"], 3)[0]
    assert server.pages.bodies == []
    assert KEY not in json.dumps(stage.identity)


def test_redirect_does_not_receive_the_key(server):
    server.pages.faults.append((302, {"to": f"{server.url}/other/{KEY}"}))
    with pytest.raises(UserError, match=r"moved to http://.*/other/\*\*\*; use that address"):
        serper(server, retries=0).search(["ada"], 3)
    assert len(server.pages.bodies) == 1


def test_concurrent_queries_stay_within_the_limit(server):
    results = serper(server, concurrency=3).search([f"q{number}" for number in range(20)], 3)
    assert results == [[]] * 20
    assert 2 <= server.most <= 3
