"""One prompt a response: which claims it shows, how answers are read, and what fails."""

from __future__ import annotations

import pytest

from eval.models.chat import Answer
from eval.models.openai_server import OpenAIServer
from eval.verify.whole_response import WholeResponse, read_complete_labels
from records import Claim, Document, Passage, UserError
from tests.model_server import ModelServer

YES, NO, OPEN = "supported", "contradicted", "undecided"


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("1. [Supported]\n2. [Contradicted]\n3. [Unverifiable]", [YES, NO, OPEN]),
        ("Here you go:\n1) Supported\n2) contradicted.\n3) UNVERIFIABLE", [YES, NO, OPEN]),
        ("**Claim 1:** Supported\n- Claim 2: **Not supported**", [YES, "not_supported"]),
        (
            "1. Ann was born in 1901. [Supported]\n2. She died in 1950, 60. [Contradicted]",
            [YES, NO],
        ),
        ("| # | Label |\n|---|---|\n| 1 | Supported |\n| 2 | Contradicted |", [YES, NO]),
        ("1. [Supported] 2. [Contradicted], 3. [Supported]", [YES, NO, YES]),
        ('```json\n{"1": "Supported", "2": "Contradicted"}\n```', [YES, NO]),
        (
            '[{"claim": 1, "label": "Supported"}, {"claim": 2, "label": "Unverifiable"}]',
            [YES, OPEN],
        ),
        ("1. Supported: the evidence says so.\n2. Contradicted, see passage 2.", [YES, NO]),
        # A list of the claims, and a first try, stand before the answer.
        (
            "1. Ann sang.\n2. Ann won.\n\n1. [Contradicted]\n1. [Supported]\n2. [Supported]",
            [YES, YES],
        ),
        ("[1] Supported\n[2] Contradicted", [YES, NO]),
        # A sum behind the answer is no label of a claim.
        ("1. [Supported]\n2. [Contradicted]\n2 of 2 claims are [Supported].", [YES, NO]),
    ],
)
def test_answers_of_many_shapes(text, labels):
    assert [label for label, _ in read_complete_labels(text, len(labels))] == labels


@pytest.mark.parametrize(
    "text",
    [
        "1. [Supported]",
        "1. [Supported]\n2. [Supported]\n3. [Supported]",
        "1. [Supported]\n2. Perhaps",
        "1. [Supported] or [Contradicted]\n2. [Supported]",
        "1. Supported, but only in part\n2. [Supported]",
        "Factual precision: 0.5",
        "All claims are [Supported].",
    ],
)
def test_a_claim_without_one_label_makes_the_answer_unreadable(text):
    assert read_complete_labels(text, 2) is None


PASSAGES = [
    Passage(id="p1", title="Ann Lee", text="Ann Lee was a painter from Norway."),
    Passage(id="p2", text="She was born in Bergen in 1901."),
    Passage(id="p3", text="Of nobody."),
]
DOCUMENTS = [
    Document(id="d0", topic="Ann Lee", text="Ann Lee painted. She was born in Oslo."),
    Document(id="d1", topic="Bob Ray", text="Bob Ray boxed."),
    Document(id="d2", topic="Eve Roe", text="I do not know."),
]
CLAIMS = [
    [
        Claim(id="a", text="Ann Lee\npainted.", contexts=["p1", "p2"]),
        Claim(id="b", text="Ann Lee won.", contexts=[]),
        Claim(id="c", text="Ann Lee was born in Oslo.", contexts=["p2"]),
        Claim(id="d", text="Ann Lee sang.", contexts=None),
    ],
    [Claim(id="a", text="Bob Ray boxed.", contexts=["p3"])],
    [],
]


class Scripted:
    """A model that answers from a list, a call at a time."""

    identity = {"model": "scripted"}  # noqa: RUF012

    def __init__(self, *calls: list[Answer]):
        self.calls = list(calls)
        self.asked: list[list[str]] = []

    def answer(self, prompts, *, n=1, temperature, top_p, max_new_tokens, seed):
        self.asked.append([messages[-1]["content"] for messages in prompts])
        return [[answer] for answer in self.calls.pop(0)]


def test_each_document_is_one_prompt_and_an_unreadable_answer_is_asked_again():
    model = Scripted(
        [Answer("1. [Supported]\n2. [Contradicted]"), Answer("1. [Supported]\n2. [Supported]")],
        [Answer("1. [Unverifiable]")],
    )
    verify = WholeResponse(model)
    assert verify.judges_sets
    first, second, third = verify(DOCUMENTS, CLAIMS, [PASSAGES] * 3)
    assert [v.label for v in first] == ["supported", "failed", "contradicted", "failed"]
    assert [v.reason for v in first] == [None, "no passage was found", None, "retrieval failed"]
    assert [v.response for v in first[::2]] == ["1. [Supported]", "2. [Contradicted]"]
    assert [v.evidence for v in first] == [["p1", "p2"], None, ["p1", "p2"], None]
    assert [v.label for v in second] == ["undecided"]
    assert third == []
    assert [len(call) for call in model.asked] == [2, 1]
    prompt = model.asked[0][0]
    assert "She was born in Oslo." in prompt
    assert prompt.endswith("CLAIMS:\n1. Ann Lee painted.\n2. Ann Lee was born in Oslo.")
    assert prompt.count("She was born in Bergen in 1901.") == 1
    assert "Of nobody" not in prompt


def test_what_cannot_be_read_or_asked_fails_all_claims_of_its_document():
    model = Scripted([Answer("Precision: 0.5"), Answer("", "prompt too long for the model")])
    first, second, _ = WholeResponse(model, retries=0)(DOCUMENTS, CLAIMS, [PASSAGES] * 3)
    assert [v.label for v in first + second] == ["failed"] * 5
    assert [first[0].reason, first[2].reason] == ["no answer in the text"] * 2
    assert (first[0].response, second[0].reason) == (
        "Precision: 0.5",
        "prompt too long for the model",
    )


def test_without_evidence_every_claim_is_judged_through_a_real_server():
    with ModelServer(
        lambda body: "\n".join(
            f"{n}. [Supported]"
            for n in range(1, body["messages"][0]["content"].count("Ann Lee ") + 1)
        )
    ) as server:
        documents = [Document(id="d", topic="her", text="She sang.")]
        writer = OpenAIServer("tiny", server.url, timeout_s=5.0)
        (verdicts,) = WholeResponse(writer, evidence=False)(
            documents, [[c.model_copy(update={"text": "Ann Lee sang."}) for c in CLAIMS[0]]], [[]]
        )
    assert [v.label for v in verdicts] == ["supported"] * 4
    assert verdicts[0].evidence is None
    assert "EVIDENCE" not in server.asked[0]["messages"][0]["content"]
    with pytest.raises(UserError, match="retries"):
        WholeResponse(writer, temperature=0.0)
