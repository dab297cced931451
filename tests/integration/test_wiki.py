"""The test wiki answers as Wikipedia does, and holds what the tests that use it count on."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
import requests

from tests.integration.pages import CATEGORY, make_pages

pytestmark = pytest.mark.integration


def query(wiki, **params):
    """All replies of a query, ``continue`` followed by hand."""
    more = {}
    while more is not None:
        asked = {"action": "query", "format": "json", "formatversion": 2, **params, **more}
        reply = requests.get(wiki.api, params=asked, timeout=30).json()
        yield reply
        more = reply.get("continue")


def pages_of(wiki, titles, **params):
    titles = sorted(titles)
    for start in range(0, len(titles), 50):
        found = {}
        for reply in query(wiki, titles="|".join(titles[start : start + 50]), **params):
            for page in reply["query"]["pages"]:
                known = found.setdefault(page["title"], {})
                for name, value in page.items():
                    old = known.get(name)
                    known[name] = old + value if isinstance(old, list) else value
        yield from found.items()


def test_the_contents_are_as_wide_as_needed(pages):
    assert 45 <= len(pages.people) <= 60
    assert len(pages.names) >= 12
    assert max(len(people) for people in pages.names.values()) == 3
    assert min(len(people) for people in pages.names.values()) == 1
    plain = {title for title in pages.names if not title.endswith(" (disambiguation)")}
    assert plain
    assert plain != set(pages.names)
    shown = " ".join(pages.texts[title] for title in pages.names)
    assert [alias for alias in pages.redirects if f"[[{alias}" in shown]
    assert any("–" in title for title in pages.people), "titles beyond ASCII"


def test_the_same_people_give_the_same_pages(pages):
    again = make_pages([*reversed(list(pages.people.values()))])
    assert {title: again.texts[title] for title in pages.people} == {
        title: pages.texts[title] for title in pages.people
    }


def test_members_of_the_category(wiki):
    replies = list(query(wiki, list="categorymembers", cmtitle=CATEGORY, cmlimit=10))
    members = [m for reply in replies for m in reply["query"]["categorymembers"]]
    assert len(replies) == 3
    assert {m["title"] for m in members if m["ns"] == 0} == set(wiki.pages.names)
    assert {m["ns"] for m in members} == {0, 1, 14}


def test_links_and_redirects_lead_to_the_people(wiki):
    for title, page in pages_of(wiki, wiki.pages.names, prop="links|pageprops", pllimit=7):
        assert page["pageprops"] == {"disambiguation": ""}
        links = {link["title"] for link in page["links"]}
        ends = {wiki.pages.redirects.get(link, link) for link in links}
        assert set(wiki.pages.names[title]) <= ends
        assert links - set(wiki.pages.people), "every page also links to something else"
    for source, target in wiki.pages.redirects.items():
        (reply,) = query(wiki, titles=source, redirects=1)
        assert [page["title"] for page in reply["query"]["pages"]] == [target]


def test_page_ids_and_times_are_the_same_everywhere(wiki):
    order = list(wiki.pages.texts)
    found = dict(pages_of(wiki, order, prop="revisions", rvprop="ids|timestamp"))
    first = found[order[0]]["pageid"]
    for number, title in enumerate(order, first):
        assert found[title]["pageid"] == number
        (revision,) = found[title]["revisions"]
        assert revision["timestamp"] == "2024-01-01T00:00:00Z"


def test_people_pages(wiki):
    for title, page in pages_of(wiki, wiki.pages.people, prop="pageprops|categories", cllimit=500):
        person = wiki.pages.people[title]
        assert person.iri.endswith("/" + page["pageprops"]["wikibase_item"])
        categories = {category["title"] for category in page.get("categories", ())}
        assert f"Category:{person.facts['P569'][0].year} births" in categories


def test_extracts_are_plain_and_long_enough_to_be_cut_into_passages(wiki):
    lengths = []
    for title in sorted(wiki.pages.people)[:12]:
        (reply,) = query(wiki, titles=title, prop="extracts", explaintext=1)
        (page,) = reply["query"]["pages"]
        text = page["extract"]
        name = wiki.pages.people[title].name
        assert text.startswith(f"{name} (")
        assert not re.search(r"\[\[|\{\{|<|For others of this name|Entry ", text)
        lengths.append(len(text.split()))
    assert min(lengths) > 100
    assert max(lengths) > 200


def test_titles_without_a_page_and_titles_that_none_can_have(wiki):
    (reply,) = query(wiki, titles="The Cotton Story|Alan Burns|<bad>")
    missing, invalid, known = sorted(reply["query"]["pages"], key=lambda p: p.get("pageid", 0))
    assert {"missing", "invalid"} <= {*missing, *invalid}
    assert known["title"] == "Alan Burns"


def test_search(wiki):
    (reply,) = query(wiki, list="search", srsearch="Bruce surgeon")
    assert "John Bruce (surgeon)" in {hit["title"] for hit in reply["query"]["search"]}


def test_the_wiki_lags_when_told_and_only_clients_that_ask_notice(wiki):
    lag = {"X-Simulated-Lag": "9"}
    asked = {"action": "query", "format": "json", "titles": "Alan Burns"}
    reply = requests.get(wiki.api, params={**asked, "maxlag": 5}, headers=lag, timeout=30)
    assert (reply.status_code, reply.json()["error"]["code"]) == (200, "maxlag")
    assert (reply.headers["Retry-After"], reply.headers["X-Database-Lag"]) == ("5", "9")
    assert "query" in requests.get(wiki.api, params=asked, headers=lag, timeout=30).json()
    assert "query" in requests.get(wiki.api, params={**asked, "maxlag": 5}, timeout=30).json()


def views(wiki, title, start="20230101", end="20241231", project="en.wikipedia"):
    path = f"{project}/all-access/user/{quote(title.replace(' ', '_'), safe='')}/monthly"
    url = f"{wiki.rest}/metrics/pageviews/per-article/{path}/{start}/{end}"
    return requests.get(url, timeout=30)


def test_page_views_have_the_documented_shape(wiki):
    title = next(title for title in sorted(wiki.pages.views) if "–" in title)
    reply = views(wiki, title)
    assert reply.status_code == 200
    items = reply.json()["items"]
    assert {i["timestamp"][:6]: i["views"] for i in items} == wiki.pages.views[title]
    assert items[0] == {
        "project": "en.wikipedia",
        "article": title.replace(" ", "_"),
        "granularity": "monthly",
        "timestamp": "2023010100",
        "access": "all-access",
        "agent": "user",
        "views": wiki.pages.views[title]["202301"],
    }
    some = views(wiki, title, "2023030100", "2023053100").json()["items"]
    assert [i["timestamp"] for i in some] == ["2023030100", "2023040100", "2023050100"]


def test_page_views_that_nobody_counted(wiki):
    (unseen,) = set(wiki.pages.people) - set(wiki.pages.views)
    seen = next(iter(wiki.pages.views))
    for reply in (
        views(wiki, unseen),
        views(wiki, "Nobody of this name"),
        views(wiki, seen, "20100101", "20101231"),
        views(wiki, seen, project="xx.wikipedia"),
    ):
        assert reply.status_code == 404
        assert reply.headers["Content-Type"] == "application/problem+json"
        assert reply.json()["title"] == "Not Found"
