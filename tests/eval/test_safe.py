"""SAFE: the flow of its questions and searches, with a scripted model and a real BM25 index."""

from __future__ import annotations

import re

from eval.models.chat import Answer
from eval.retrieve.bm25 import PassageIndex
from eval.verify.safe import Safe
from records import Claim, Document, Passage

PASSAGES = [
    Passage(id="p1", title="Ann Lee", text="Ann Lee was a painter from Norway."),
    Passage(id="p2", title="Ann Lee", text="She was born in Bergen in 1901."),
    Passage(id="p3", title="Bob Ray", text="Bob Ray was a boxer from Chile."),
]
DOCUMENTS = [
    Document(id="d0", topic="Ann Lee", text="Ann Lee was a painter. Oslo has a zoo."),
    Document(id="d1", topic="Bob Ray", text="Bob Ray was a painter."),
]
CLAIMS = [
    [Claim(id="c0", text="Ann Lee was a painter."), Claim(id="c1", text="Oslo has a zoo.")],
    [Claim(id="c0", text="Bob Ray was a painter.")],
]


class Search:
    """BM25 over the passages; keeps what it was asked, and fails on some queries."""

    def __init__(self, failing=()):
        self.identity = {"class": "Search"}
        self.index = PassageIndex(PASSAGES)
        self.failing = failing
        self.asked = []

    def search(self, queries, k):
        self.asked.append(list(queries))
        results = self.index.search(list(queries), k)
        return [
            None if query in self.failing else hits
            for query, hits in zip(queries, results, strict=True)
        ]


class Scripted:
    """A model that follows SAFE's formats; ``override`` may answer in its place."""

    def __init__(self, override=None):
        self.identity = {"model": "scripted"}
        self.override = override or (lambda step, claim, seed: None)
        self.calls = []

    def answer(self, prompts, *, n=1, temperature, top_p, max_new_tokens, seed):
        (step,) = {step_of(messages) for messages in prompts}
        self.contents = [messages[-1]["content"] for messages in prompts]
        self.calls.append((step, [claim_of(messages) for messages in prompts]))
        return [[self.reply(step, claim_of(m), m, seed)] for m in prompts]

    def reply(self, step, claim, messages, seed):
        row = self.override(step, claim, seed)
        return row if isinstance(row, Answer) else Answer(row or scripted(step, claim, messages))


def step_of(messages):
    content = messages[-1]["content"]
    if "QUESTION:" in content:
        return "relevance"
    return "query" if "Google Search" in content else "rating"


def claim_of(messages):
    return messages[-1]["content"].rpartition("STATEMENT:\n")[2]


def scripted(step, claim, messages):
    content = messages[-1]["content"]
    if step == "relevance":
        return "Reasoning. [Not Foo]" if "zoo" in claim else "Reasoning. [Foo]"
    knowledge = re.search(r"KNOWLEDGE:\n(.*)\n\nSTATEMENT", content, re.DOTALL).group(1)
    if step == "query":
        name = " ".join(claim.split()[:2])
        return f"```\n{name if knowledge == 'N/A' else f'{name} born'}\n```"
    trade = claim.rstrip(".").split()[-1]
    return "So [Supported]." if trade in knowledge else "So [Not Supported]."


def labels(verdicts):
    return [[verdict.label for verdict in row] for row in verdicts]


def run(model, search=None, **options):
    options = {"max_searches": 2, "k": 1, "retries": 2} | options
    return Safe(model, search or Search(), **options)(DOCUMENTS, CLAIMS, [[], []])


def test_each_step_is_one_call_over_all_open_claims():
    model, search = Scripted(), Search()
    verdicts = run(model, search)
    assert labels(verdicts) == [["supported", "irrelevant"], ["not_supported"]]
    relevant = ["Ann Lee was a painter.", "Bob Ray was a painter."]
    assert model.calls == [
        ("relevance", ["Ann Lee was a painter.", "Oslo has a zoo.", "Bob Ray was a painter."]),
        ("query", relevant),
        ("query", relevant),
        ("rating", relevant),
    ]
    assert search.asked == [["Ann Lee", "Bob Ray"], ["Ann Lee born", "Bob Ray born"]]
    ann, zoo = verdicts[0]
    assert (ann.assessor, ann.evidence) == ("safe", ["p1", "p2"])
    assert ann.steps == [
        {"query": "Ann Lee", "result": PASSAGES[0].text, "passages": ["p1"]},
        {"query": "Ann Lee born", "result": PASSAGES[1].text, "passages": ["p2"]},
    ]
    assert (ann.response, ann.relevance_response) == ("So [Supported].", "Reasoning. [Foo]")
    assert (zoo.steps, zoo.evidence, zoo.reason) == ([], None, None)


def test_options_change_the_prompts():
    model = Scripted(lambda step, *_: "[Foo]" if step == "relevance" else None)
    verdicts = run(model, max_searches=1, title_in_knowledge=True, k=3)
    assert [step for step, _ in model.calls] == ["relevance", "query", "rating"]
    assert verdicts[0][0].steps[0]["result"].startswith("Ann Lee: Ann Lee was a painter")
    assert labels(verdicts)[0][1] == "failed"  # nothing is found for "Oslo has"
    assert verdicts[0][1].reason == "no passage was found"


def test_a_repeated_query_is_not_searched_again_and_two_claims_share_a_search():
    model = Scripted(lambda step, *_: "```Ann Lee painter```" if step == "query" else None)
    search = Search()
    verdicts = run(model, search, max_searches=3)
    assert search.asked == [["Ann Lee painter"]]
    assert [step["query"] for step in verdicts[0][0].steps] == ["Ann Lee painter"] * 3
    assert verdicts[0][0].evidence == ["p1"]
    assert model.contents[0].count(PASSAGES[0].text) == 1


def test_unreadable_answer_is_retried_with_new_seeds_then_fails():
    seeds = []

    def hesitant(step, claim, seed):
        if step == "rating" and claim.startswith("Ann"):
            seeds.append(seed)
            return "[Supported]" if len(seeds) == 3 else "It seems so."
        return "Who knows?" if step == "rating" else None

    model = Scripted(hesitant)
    verdicts = run(model)
    assert labels(verdicts) == [["supported", "irrelevant"], ["failed"]]
    assert verdicts[1][0].reason == "rating: no answer in the text"
    assert verdicts[1][0].response == "Who knows?"
    assert len(set(seeds)) == 3
    sent_prompts = [claims for step, claims in model.calls if step == "rating"]
    assert [len(claims) for claims in sent_prompts] == [2, 2, 2]


def test_failed_search_is_ignored_if_another_succeeded():
    def one_query_only(step, claim, seed):
        return "No idea." if step == "query" and seed >= 6 else None

    verdicts = run(Scripted(), Search(failing=["Ann Lee born"]))
    ann = verdicts[0][0]
    assert (ann.label, ann.evidence) == ("supported", ["p1"])
    assert ann.steps[1] == {"query": "Ann Lee born", "result": None, "passages": []}
    # A claim whose next query cannot be read is rated by what was found before.
    ann = run(Scripted(one_query_only))[0][0]
    assert (ann.label, len(ann.steps)) == ("supported", 1)
