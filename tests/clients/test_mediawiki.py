"""The MediaWiki client: what a small wiki has no cause to say."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unicodedata import normalize
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from clients.mediawiki import MediaWiki
from clients.polite import EndpointError
from eval.retrieve.wikipedia import read_page, search_titles, site_of

COMPOSED = "Beyoncé"
DECOMPOSED = normalize("NFD", COMPOSED)


class Handler(BaseHTTPRequestHandler):
    """Lags first, with headers in small letters; then has one page."""

    lagged = False
    refusal: object = None
    replies: list[object] = []  # noqa: RUF012 (in place of all others, the last one for ever)

    def do_GET(self) -> None:
        if Handler.replies:
            more = len(Handler.replies) > 1
            self.say(Handler.replies.pop(0) if more else Handler.replies[0])
            return
        titles = parse_qs(urlsplit(self.path).query)["titles"][0].split("|")
        reply = {"batchcomplete": True, "query": {"pages": [{"pageid": 1, "title": COMPOSED}]}}
        # As ApiPageSet has it: a title that Unicode's normal form changes is given encoded.
        reply["query"]["normalized"] = [
            {"fromencoded": True, "from": quote(title), "to": normalize("NFC", title)}
            for title in titles
            if title != normalize("NFC", title)
        ]
        if not Handler.lagged:
            reply = {"error": {"code": "maxlag", "info": "Waiting: 9 seconds lagged"}}
        if Handler.refusal is not None:
            reply = {"error": Handler.refusal}
        self.send_response(200)
        if not Handler.lagged:
            self.send_header("retry-after", "7")
        Handler.lagged = True
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

    def say(self, reply: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Handler.lagged, Handler.refusal, Handler.replies = False, None, []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/w/api.php"
        server.shutdown()


def test_a_decomposed_title_has_its_page_and_a_wait_is_read_in_any_letter_case(endpoint) -> None:
    waits: list[float] = []
    dropped: Counter[str] = Counter()
    client = MediaWiki(endpoint, sleep=waits.append)
    title_pages = list(client.pages([COMPOSED, DECOMPOSED], {"prop": "info"}, "pages", dropped))
    assert [(title, page["pageid"]) for title, page in title_pages] == [
        (COMPOSED, 1),
        (DECOMPOSED, 1),
    ]
    assert waits == [7.0]
    assert not +dropped


def ended(**query: object) -> dict:
    return {"batchcomplete": True, "query": query}


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"query": {"pages": [], "search": [], "categorymembers": []}},
        ended(),
        ended(pages={"1": {"title": COMPOSED}}, search={}, categorymembers=None),
        ended(pages=[None], search=[None], categorymembers=[{}]),
        ended(pages=[], normalized=[{"from": "a"}], general={"server": 5}),
    ],
    ids=lambda reply: json.dumps(reply)[:40],
)
def test_a_reply_of_another_shape_is_no_answer_and_not_kept(endpoint, tmp_path, reply) -> None:
    """A search without its list would find nothing, which a score takes for a claim's fault."""
    Handler.replies = [reply]
    client = MediaWiki(endpoint, None, tmp_path, retries=1, sleep=lambda _: None)
    empty = reply == ended()  # is whole for titles of which none is of this wiki
    requested_titles = [
        lambda: search_titles(client, "composer", 3),
        lambda: list(client.members("Category:People")),
        lambda: site_of(client),
        *[lambda: read_page(client, COMPOSED)] * (not empty),
    ]
    for ask in requested_titles:
        with pytest.raises(EndpointError, match="2 attempts"):
            ask()
    assert not list(tmp_path.rglob("*.json"))


def test_a_list_that_goes_on_in_a_circle_ends(endpoint) -> None:
    to, fro = ({"query": {"categorymembers": []}, "continue": {"cmcontinue": c}} for c in "ab")
    Handler.replies = [to, fro] * 5
    client = MediaWiki(endpoint, retries=0)
    with pytest.raises(EndpointError, match="continues in a loop"):
        list(client.members("Category:People"))
    assert client.families["category members"].requests == 3
