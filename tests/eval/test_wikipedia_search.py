"""Pages that a wiki's search finds for a claim, against a real server that speaks its API."""

from __future__ import annotations

import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from eval.retrieve.cut import Cut
from eval.retrieve.wikipedia import Wikipedia
from eval.retrieve.wikipedia_search import WikipediaSearch
from records import Claim, Document, UserError

TEXTS = {
    "Ada Lovelace": f"Ada Lovelace was a writer.\n\n== Life ==\n{'She lived in London. ' * 400}",
    "London": "London is a city.\n\n== See also ==\nParis",
    "Ada": "Ada may be:",
    "Notes": "Notes are texts.",
    "Empty": "",
}
FOUND = {
    "Ada Lovelace wrote notes.": ["Ada Lovelace", "Ada", "Notes", "London"],
    "She lived in London.": ["London", "Ada Lovelace", "Empty", "Gone"],
}


def answer(params):
    if params.get("meta") == "siteinfo":
        general = {"sitename": "Wiki", "server": "//wiki.example", "script": "/w/index.php"}
        return {"general": general}
    if params.get("list") == "search":
        if params["srsearch"] == "refused":
            return None
        titles = FOUND.get(params["srsearch"], [])[: int(params["srlimit"])]
        return {"search": [{"ns": 0, "title": title} for title in titles]}
    title = params["titles"]
    if title not in TEXTS:
        return {"pages": [{"title": title, "missing": True}]}
    number = list(TEXTS).index(title)
    revision = {"revid": 100 + number, "timestamp": "2024-01-01T00:00:00Z"}
    page = {"title": title, "extract": TEXTS[title], "revisions": [revision]}
    meanings = {"pageprops": {"disambiguation": ""}} if title == "Ada" else {}
    return {"pages": [page | meanings]}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""

    def do_GET(self):
        server = self.server
        params = {name: item[0] for name, item in parse_qs(urlsplit(self.path).query).items()}
        server.asked.append(params)
        status = server.faults.popleft() if server.faults else 200
        replies = answer(params)
        reply = {"batchcomplete": True, "query": replies}
        if replies is None:
            reply = {"error": {"code": "srsearch-error", "info": "a bad query"}}
        raw = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(raw)


@pytest.fixture
def server():
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    running.asked, running.faults = [], deque()
    running.url = f"http://127.0.0.1:{running.server_port}/w/api.php"
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def stage(server, **options):
    return WikipediaSearch(api=server.url, **{"retries": 1, **options})


def document(*texts):
    claims = [Claim(id=f"c{n}", text=text, label="S") for n, text in enumerate(texts)]
    return Document(id="d", topic="Ada Lovelace", text="x", claims=claims)


def searched(server):
    return [params["srsearch"] for params in server.asked if params.get("list") == "search"]


def titles(server):
    return [params["titles"] for params in server.asked if "titles" in params]


def test_pages_of_a_claim_search_are_cut(server):
    item = document(*FOUND, "Nothing is known.", "She lived in London.")
    (claims,), (passages,) = Cut(stage(server, k=3), 4000)([item], [item.claims])
    # A page of meanings, one that is gone and one without text leave no other in their place.
    assert [claim.contexts for claim in claims] == [
        ["Ada Lovelace#0", "Notes#0"],
        ["London#0", "Ada Lovelace#0"],
        [],
        ["London#0", "Ada Lovelace#0"],
    ]
    by_title = {passage.title: passage for passage in passages}
    assert by_title["London"].text == "London is a city."
    ada = by_title["Ada Lovelace"]
    assert ada.text.startswith("Ada Lovelace was a writer. She lived in London. She")
    assert 3900 < len(ada.text) <= 4000
    assert (ada.url, ada.source) == ("https://wiki.example/w/index.php?oldid=100", "Wiki")
    assert ada.model_extra["revision"] == 100
    # The claim as it stands, and nothing asked twice.
    assert sorted(searched(server)) == sorted({*FOUND, "Nothing is known."})
    assert sorted(titles(server)) == sorted(["Ada Lovelace", "Ada", "Notes", "London", "Empty"])
    assert all(params["maxlag"] == "5" for params in server.asked)
    assert {params["srlimit"] for params in server.asked if "srlimit" in params} == {"3"}


def test_queries_are_cut_and_may_contain_the_topic(server):
    stage(server).search(["word " * 99, " "], 3)
    assert searched(server) == [("word " * 60).strip()]
    item = document("She wrote notes.")
    stage(server, topic_in_query=True)([item], [item.claims])
    stage(server, topic_in_query=True, per="topic")([item], [item.claims])
    assert searched(server)[1:] == ["Ada Lovelace She wrote notes.", "Ada Lovelace"]


def test_failed_search_is_not_an_empty_result(server):
    assert stage(server).search(["refused", "unknown"], 3) == [None, []]
    server.faults.extend([503, 503])
    item = document("refused", "She lived in London.")
    (claims,), _ = stage(server)([item], [item.claims])
    assert [claim.contexts for claim in claims] == [None, None]
    server.faults.extend([503] * 6)
    with pytest.raises(UserError, match="resume later"):
        stage(server).search(list("abcdef"), 3)


def test_topic_page_needs_the_other_retriever(server):
    item = document("She lived in London.")
    (claims,), (passages,) = Wikipedia(api=server.url, k=2, words=40)([item], [item.claims])
    assert {passage.title for passage in passages} == {"Ada Lovelace"}
    assert len(claims[0].contexts) == 2
    assert searched(server) == []
    results = Wikipedia(api=server.url).search(["London", "she lived"], 2)
    assert results == [[], []]
    assert searched(server) == ["london", "london", "she lived", "she OR lived"]
