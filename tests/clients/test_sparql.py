"""The SPARQL client against a real, badly behaved HTTP server on loopback."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from clients.asking import ask_each
from clients.polite import EndpointError, is_local
from clients.sparql import SparqlClient
from records import UserError

GOOD = json.dumps(
    {
        "head": {"vars": ["x", "y"]},
        "results": {
            "bindings": [
                {"x": {"type": "literal", "value": "1"}, "y": {"type": "literal", "value": "2"}},
                {"x": {"type": "literal", "value": "3"}},
            ]
        },
    }
)
ROWS = [{"x": "1", "y": "2"}, {"x": "3"}]


class Server(ThreadingHTTPServer):
    """Answers with the listed (status, headers, body) in turn, the last one for ever."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, dict, str]] = []
        self.reply = None  # instead of the list: a function of the query
        self.seen: list[tuple[str, str, str]] = []
        self.drip_s = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/query"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        query = parse_qs(body)["query"][0]
        self.server.seen.append(("POST", query, self.headers["User-Agent"]))
        answers = self.server.answers
        if self.server.reply is not None:
            status, headers, text = self.server.reply(query)
        else:
            status, headers, text = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        for name, value in {"Content-Type": "application/sparql-results+json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        pieces = (
            [text[i : i + 20] for i in range(0, len(text), 20)] if self.server.drip_s else [text]
        )
        try:
            for piece in pieces:
                self.wfile.write(piece.encode())
                self.wfile.flush()
                time.sleep(self.server.drip_s)
        except OSError:
            pass  # the client hung up, as it should

    def do_GET(self):
        self.send_error(405)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()


def _client(server, **options) -> tuple[SparqlClient, list[float]]:
    waits: list[float] = []
    options = {"backoff_s": 0.5, "sleep": waits.append, **options}
    return SparqlClient(server.url, "tests/1.0 (tests@factfoundry.example)", **options), waits


def test_rate_limit_and_truncated_json_are_retried(server):
    server.answers = [
        (429, {"Retry-After": "0"}, "slow down"),
        (200, {}, GOOD[:-30]),
        (200, {}, GOOD),
    ]
    client, waits = _client(server)
    assert client.select("SELECT * {}") == ROWS
    assert len(server.seen) == 3
    # The server's own wait, then the second step of the back-off and some chance.
    assert waits[0] == 0.0
    assert 1.0 <= waits[1] <= 1.25
    assert server.seen[0] == ("POST", "SELECT * {}", "tests/1.0 (tests@factfoundry.example)")


@pytest.mark.parametrize(
    "body",
    [
        '{"head":{"vars":["x"]},"results":{"bindings":[The SPARQL operation has been cancelled',
        "<html>busy</html>",
        "{}",
        "",
        GOOD.replace('"3"', "3"),
    ],
)
def test_error_in_a_200_body_is_retried_and_never_cached(server, body):
    server.answers = [(200, {}, body)]
    client, _ = _client(server, retries=1)
    with pytest.raises(EndpointError, match="2 attempts"):
        client.select("SELECT * {}")
    assert len(server.seen) == 2
    assert client.families == {}


def test_very_long_retry_after_is_an_error(server):
    server.answers = [(429, {"Retry-After": "86400"}, "")]
    client, waits = _client(server)
    # Not an EndpointError, after which the next of many questions would be asked.
    with pytest.raises(UserError, match="86400 s"):
        list(ask_each(["SELECT * {}"] * 3, client.select))
    assert waits == []
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [400, 403, 404])
def test_permanent_status_is_not_retried(server, status):
    server.answers = [(status, {}, "no")]
    with pytest.raises(UserError) as caught:
        _client(server)[0].select("SELECT nonsense")
    assert not isinstance(caught.value, EndpointError)
    assert "\n" not in str(caught.value)
    assert len(server.seen) == 1


def test_a_dripping_answer_hits_the_total_deadline(server):
    # Every read succeeds well within the socket time-out; the whole takes longer than allowed.
    server.answers, server.drip_s = [(200, {}, GOOD)], 0.1
    with pytest.raises(EndpointError, match="TimeoutError"):
        _client(server, timeout_s=0.3, retries=0)[0].select("SELECT * {}")


