"""Pages that a wiki's search finds for a claim, against a real server that speaks its API."""

from __future__ import annotations

import json
from collections import deque
from urllib.parse import parse_qs, urlsplit

import pytest

from eval.retrieve.cut import Cut
from eval.retrieve.wikipedia import Wikipedia
from eval.retrieve.wikipedia_search import WikipediaSearch
from records import Claim, Document, UserError
from tests.web_server import WebServer

TEXTS = {
    "Ada Lovelace": f"Ada Lovelace was a writer.\n\n== Life ==\n{'She lived in London. ' * 400}",
    "London": "London is a city.\n\n== See also ==\nParis",
    "Ada": "Ada may be:",
    "Notes": "Notes are texts.",
    "Empty": "",
    "Cast": "All.\n\n== Cy ==\nCy is a cook.\n\n== Bo Day ==\nBo is a vet.\n\n== Later ==\nEnd.",
    "Jo Fry": "Jo Fry may refer to:\nJo Fry (poet)",
}
SECTIONS = {"Bo Day": "Bo Day", "Di Fox": "Di Fox"}  # redirects into sections of "Cast"
FOUND = {
    "Ada Lovelace wrote notes.": ["Ada Lovelace", "Ada", "Notes", "London"],
    "She lived in London.": ["London", "Ada Lovelace", "Empty", "Gone"],
}
TOPIC_SEARCHES = {
    "london": ["Empty", "London", "Ada Lovelace"],
    "jo fry": ["Jo Fry", "Notes"],
    "di fox": ["Notes"],
}


def answer(params):
    if params.get("meta") == "siteinfo":
        general = {"sitename": "Wiki", "server": "//wiki.example", "script": "/w/index.php"}
        return {"general": general}
    if params.get("list") == "search":
        if params["srsearch"] == "refused":
            return None
        titles = (FOUND | TOPIC_SEARCHES).get(params["srsearch"], [])[: int(params["srlimit"])]
        return {"search": [{"ns": 0, "title": title} for title in titles]}
    title = params["titles"]
    if title in SECTIONS:
        step = {"from": title, "to": "Cast", "tofragment": SECTIONS[title]}
        return answer(params | {"titles": "Cast"}) | {"redirects": [step]}
    if title not in TEXTS:
        return {"pages": [{"title": title, "missing": True}]}
    number = list(TEXTS).index(title)
    revision = {"revid": 100 + number, "timestamp": "2024-01-01T00:00:00Z"}
    page = {"title": title, "extract": TEXTS[title], "revisions": [revision]}
    meanings = {"pageprops": {"disambiguation": ""}} if title == "Ada" else {}
    return {"pages": [page | meanings]}


class Wiki:
    """The pages of a server that speaks MediaWiki's API.

    Attributes:
        params: the parameters of all requests.
        faults: statuses of the next requests.
    """

    def __init__(self):
        self.params, self.faults = [], deque()

    def get(self, path, _):
        params = {name: item[0] for name, item in parse_qs(urlsplit(path).query).items()}
        self.params.append(params)
        replies = answer(params)
        reply = {"batchcomplete": True, "query": replies}
        if replies is None:
            reply = {"error": {"code": "srsearch-error", "info": "a bad query"}}
        status = self.faults.popleft() if self.faults else 200
        return lambda handler: handler.answer(status, json.dumps(reply), Retry_After="0")


@pytest.fixture
def server():
    with WebServer(Wiki()) as running:
        yield running


def stage(server, **options):
    return WikipediaSearch(api=f"{server.url}/w/api.php", **{"retries": 1, **options})


def document(*texts):
    claims = [Claim(id=f"c{n}", text=text, label="S") for n, text in enumerate(texts)]
    return Document(id="d", topic="Ada Lovelace", text="x", claims=claims)


def searched(server):
    return [params["srsearch"] for params in server.pages.params if params.get("list") == "search"]


def titles(server):
    return [params["titles"] for params in server.pages.params if "titles" in params]


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
    assert all(params["maxlag"] == "5" for params in server.pages.params)
    assert {params["srlimit"] for params in server.pages.params if "srlimit" in params} == {"3"}


def test_failed_search_is_not_an_empty_result(server):
    assert stage(server).search(["refused", "unknown"], 3) == [None, []]
    server.pages.faults.extend([503, 503])
    item = document("refused", "She lived in London.")
    (claims,), _ = stage(server)([item], [item.claims])
    assert [claim.contexts for claim in claims] == [None, None]
    server.pages.faults.extend([503] * 6)
    with pytest.raises(UserError, match="resume later"):
        stage(server).search(list("abcdef"), 3)


@pytest.mark.parametrize(
    ("topic", "titles_and_texts"),
    [
        ("Bo Day", [("Cast#Bo Day", "Bo is a vet.")]),
        ("Di Fox", [("Notes", "Notes are texts.")]),  # no such section: searched
        ("Jo Fry", [("Notes", "Notes are texts.")]),  # a disambiguation page: searched
        ("LONDON", [("London", "London is a city.")]),
    ],
)
def test_topic_reads_its_page_or_section_or_is_searched(server, topic, titles_and_texts):
    retriever = Wikipedia(api=server.url, retries=1)
    topic_document = Document(id="d", topic=topic, text="x")
    claims = [Claim(id="c0", text=f"{topic} is a vet, a city and a text.")]
    _, (passages,) = retriever([topic_document], [claims])
    assert [(passage.title, passage.text) for passage in passages] == titles_and_texts
