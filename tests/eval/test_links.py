"""Passages with the pages behind them: of a real search service and real pages on loopback."""

from __future__ import annotations

import pytest

from eval.report.terminal import unread_pages
from eval.retrieve.cut import Cut
from eval.retrieve.given import Given
from eval.retrieve.links import PagesOfLinks
from records import Claim, Document, Passage
from tests.web_server import WebServer

AGENT = "tests/1.0 (me@my-lab.example)"
LONG = "Ada Lovelace wrote the first program. " * 300


@pytest.fixture
def server():
    with WebServer(
        {"/ada": (200, f"<p>{LONG}</p>"), "/pdf": (200, b"%PDF", "application/pdf")}
    ) as web:
        web.pages["/js"] = (200, "<p>Enable JavaScript.</p>")
        web.pages["/away"] = lambda h: h.answer(
            302, "", Location=f"http://localhost:{web.server_port}"
        )
        yield web


def passage(name, url, text="Ada wrote the first program, a snippet says."):
    return Passage(id=name, title="Ada", text=text, url=url, source="Google")


def document(passages, claims):
    made = [
        Claim(id=f"c{number}", text="x", label="S", contexts=contexts)
        for number, contexts in enumerate(claims)
    ]
    return Document(id="d", topic="Ada", text="x", claims=made, passages=passages)


def stage(**options):
    settings = {"retrieve": Given(), "user_agent": AGENT, "private_hosts": ["127.0.0.1"]}
    return PagesOfLinks(**{**settings, "retries": 0, "timeout_s": 5, **options})


def results(retrieve, linked):
    (claims,), (passages,) = retrieve([linked], [linked.claims])
    return [claim.contexts for claim in claims], passages


def test_passage_has_the_cut_page_text_and_its_snippet(server):
    url = f"{server.url}/ada"
    two = [passage("a", url), passage("b", url, "Another query shows another snippet.")]
    linked = document(two, [["a"], ["b", "a"], None, []])
    contexts, passages = results(Cut(stage(), 4000), linked)
    assert contexts == [[url], [url], [url], []]
    (page,) = passages
    assert LONG.startswith(page.text)
    assert 3900 < len(page.text) <= 4000
    assert (page.id, page.title, page.url, page.source) == (url, "Ada", url, "Google")
    assert page.model_extra["snippet"] == two[0].text
    assert server.asked == ["/ada"]
    assert unread_pages(passages) == []


def test_unreadable_page_keeps_the_snippet_with_a_reason(server):
    paths = ["/gone", "/pdf", "/js", "/away", "/ada"]
    row = [passage(path, f"{server.url}{path}") for path in paths]
    row += [passage("none", None), passage("file", "file:///etc/passwd")]
    contexts, passages = results(stage(), document(row, [[linked.id for linked in row]]))
    assert contexts == [["/gone", "/pdf", "/js", "/away", f"{server.url}/ada", "none", "file"]]
    reasons = {linked.id: linked.model_extra.get("unread") for linked in passages}
    assert reasons == {
        "/gone": "HTTP 404",
        "/pdf": "no text but application/pdf",
        "/js": "it says less than its snippet",
        "/away": "an address of a private network",
        f"{server.url}/ada": None,
        "none": "no link",
        "file": "not an address of the web",
    }
    kept = [linked for linked in passages if reasons.get(linked.id)]
    assert {(linked.text, linked.source) for linked in kept} == {(row[0].text, "Google")}
    assert unread_pages(passages) == [
        "6 of 7 passages are snippets, since their pages could not be read: HTTP 404 (1), "
        "no text but application/pdf (1), it says less than its snippet (1), other reasons (3)"
    ]


def test_private_hosts_are_not_read_by_default(server):
    (_, passages) = results(
        stage(private_hosts=[]), document([passage("a", f"{server.url}/ada")], [["a"]])
    )
    assert passages[0].model_extra["unread"] == "an address of a private network"
    assert server.asked == []