def test_cached_answers_are_used_without_the_server(server, tmp_path):
    server.answers = [(200, {}, GOOD)]
    first, _ = _client(server, cache_dir=tmp_path, identity="data")
    first.select("SELECT * {}", family="all")
    second = SparqlClient(
        "http://127.0.0.1:1/query", cache_dir=tmp_path, identity="data", retries=0
    )
    assert second.select("SELECT * {}", family="all") == ROWS
    assert second.families["all"].first == first.families["all"].first
    other = SparqlClient(
        "http://127.0.0.1:1/query", cache_dir=tmp_path, identity="other", retries=0
    )
    with pytest.raises(EndpointError):
        other.select("SELECT * {}")
    with pytest.raises(EndpointError):
        second.select("SELECT ?another {}")


@pytest.mark.parametrize("status", [301, 307])
def test_redirect_is_an_error_with_the_new_address(server, status):
    """The query would be lost on the way: http://query.wikidata.org moves to https."""
    server.answers = [(status, {"Location": "/sparql?query=1"}, "")]
    client, waits = _client(server)
    with pytest.raises(UserError, match=r"moved to http://.*/sparql; use that address"):
        client.select("SELECT * {}")
    assert len(server.seen) == 1
    assert not waits


def test_too_long_answer_is_an_error(server, monkeypatch):
    monkeypatch.setattr("clients.polite.MAX_BYTES", 1 << 20)
    server.answers = [(200, {}, "x" * (9 << 20))]
    with pytest.raises(EndpointError, match="longer than 1 MiB") as caught:
        _client(server, retries=0)[0].select("SELECT * {}")
    assert caught.value.unfinished


def test_remote_endpoints_need_a_user_agent():
    with pytest.raises(UserError, match="user_agent"):
        SparqlClient("https://query.wikidata.org/sparql")
    assert not is_local("https://query.wikidata.org/sparql")
    assert is_local("http://localhost:7878/query")


def test_missing_rows_are_detected_by_counting(server):
    counted = GOOD.replace('"value": "1"', '"value": "2"').replace('"x": {', '"n": {')
    more = GOOD.replace('"value": "1"', '"value": "3"').replace('"x": {', '"n": {')
    server.answers = [(200, {}, body) for body in (GOOD, more, GOOD, counted)]
    client, waits = _client(server, counted=True)
    assert client.select("PREFIX a: <b:> SELECT ?x ?y {}") == ROWS
    assert len(waits) == 1
    assert server.seen[1][1] == (
        "PREFIX a: <b:> SELECT (COUNT(*) AS ?n) WHERE { { SELECT ?x ?y {} } }"
    )


def test_batch_with_a_bad_identifier_is_split(server):
    server.reply = lambda query: (400, {}, "no") if "bad:7" in query else (200, {}, GOOD)
    dropped = Counter()
    iris = [f"bad:{i}" if i == 7 else f"ok:{i}" for i in range(10)] + ["not an iri", "x:<y>"]
    client, _ = _client(server)
    rows = list(client.select_values(lambda block: f"SELECT {block}", iris, "all", dropped))
    good_queries = [q for _, q, _ in server.seen if "bad:7" not in q]
    assert len(rows) == 2 * len(good_queries)
    assert sorted(x for q in good_queries for x in q.split()[1:]) == sorted(
        f"<ok:{i}>" for i in range(10) if i != 7
    )
    assert dropped == {"identifier that is no IRI": 2, "identifier that the endpoint refuses": 1}


def test_unfinished_batch_is_split_in_halves(server):
    server.reply = lambda query: (200, {}, GOOD[:-30] if query.count("<") > 2 else GOOD)
    client, _ = _client(server, retries=1)
    iris = [f"ok:{i}" for i in range(8)]
    assert list(client.select_values(lambda block: f"SELECT {block}", iris, "all")) == ROWS * 4
    assert client.families["all"].requests == 4
