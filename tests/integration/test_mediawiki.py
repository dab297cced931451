"""The MediaWiki and page-view clients against a real wiki, and against what spoils its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from clients.mediawiki import MediaWiki
from tests.integration.faults import MEDIAWIKI, FaultProxy
from tests.integration.pages import CATEGORY
from tests.integration.spoil import Fault

pytestmark = pytest.mark.integration

LINKS = {"prop": "links|revisions|pageprops", "plnamespace": 0, "rvprop": "ids"}


@pytest.fixture
def proxy(wiki) -> Iterator[FaultProxy]:
    with FaultProxy(wiki.url) as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """The waits that the clients were asked for; none of them passes."""
    return []


@pytest.fixture
def client(proxy, waits) -> MediaWiki:
    return MediaWiki(f"{proxy.url}/w/api.php", sleep=waits.append, timeout_s=10)


def test_members_are_the_articles_of_the_category(client, wiki, proxy):
    assert sorted(client.members(CATEGORY)) == sorted(wiki.pages.names)
    (request,) = proxy.seen
    assert request.params["maxlag"] == "5"
    assert "gzip" in request.headers["accept-encoding"]


def test_a_list_is_followed_to_its_end(client, wiki, proxy):
    params = {"list": "categorymembers", "cmtitle": CATEGORY, "cmnamespace": 0, "cmlimit": 5}
    replies = list(client.follow(params, "members"))
    titles = [m["title"] for reply in replies for m in reply["query"]["categorymembers"]]
    assert sorted(titles) == sorted(wiki.pages.names)
    assert len(proxy.seen) == -(-len(titles) // 5)
    assert client.families["members"].rows == len(titles)


@pytest.mark.parametrize("limit", ["max", 3])
def test_pages_are_whole_however_often_they_are_continued(client, wiki, proxy, limit):
    titles = sorted(wiki.pages.names)[:10]
    pages_by_title = dict(client.pages(titles, {**LINKS, "pllimit": limit}, "pages"))
    assert list(pages_by_title) == titles
    assert (len(proxy.seen) > 10) == (limit == 3)
    for title, page in pages_by_title.items():
        links = [link["title"] for link in page["links"]]
        assert len(links) == len(set(links))
        assert "Mercury (disambiguation)" in links
        assert len(page["revisions"]) == 1
        assert page["pageprops"] == {"disambiguation": ""}
        assert page["title"] == title


def test_titles_lead_to_pages_or_are_counted(client, wiki):
    source, target = next(iter(wiki.pages.redirects.items()))
    titles = [source.replace(" ", "_"), target, "Nobody At All", "Bad[title]", "a|b", " "]
    dropped: Counter[str] = Counter()
    pages_by_title = list(client.pages(titles, {"prop": "info"}, "pages", dropped))
    assert [(title, page["title"]) for title, page in pages_by_title] == [
        (titles[0], target),
        (target, target),
    ]
    assert +dropped == {"title without a page": 1, "title that no page can have": 3}


def test_a_batch_that_is_refused_is_asked_in_halves(client, wiki, proxy):
    titles = (sorted(wiki.pages.people) * 2)[:60]
    titles = [f"{title}{'' if place < 30 else ' (no such)'}" for place, title in enumerate(titles)]
    assert len(set(titles)) == 60
    dropped: Counter[str] = Counter()
    pages_by_title = dict(client.pages(titles, {"prop": "info"}, "pages", dropped, per_request=60))
    assert set(pages_by_title) | {t for t in titles if t not in wiki.pages.texts} == set(titles)
    sizes = [len(request.params["titles"].split("|")) for request in proxy.seen]
    assert sizes == [60, 30, 30]


def test_whole_texts_come_one_page_a_request(client, wiki):
    titles = sorted(wiki.pages.people)[:3]
    params = {"prop": "extracts", "explaintext": 1, "exlimit": 1}
    for title, page in client.pages(titles, params, "texts", per_request=1):
        assert wiki.pages.people[title].name in page["extract"]
        assert "{{" not in page["extract"]


@pytest.mark.parametrize("fault", [*MEDIAWIKI, Fault("dup_continue")], ids=str)
def test_no_fault_changes_an_answer(client, proxy, wiki, fault):
    params = {"list": "categorymembers", "cmtitle": CATEGORY, "cmnamespace": 0, "cmlimit": 10}
    proxy.faults = [None, fault, fault]
    titles = [
        member["title"]
        for reply in client.follow(params, "members")
        for member in reply["query"]["categorymembers"]
    ]
    assert sorted(titles) == sorted(wiki.pages.names)
    assert sum(request.fault == fault.kind for request in proxy.seen) >= 1
    assert proxy.most_at_once == 1


# Page views
