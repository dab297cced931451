"""Claims that are beside the point leave before Core selects; Factcheck-GPT's prompt for Rel."""

from __future__ import annotations

import ast
from typing import ClassVar

import numpy as np
import pytest

from eval.decompose.given import Given
from eval.models.openai_server import OpenAIServer
from eval.pipeline import Pipeline
from eval.retrieve.bm25 import PassageIndex
from eval.select.core import Core
from eval.select.relevance import Prompted, Relevant
from eval.verify.safe import Safe
from records import Claim, Document, Passage
from tests.model_server import ModelServer

TEXTS = ["Ann Lee paints ships.", "A ship swims.", "Ann Lee paints.", "Ann Lee sails."]
CLAIMS = [
    Claim(id=f"c{i}", text=text, source=text, label=label)
    for i, (text, label) in enumerate(zip(TEXTS, ["S", "S", "S", "NS"], strict=True))
]
DOCUMENT = Document(id="d", topic="Ann Lee", text=" ".join(TEXTS), claims=CLAIMS)
# The irrelevant claim entails, and so excludes, a relevant one.
ENTAILED = {(TEXTS[1], TEXTS[2]), *((text, text) for text in TEXTS)}


class Table:
    """A user's own entailment model."""

    def relations(self, pairs):
        return np.array([[0.9, 0.1, 0] if pair in ENTAILED else [0, 1, 0] for pair in pairs])


def foo(body):
    prompts = body["messages"][-1]["content"]
    if "RESPONSE:\n" not in prompts:
        return "### Next query ###\n```\nAnn Lee\n```\nThe answer is [Supported]."
    statement = prompts.split("STATEMENT:\n")[1]
    return {TEXTS[1]: "[Not Foo]", TEXTS[3]: "Hm."}.get(statement, "So they are [Foo].")


@pytest.fixture
def server():
    with ModelServer(foo) as running:
        yield running


def judge(server, **options):
    return Prompted(OpenAIServer("m", server.url), "on_topic", retries=0, **options)


def test_irrelevant_claims_are_removed_before_core(server):
    core = Core(Table(), weighting="uniform", p=1)
    (alone,) = core([DOCUMENT], [CLAIMS])
    assert [s.reason for s in alone] == ["selected", "selected", "duplicate", "selected"]
    (results,) = Relevant(judge(server), core)([DOCUMENT], [CLAIMS])
    assert [s.claim for s in results] == [claim.id for claim in CLAIMS]
    assert [s.reason for s in results] == ["selected", "irrelevant", "selected", "failed"]
    assert [s.document_entailment for s in results] == [1.0, None, 1.0, None]


def test_relevance_and_safe_share_cached_queries(server, tmp_path):
    """The same model with the same sampling: the verifier's question is answered from the cache."""
    writer = OpenAIServer("m", server.url, cache=tmp_path / "answers.sqlite")
    sampling = {"temperature": 0.1, "max_new_tokens": 512, "retries": 0}
    sampling["instruction"] = "tell me a bio of {topic}."
    passage = Passage(id="p", title="Ann Lee", text="Ann Lee paints ships.")

    class Search(PassageIndex):
        identity: ClassVar[dict] = {"class": "Search"}

    pipeline = Pipeline(
        Given(),
        [Safe(writer, Search([passage]), max_searches=1, k=1, **sampling)],
        select=Relevant(
            Prompted(writer, "on_topic", **sampling), Core(Table(), weighting="uniform", p=1)
        ),
    )
    (scored,) = pipeline.score([DOCUMENT])
    prompts = [body["messages"][-1]["content"] for body in server.asked]
    assert sum("STATEMENT:\n" in text for text in prompts if "RESPONSE:\n" in text) == 4
    relevance = [text for text in prompts if "RESPONSE:\n" in text]
    assert all(f"QUESTION:\ntell me a bio of {DOCUMENT.topic}.\n" in text for text in relevance)
    labels = [verdict.label for verdict in scored.verdicts]
    assert labels == ["supported", "irrelevant", "supported", "failed"]
    plain, core = scored.scores
    assert (plain.judged, plain.irrelevant, core.judged) == (2, 1, 2)


def test_factcheck_gpts_prompt_is_one_message_and_its_list_is_read():
    replies = dict(zip(TEXTS, ['["Yes"]', '["No"]', "Yes", "Perhaps"], strict=True))

    def reply(body):
        (message,) = body["messages"]
        assert message["role"] == "user"
        call = message["content"].splitlines()[-1]
        assert call.startswith('checkworthy(["')
        return next(answer for end, answer in replies.items() if call.endswith(f'{end}"])'))

    with ModelServer(reply) as running:
        rel = Prompted(OpenAIServer("m", running.url), "factcheck_gpt", retries=0)
        assert rel([DOCUMENT], [TEXTS]) == [[1, 0, 1, None]]


def test_quotes_in_a_sentence_are_escaped():
    sentence = 'She said "no" on C:\\.'
    prompts = []
    with ModelServer(
        lambda body: prompts.append(body["messages"][-1]["content"]) or "No"
    ) as running:
        rel = Prompted(OpenAIServer("m", running.url), "factcheck_gpt", retries=0)
        assert rel([DOCUMENT], [[sentence]]) == [[0]]
    call = prompts[0].splitlines()[-1]
    assert ast.literal_eval(call.removeprefix("checkworthy(").removesuffix(")")) == [sentence]
