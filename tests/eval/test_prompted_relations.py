"""Relations by a prompted model: labels, their probabilities, failures, and who reads them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from data_builders.written.ambigbio.biographies import _judged
from eval.metrics.decomposition import same_claims
from eval.models.chat import Token
from eval.models.openai_server import OpenAIServer
from eval.prompting.prompted_relations import PromptedRelations, label_probability
from records import Claim, UserError
from tests.model_server import ModelServer

HALF, QUARTER = math.log(0.5), math.log(0.25)


def tokens(*row: tuple[str, float]) -> list[Token]:
    return [Token(*item) for item in row]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (tokens(("entail", HALF), ("ment", QUARTER)), ("entailment", math.sqrt(1 / 8))),
        (tokens(("Contr", 0.0), ("adiction", HALF), (".", QUARTER)), ("contradiction", 2**-0.5)),
        (tokens(("Output", -9.0), (":", -9.0), (" neutral", HALF)), ("neutral", 0.5)),
        # Tokens that hold more than the label; words before it; a bracket as a token of its own.
        (tokens(("[neutral] fits? No.\n", -9.0), ("[ent", HALF), ("ailment]", HALF)), 0.5),
        (tokens(("**Neutral**", HALF), ("\n\nPremise: It is neutral to", -9.0)), 0.5),
        (tokens(("maybe", HALF)), "no relation in the answer"),
        (tokens(("[entailment] or [neutral]", HALF)), "no relation in the answer"),
        (tokens(("neutral", math.log(0.3))), "a label that the model finds less likely than"),
    ],
)
def test_label_tokens_give_the_probability(written, expected):
    text = "".join(token.text for token in written).split("\n\n")[0].strip()
    results = label_probability(text, written)
    if isinstance(expected, str):
        assert results.startswith(expected)
    else:
        label, p = expected if isinstance(expected, tuple) else (results[0], expected)
        assert results == (label, pytest.approx(p))


def test_invented_next_pair_is_ignored():
    rest = tokens(("\n\nPremise: x\nHypothesis: y\nOutput: ", -9.0), ("neutral", QUARTER))
    written = [*tokens(("entailment", HALF)), *rest]
    text = "".join(token.text for token in written)
    assert label_probability(text, written) == ("entailment", pytest.approx(0.5))


ANSWERS = {
    "yes": ("entailment", [("ent", math.log(0.8)), ("ailment", math.log(0.8))]),
    "no": ("contradiction", [("contradiction", math.log(0.6))]),
    "open": ("neutral", [(" neutral", math.log(0.9))]),
    "odd": ("perhaps", [("perhaps", math.log(0.9))]),
    "mute": "neutral",  # no tokens
}


@pytest.fixture
def server(monkeypatch):
    """Answers by the last word of the premise."""
    monkeypatch.setattr("clients.polite.MAX_BACKOFF_S", 0.02)

    def reply(body: dict) -> object:
        premise = body["messages"][-1]["content"].rpartition("remise: ")[2].partition("\n")[0]
        return ANSWERS[premise.split()[-1].strip(".")]

    with ModelServer(reply) as running:
        yield running


def model(server: ModelServer, **options: object) -> PromptedRelations:
    writer = OpenAIServer("tiny", server.url, timeout_s=5.0, retries=1)
    return PromptedRelations(writer, **options)


def pair(word: str) -> tuple[str, str]:
    return f"Ada says {word}.", "Ada spoke."


def test_rows_and_failures_of_a_real_server(server):
    results = model(server)
    rows = results.relations([pair(w) for w in ("yes", "no", "open", "odd", "mute", "yes")])
    assert rows[0] == pytest.approx([0.8, 0.1, 0.1])
    assert rows[1] == pytest.approx([0.2, 0.2, 0.6])
    assert rows[2] == pytest.approx([0.05, 0.9, 0.05])
    assert np.isnan(rows[3:5]).all()
    assert rows[5].tolist() == rows[0].tolist()
    assert len(server.asked) == 5
    assert results.counts == {
        "answers": 5,
        "no relation in the answer": 1,
        "the server gives no token probabilities": 1,
    }
    (body,) = {(b["temperature"], b["logprobs"], b["max_tokens"]) for b in server.asked}
    assert body == (0.0, True, 16)
    assert results.relations([]).shape == (0, 3)
    with pytest.raises(UserError, match="returns `logprobs`"):
        results.relations([pair("mute")])


def test_with_reasoning_the_marked_label_at_the_end_counts(server):
    replies = [
        ("It could be [neutral].\nBut it says so: ", -5.0),
        ("[", -5.0),
        ("entailment", HALF),
        ("]", -5.0),
    ]
    server.reply = lambda body: ("".join(text for text, _ in replies), replies)
    results = model(server, reasoning=True)
    assert results.relations([pair("yes")])[0].tolist() == pytest.approx([0.5, 0.25, 0.25])
    (body,) = server.asked
    assert body["max_tokens"] == 512
    prompt = body["messages"][-1]["content"]
    assert prompt.endswith("PREMISE: Ada says yes.\nHYPOTHESIS: Ada spoke.")
    assert prompt.count("PREMISE: ") == 4  # three examples of our own


def test_the_prompt_of_table_30_has_a_context(server):
    results = model(server, context=True)
    assert results.relations([pair("yes")])[0].tolist() == pytest.approx([0.8, 0.1, 0.1])
    prompt = server.asked[0]["messages"][-1]["content"]
    assert "You are given a premise and a hypothesis and a context." in prompt
    prompts = "Premise: Ada says yes.\nHypothesis: Ada spoke.\nContext: Ada says yes.\nOutput:"
    assert prompt.endswith(prompts)
    assert prompt.count("\nContext: ") == 5
    with pytest.raises(UserError, match="context"):
        model(server, context=True, reasoning=True)


def test_failed_relations_are_not_scored(server):
    results = model(server)
    same = [Claim(id="a", text="Ada says odd."), Claim(id="b", text="Ada says yes.")]
    with pytest.raises(UserError, match="PromptedRelations: no answer for 1 of 1 pairs"):
        same_claims(results, [same])
    dropped: dict[str, int] = {"verdict on a citation that could not be judged": 0}
    citations = [{"claim": "Ada spoke.", "passage": [f"Ada says {w}."]} for w in ("odd", "yes")]
    judged = _judged(citations, results, dropped)
    assert [citation.get("entailed") for citation in judged] == [None, 1]
    assert list(dropped.values()) == [1]
