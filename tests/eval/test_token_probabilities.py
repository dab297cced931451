"""Probabilities of an answer's tokens: a local model, a real server, and servers that give none."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM

from eval.models.chat import NO_TOKENS, Answer
from eval.models.draws import text_draws
from eval.models.local import LocalModel
from eval.models.openai_server import OpenAIServer
from tests.model_server import ModelServer

PROMPTS = [[{"role": "user", "content": f"Tell of {name}."}] for name in ("Ada", "Bob", "Eve Roe")]
GREEDY = {"temperature": 0, "max_new_tokens": 12, "logprobs": True}


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch):
    monkeypatch.setattr("clients.polite.MAX_BACKOFF_S", 0.02)


@pytest.fixture(scope="module")
def server(tiny_llama):
    with ModelServer(tiny_llama) as running:
        yield running


def ask(server: ModelServer, **options: object) -> OpenAIServer:
    return OpenAIServer("tiny", server.url, **({"timeout_s": 5.0, "retries": 1} | options))


def local(folder, **options) -> LocalModel:
    return LocalModel(str(folder), dtype="float32", batch_size=2, **options)


def test_local_model_and_server_probabilities_are_equal(tiny_llama, server):
    group = [answer for (answer,) in local(tiny_llama).answer(PROMPTS, **GREEDY)]
    theirs = [answer for (answer,) in ask(server).answer(PROMPTS, **GREEDY)]
    for local_answer, other in zip(group, theirs, strict=True):
        assert (
            local_answer.text
            == other.text
            == "".join(token.text for token in local_answer.tokens).strip()
        )
        assert [t.text for t in local_answer.tokens] == [t.text for t in other.tokens]
        numbers = [token.logprob for token in local_answer.tokens]
        assert numbers == pytest.approx([token.logprob for token in other.tokens], abs=1e-4)


@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, 1.0), (3.0, 0.8)])
def test_probabilities_precede_temperature_and_nucleus(tiny_llama, temperature, top_p):
    engine = local(tiny_llama)._engine
    prompts = [engine.encode_messages(messages) for messages in PROMPTS]
    draws = [text_draws(place, "x", 0) for place in range(3)]
    model = AutoModelForCausalLM.from_pretrained(tiny_llama).eval()
    written = list(engine.write(prompts, draws, temperature, top_p, 12))
    assert len(written) == 3
    for place, tokens, logprobs in written:
        assert tokens
        row = torch.tensor([prompts[place] + tokens])
        with torch.inference_mode():
            table = model(row).logits[0].log_softmax(-1)[len(prompts[place]) - 1 :]
        rerun = [float(table[at, token]) for at, token in enumerate(tokens)]
        assert logprobs == pytest.approx(rerun, abs=1e-4)


def test_tokens_are_requested_on_demand_and_do_not_change_texts(tiny_llama, server):
    server.asked.clear()
    plain = {**GREEDY, "logprobs": False}
    for writer in (local(tiny_llama), ask(server)):
        (without,), (with_them,) = (writer.answer(PROMPTS[:1], **o)[0] for o in (plain, GREEDY))
        assert without == Answer(with_them.text, cut=with_them.cut)
        assert with_them.tokens
    assert [body.get("logprobs") for body in server.asked] == [None, True]


def test_cache_separates_token_answers(server, tmp_path):
    cache = tmp_path / "answers.sqlite"
    plain = {**GREEDY, "logprobs": False}
    writer = ask(server, cache=cache)
    first = writer.answer(PROMPTS, **plain)
    results = writer.answer(PROMPTS, **GREEDY)
    assert (writer.usage.calls, writer.usage.cached) == (6, 0)
    rerun = ask(server, cache=cache)
    assert rerun.answer(PROMPTS, **GREEDY) == results
    assert rerun.answer(PROMPTS, **plain) == first
    assert (rerun.usage.calls, rerun.usage.cached, rerun.usage.failed) == (0, 6, 0)
    assert rerun.usage.completion_tokens == writer.usage.completion_tokens


@pytest.mark.parametrize(
    "fault",
    [
        "null",
        '{"tokens": ["a"], "token_logprobs": [-1.0]}',
        '{"content": [{"token": "a", "logprob": NaN}]}',
    ],
)
def test_missing_probabilities_fail_and_are_not_cached(server, tmp_path, fault):
    writer = ask(server, cache=tmp_path / "answers.sqlite")
    server.faults.append(f"logprobs {fault}")
    ((failed,),) = writer.answer(PROMPTS[:1], **GREEDY)
    assert failed.text
    assert (failed.failed, failed.tokens) == (NO_TOKENS, None)
    assert (writer.usage.calls, writer.usage.failed) == (1, 1)
    ((mended,),) = writer.answer(PROMPTS[:1], **GREEDY)
    assert mended.failed is None
    assert mended.tokens
