"""Claims that stand alone, and Rel by a language model; what cannot be read has failed."""

import pytest

from eval.models.openai_server import OpenAIServer
from eval.revise.rewrite import Rewrite
from eval.select.relevance import Prompted
from records import Claim, Document, UserError
from tests.model_server import ModelServer

TEXT = "Ann Lee paints. She lives in Oslo. Is that not nice?"
DOCUMENTS = [
    Document(id="1", topic="Ann Lee", text=TEXT),
    Document(id="2", topic="Bob Ray", text="Bob Ray boxes."),
]


def playing(answers):
    """A server whose model answers by the first of ``answers`` that the last message starts with.

    The text (RESPONSE) behind the claim says nothing to it.
    """

    def reply(body):
        asked = body["messages"][-1]["content"].split("\n\nRESPONSE")[0]
        return next(text for part, text in answers.items() if asked.endswith(part))

    return ModelServer(reply)


@pytest.mark.parametrize("method", ["safe", "factreasoner"])
def test_claims_are_rewritten_and_keep_their_former_text(method):
    answers = {
        "She lives in Oslo.": '"She" is Ann Lee.\n```\nAnn Lee lives in\nOslo.\n```\nSo it is.',
        "Ann Lee paints.": "Nothing is vague.\n```text\nAnn Lee paints.\n```",
        "She sings.": "I think that this is fine as it is.",
        "He boxes.": "```\nBob Ray boxes.\n```",
    }
    claims = [
        [
            Claim(id="a", text="Ann Lee paints."),
            Claim(id="b", text="She lives in Oslo.", original="lives in Oslo"),
            Claim(id="c", text="She sings."),
        ],
        [Claim(id="a", text="He boxes.")],
    ]
    with playing(answers) as server:
        reviser = Rewrite(OpenAIServer("m", server.url), method=method, retries=1)
        first, (other,) = reviser(DOCUMENTS, claims)
        asked = [body["messages"][-1]["content"] for body in server.asked]
    assert len(asked) == 5, "one is asked again, because it could not be read"
    assert [sum(d.text in text for text in asked) for d in DOCUMENTS] == [4, 1]
    assert first[0] == claims[0][0]
    assert (first[1].text, first[1].original) == ("Ann Lee lives in Oslo.", "lives in Oslo")
    assert (first[2].text, first[2].failed) == ("She sings.", "revision: no answer in the text")
    assert (other.id, other.text, other.original) == ("a", "Bob Ray boxes.", "He boxes.")


def test_rel_by_a_model():
    sentences = [["Ann Lee paints.", "She lives in Oslo.", "Is that not nice?"], ["Bob Ray boxes."]]
    answers = {"paints.": "Yes", "Oslo.": "**Yes.**", "nice?": "No", "boxes.": "It depends."}
    with playing(answers) as server:
        judge = Prompted(OpenAIServer("m", server.url), retries=0)
        assert judge(DOCUMENTS, sentences) == [[1, 1, 0], [None]]
    with ModelServer(lambda body: topical(body["messages"][-1]["content"])) as server:
        judge = Prompted(OpenAIServer("m", server.url), "on_topic", retries=0)
        assert judge(DOCUMENTS, sentences) == [[1, 0, None], [None]]


def topical(asked):
    if "QUESTION:\nAnn Lee" in asked and TEXT in asked:
        if "STATEMENT:\nAnn" in asked:
            return "The subjects are [Foo]."
        if "STATEMENT:\nShe" in asked:
            return "They are [Not Foo]."
    return "Hm."


def test_retries_need_another_draw():
    with pytest.raises(UserError, match="without temperature every try gives the same"):
        Rewrite(OpenAIServer("m", "http://127.0.0.1:1/v1"), temperature=0)
