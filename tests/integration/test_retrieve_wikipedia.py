"""Passages of a real wiki: the topic's page, a search where there is none, faults, no server."""

from __future__ import annotations

import pytest

from eval.retrieve.wikipedia import Wikipedia
from eval.retrieve.wikipedia_search import WikipediaSearch
from records import Claim, Document, UserError
from tests.integration.faults import MEDIAWIKI, FaultProxy, random_mix

pytestmark = pytest.mark.integration


def retriever(url: str, **options: object) -> Wikipedia:
    results = Wikipedia(api=f"{url}/w/api.php", words=40, **options)
    results.wiki._sleep = lambda _: None
    return results


def ask(stage: Wikipedia, topics: list[str], text: str = "He was born."):
    documents = [Document(id=topic, topic=topic, text="") for topic in topics]
    claims = [[Claim(id="c0", text=text), Claim(id="c1", text=text)] for _ in topics]
    results, passages = stage(documents, claims)
    return {d.topic: (c, p) for d, c, p in zip(documents, results, passages, strict=True)}


def titles(passages) -> set[str]:
    return {passage.title for passage in passages}


def test_the_page_of_the_topic_or_a_search(wiki):
    source, target = next(iter(wiki.pages.redirects.items()))
    person = "John Bruce (surgeon)"
    with FaultProxy(wiki.url) as proxy:
        stage = retriever(proxy.url, k=2)
        meanings = next(title for title in wiki.pages.names if "(" not in title)
        topics = [person, person.replace(" ", "_"), source, meanings, "Zzz#Early life"]
        results = ask(stage, topics)
        assert titles(results[topics[0]][1]) == titles(results[topics[1]][1]) == {person}
        assert titles(results[source][1]) == {target}
        passage = results[person][1][0]
        assert passage.id.startswith(f"{person}#")
        assert passage.url.endswith(f"oldid={passage.model_extra['revision']}")
        assert all(len(claim.contexts) == 2 for claim in results[person][0])
        # A page of meanings is no page of the topic: the topic is searched for.
        searched = [r.params["srsearch"] for r in proxy.seen if r.params.get("list") == "search"]
        assert meanings.lower() in searched
        assert {title.split(" (")[0] for title in titles(results[meanings][1])} >= {meanings}
        assert meanings not in titles(results[meanings][1])
        # Nothing is found for a topic: the claim is searched for, its words all or any.
        assert searched[-4:] == [
            "zzz early life",
            "zzz OR early OR life",
            "zzz early life he born",
            "zzz OR early OR life OR he OR born",
        ]
        assert proxy.most_at_once == 1
        assert all(request.params["maxlag"] == "5" for request in proxy.seen)


def test_a_search_is_one_for_words(wiki):
    stage = retriever(wiki.url, pages=2)
    results, quoted, none, empty = stage.search(
        ["Bruce surgeon", '"surgeon -Bruce AND (', "zzzz", " "], 3
    )
    assert "John Bruce (surgeon)" in titles(results)
    assert len(titles(results)) <= 2
    assert [p.id for p in quoted]
    assert none == empty == []


def test_the_whole_pages_that_a_search_finds(wiki):
    whole = WikipediaSearch(api=f"{wiki.url}/w/api.php")
    results, none, empty = whole.search(["Bruce surgeon", "zzzz", " "], 3)
    assert "John Bruce (surgeon)" in titles(results)
    assert len(results) == len(titles(results)) <= 3
    parts = retriever(wiki.url, k=99)
    ((_, pieces),) = ask(parts, ["John Bruce (surgeon)"], "Bruce").values()
    (page,) = [
        result_page for result_page in results if result_page.title == "John Bruce (surgeon)"
    ]
    assert all(piece.text in page.text for piece in pieces)
    assert none == empty == []


def test_faults_change_nothing_and_kept_answers_are_not_asked_for(wiki, tmp_path):
    topics = ["John Bruce (surgeon)", "John Bruce", "Nobody At All"]
    expected = ask(retriever(wiki.url), topics)
    with FaultProxy(wiki.url) as proxy:
        proxy.faults = random_mix(MEDIAWIKI, p=0.5, seed=4)
        stage = retriever(proxy.url, cache_dir=tmp_path / "cache")
        assert ask(stage, topics) == expected
        assert len({request.fault for request in proxy.seen} - {None}) >= 3
        proxy.forget()
        second_stage = retriever(proxy.url, cache_dir=tmp_path / "cache")
        assert ask(second_stage, topics) == expected
        assert proxy.seen == []
        assert second_stage.identity == stage.identity


def test_a_dead_server_is_a_failure_and_not_nothing(wiki):
    with FaultProxy(wiki.url) as proxy:
        alive, stage = proxy.url, retriever(proxy.url, retries=1)
        assert ask(stage, ["John Bruce (surgeon)"])["John Bruce (surgeon)"][1]
    assert alive
    (claims, _) = ask(stage, ["Topic"])["Topic"]
    assert all(claim.contexts is None for claim in claims)
    assert stage.search(["Topic"], 3) == [None]
    topics = [f"Topic {number}" for number in range(9)]
    with pytest.raises(UserError, match="resume later"):
        stage.search(topics, 3)
