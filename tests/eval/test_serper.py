"""Web search against a real HTTP server that speaks Serper's published shape."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from clients.serper import SerperClient
from eval.retrieve.serper import Serper
from records import Claim, Document, UserError

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


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            server.asked.append(body)
            server.keys.append(self.headers["x-api-key"])
            fault = server.faults.popleft() if server.faults else None
            server.busy += 1
            server.most = max(server.most, server.busy)
        time.sleep(0.01)
        with server.lock:
            server.busy -= 1
        self.answer(*(fault or (200, server.replies.get(body["q"], {"organic": []}))))

    def answer(self, status, content, **headers):
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        # So that the client does not wait: it honours what it is told.
        for name, text in {"Retry-After": "0", "Content-Length": str(len(raw))}.items():
            self.send_header(name, text)
        if status == 302:
            self.send_header("Location", content["to"])
        self.end_headers()
        self.wfile.write(raw)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("SERPER_API_KEY", KEY)
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    running.lock, running.faults = threading.Lock(), deque()
    running.asked, running.keys, running.busy, running.most = [], [], 0, 0
    running.replies = {"ada": ADA}
    running.url = f"http://127.0.0.1:{running.server_port}"
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


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
    assert server.asked[0] == {"q": "ada", "gl": "us", "hl": "en", "num": 10}
    assert set(server.keys) == {KEY}
    assert [p.title for p in serper(server, boxes=False).search(["ada"], 1)[0]] == ["A"]


def test_nothing_found_is_not_a_failed_search(server):
    server.faults.extend([(400, {"message": "Query not allowed.", "statusCode": 400})])
    assert serper(server, concurrency=1).search(["bad", "zzz", " "], 3) == [None, [], []]
    assert len(server.asked) == 2, "an empty query is not asked"


def test_the_stage_asks_each_query_once(server):
    documents = [Document(id="d", topic="ada", text=""), Document(id="e", topic="zzz", text="")]
    claims = [[Claim(id="a", text="x"), Claim(id="b", text="y")], [Claim(id="c", text="x")]]
    results, passages = serper(server, per="topic", k=3)(documents, claims)
    assert sorted(body["q"] for body in server.asked) == ["ada", "zzz"]
    assert results[0][0].contexts == results[0][1].contexts == [p.id for p in passages[0]]
    assert len(passages[0]) == 3
    assert results[1][0].contexts == []


def test_answers_are_cached_and_failures_are_not(server, tmp_path, monkeypatch):
    cache = tmp_path / "cache.sqlite"
    server.faults.extend([busy(503)] * 3)
    assert serper(server, cache=cache, concurrency=1).search(["ada"], 3) == [None]
    first = serper(server, cache=cache).search(["ada", "zzz"], 3)
    assert first[0]
    n_requests = len(server.asked)
    monkeypatch.delenv("SERPER_API_KEY")
    assert serper(server, cache=cache).search(["zzz", "ada"], 3) == first[::-1]
    assert len(serper(server, cache=cache).search(["ada"], 1)[0]) == 1
    assert len(server.asked) == n_requests
    assert KEY.encode() not in cache.read_bytes()
    with pytest.raises(UserError, match="environment variable SERPER_API_KEY"):
        serper(server, cache=cache).search(["new"], 3)


@pytest.mark.parametrize(
    "fault",
    [busy(429), busy(503), (200, b'{"organic": [{"ti'), (200, b"<html>"), (200, {"error": "?"})],
    ids=["429", "503", "cut", "html", "empty"],
)
def test_transient_errors_are_retried(server, fault, monkeypatch):
    monkeypatch.setattr("clients.polite.MAX_BACKOFF_S", 0.01)
    server.faults.append(fault)
    (results,) = serper(server).search(["ada"], 9)
    assert len(results) == 4
    assert len(server.asked) == 2


def test_rejected_key_raises_and_is_not_printed(server, tmp_path):
    server.faults.extend([(403, {"message": f"Unauthorized {KEY}", "statusCode": 403})])
    with pytest.raises(UserError, match="environment variable SERPER_API_KEY") as raised:
        serper(server, concurrency=1).search(["ada", "zzz", "yyy"], 3)
    assert KEY not in str(raised.value)
    assert len(server.asked) == 1
    server.faults.append((503, f"busy with {KEY}".encode()))
    with pytest.raises(UserError, match=r"1 attempts \(HTTP 503: busy with \*\*\*\)"):
        SerperClient(base_url=server.url, retries=0).search("ada")
    # What was under way when the credits ran out is kept.
    server.faults.extend([None, (400, {"message": "Not enough credits", "statusCode": 400})])
    stage = serper(server, concurrency=1, cache=tmp_path / "cache.sqlite")
    with pytest.raises(UserError, match="Not enough credits; add credits"):
        stage.search(["ada", "zzz", "yyy"], 3)
    server.asked.clear()
    assert stage.search(["ada"], 3)[0]
    assert server.asked == []
    assert KEY not in json.dumps(stage.identity)


def test_redirect_does_not_receive_the_key(server):
    server.faults.append((302, {"to": f"{server.url}/other/{KEY}"}))
    with pytest.raises(UserError, match=r"moved to http://.*/other/\*\*\*; use that address"):
        serper(server, retries=0).search(["ada"], 3)
    assert len(server.asked) == 1


def test_concurrent_queries_stay_within_the_limit(server):
    results = serper(server, concurrency=3).search([f"q{number}" for number in range(20)], 3)
    assert results == [[]] * 20
    assert 2 <= server.most <= 3
