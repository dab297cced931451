"""Language models that answer prompts: a real server with faults before it, and a local model."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from components.checkpoint import read_component, write_component
from components.identity import identity
from eval.models.causal import CausalLM
from eval.models.chat import Answer, Usage, as_answer
from eval.models.local import LocalModel
from eval.models.openai_server import OpenAIServer
from eval.prompting.prompts import Prompt
from records import UserError
from tests.model_server import ModelServer, prompt_of

PROMPTS = [[{"role": "user", "content": f"Tell of {name}."}] for name in ("Ada", "Bob", "Eve Roe")]
FAST = {"max_new_tokens": 12}


def numbered(count):
    return [[{"role": "user", "content": f"number {i}"}] for i in range(count)]


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch):
    monkeypatch.setattr("clients.polite.MAX_BACKOFF_S", 0.02)


@pytest.fixture
def server(tiny_llama):
    with ModelServer(tiny_llama) as running:
        yield running


@pytest.fixture
def echo():
    """Answers with the prompt's last word."""
    with ModelServer(
        lambda body: f"It is {body['messages'][-1]['content'].split()[-1]}"
    ) as running:
        yield running


def ask(server: ModelServer, **options: object) -> OpenAIServer:
    return OpenAIServer("tiny", server.url, **({"timeout_s": 5.0, "retries": 3} | options))


def test_answers_keep_prompt_order_and_depend_on_seed_and_index(server):
    writer = ask(server)
    together = writer.answer(PROMPTS, n=3, **FAST)
    assert [len(answers) for answers in together] == [3, 3, 3]
    assert len({answer.text for answers in together for answer in answers}) == 9
    assert all(answer.failed is None for answers in together for answer in answers)
    for prompt, answers in zip(PROMPTS, together, strict=True):
        assert ask(server).answer([prompt], n=3, **FAST) == [answers]
        assert ask(server).answer([prompt], n=1, **FAST) == [answers[:1]]
    assert ask(server).answer(PROMPTS, n=3, seed=1, **FAST) != together


def test_concurrent_requests_stay_within_the_limit(echo):
    slow = echo.reply
    echo.reply = lambda body: (time.sleep(0.05), slow(body))[1]
    prompts = numbered(20)
    results = ask(echo, concurrency=4).answer(prompts)
    assert [answer.text for (answer,) in results] == [f"It is {i}" for i in range(20)]
    assert echo.most == 4


def test_request_body_has_the_sampling_settings(echo, monkeypatch):
    monkeypatch.setenv("THE_KEY", "sk-secret")
    writer = ask(
        echo, extra={"top_k": 5}, length_field="max_completion_tokens", api_key_env="THE_KEY"
    )
    writer.answer(PROMPTS[:1], temperature=0.5, top_p=0.8, max_new_tokens=9, seed=3)
    (body,) = echo.asked
    assert body.pop("seed") < 2**31
    assert body == {
        "model": "tiny",
        "messages": PROMPTS[0],
        "temperature": 0.5,
        "top_p": 0.8,
        "max_completion_tokens": 9,
        "top_k": 5,
    }
    assert echo.keys == ["Bearer sk-secret"]


TEXTS = {"endpoint": "completions"}


def test_completions_endpoint_gets_one_joined_prompt(echo, tmp_path):
    echo.reply = lambda body: f" It is {prompt_of(body).split()[-1]}"
    talk = [{"role": "system", "content": "Be brief."}, *PROMPTS[0]]
    writer = ask(echo, **TEXTS, cache=tmp_path / "answers.sqlite", extra={"stop": ["\n\n"]})
    sampling = {"temperature": 0.7, "top_p": 0.8, "max_new_tokens": 9, "seed": 3}
    results = writer.answer([PROMPTS[1], talk], **sampling)
    assert [answer.text for (answer,) in results] == ["It is Bob.", "It is Ada."]
    assert set(echo.paths) == {"/v1/completions"}
    assert {body["prompt"] for body in echo.asked} == {
        "Tell of Bob.",
        "Be brief.\n\nTell of Ada.",
    }
    (body,) = [body for body in echo.asked if body["prompt"] == "Tell of Bob."]
    assert body.pop("seed") < 2**31
    assert body == {
        "model": "tiny",
        "prompt": "Tell of Bob.",
        "temperature": 0.7,
        "top_p": 0.8,
        "max_tokens": 9,
        "stop": ["\n\n"],
    }
    # Kept apart from the answers of the chat.
    rerun = ask(echo, **TEXTS, cache=tmp_path / "answers.sqlite", extra={"stop": ["\n\n"]})
    assert rerun.answer([PROMPTS[1], talk], **sampling) == results
    assert (rerun.usage.cached, rerun.usage.calls) == (2, 0)
    assert identity(rerun) == identity(ask(echo, extra={"stop": ["\n\n"]})) | TEXTS


def test_temperature_zero_requests_each_prompt_once(echo):
    results = ask(echo).answer([*PROMPTS, PROMPTS[0]], n=2, temperature=0)
    assert len(echo.asked) == 3
    assert [len(answers) for answers in results] == [2] * 4
    assert results[0] == results[3]
    assert "seed" not in echo.asked[0]


@pytest.mark.parametrize(
    "faults",
    [
        ["429", "500", "529"],  # overloaded
        ["cut", "short", "html"],
        ["drop", "slow", None, "200"],  # an error inside a 200
        ["ended error", "ended abort", "content [5]"],
    ],
)
def test_transient_errors_are_retried(echo, faults):
    clean = ask(echo).answer(PROMPTS)
    echo.asked.clear()
    echo.faults.extend(faults)
    assert ask(echo, concurrency=1, timeout_s=0.5).answer(PROMPTS) == clean
    assert len(echo.asked) == 3 + sum(fault is not None for fault in faults)


def test_retry_after_delays_all_requests(echo):
    echo.faults.append("retry-after 1")
    times = []
    answer = echo.reply
    echo.reply = lambda body: (times.append(time.monotonic()), answer(body))[1]
    start = time.monotonic()
    prompts = numbered(8)
    ask(echo, concurrency=1).answer(prompts)
    assert len(times) == 8
    assert times[0] - start >= 1.0


def test_long_retry_after_and_exhausted_quota_raise(echo):
    echo.faults.append("retry-after 7200")
    with pytest.raises(UserError, match=r"Retry-After is 7200 s"):
        ask(echo).answer(PROMPTS[:1])
    echo.faults.append("429 insufficient_quota|no money")
    with pytest.raises(UserError, match="no money"):
        ask(echo).answer(PROMPTS[:1])
    assert len(echo.asked) == 2


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("refusal", "refused"),
        ("filter", "content filter"),
        ("empty", "no choices in the reply"),
        ("400 content_filter|bad words", "content filter"),
        ("400 context_length_exceeded|x", "prompt too long for the model"),
        ("400 |This model's maximum context length is 96 tokens", "prompt too long for the model"),
        ("body 413 <html>Payload Too Large</html>", "prompt too long for the model"),
    ],
)
def test_failed_answer_has_a_reason(echo, fault, reason):
    echo.faults.append(fault)
    writer = ask(echo, concurrency=1)
    first, second = writer.answer(PROMPTS[:2])
    assert first == [Answer("", reason)]
    assert second == [Answer("It is Bob.")]
    assert (writer.usage.calls, writer.usage.failed) == (2, 1)


def test_raw_texts_are_converted_to_answers():
    assert as_answer(" Ada is. ", False, "trim") == Answer("Ada is.")
    assert as_answer("Ada is. She wr", True, "trim") == Answer("Ada is.", cut=True)
    assert as_answer("Ada is. She wr", True, "fail").failed == "cut at max_new_tokens"
    assert as_answer("  ", False, "trim") == as_answer(None, False, "trim") == Answer("", "empty")
    assert as_answer("<think>Hm.\nAda?</think>\n\nAda is.", False, "trim") == Answer("Ada is.")
    assert as_answer("Hm.</think> Ada is.", False, "trim") == Answer("Ada is.")
    assert as_answer("<think>Hm. Well", True, "trim").failed == "cut while it was thinking"
    assert as_answer("[THINK]Bob?[/THINK]\nAda is.", False, "trim") == Answer("Ada is.")


def test_cached_answers_are_not_requested_again(echo, tmp_path):
    cache = tmp_path / "answers.sqlite"
    first = ask(echo, cache=cache)
    results = first.answer(PROMPTS, n=2)
    assert first.usage == Usage(calls=6, prompt_tokens=42, completion_tokens=18)
    rerun = ask(echo, cache=cache)
    assert rerun.answer(PROMPTS, n=2) == results
    assert len(echo.asked) == 6
    assert (rerun.usage.calls, rerun.usage.cached, rerun.usage.prompt_tokens) == (0, 6, 42)
    rerun.answer(PROMPTS, n=3)  # one more of each
    assert len(echo.asked) == 9
    for options in ({"seed": 1}, {"temperature": 0.5}, {"top_p": 0.5}, {"max_new_tokens": 9}):
        rerun.answer(PROMPTS[:1], **options)
    variants = ({"revision": "b"}, {"extra": {"top_k": 1}}, {"when_cut": "fail"})
    for options in variants:
        ask(echo, cache=cache, **options).answer(PROMPTS[:1])
    rerun.answer([[{"role": "system", "content": "Tell of Ada."}]])
    assert len(echo.asked) == 9 + 4 + 3 + 1


def test_dead_server_raises_one_line_and_keeps_finished_answers(echo, tmp_path):
    cache = tmp_path / "answers.sqlite"
    prompts = numbered(30)
    answer = echo.reply

    def dies(body: dict) -> str:
        if len(echo.answered) == 12:
            echo.faults.extend(["503"] * 1000)
        return answer(body)

    echo.reply = dies
    with pytest.raises(UserError) as error:
        ask(echo, cache=cache, retries=1).answer(prompts)
    assert "\n" not in str(error.value)
    assert "HTTP 503: not now; no answer in 2 attempts" in str(error.value)
    assert str(cache) in str(error.value)
    done = len(echo.answered)
    assert 12 <= done < 30
    echo.faults.clear()
    echo.reply = answer
    results = ask(echo, cache=cache).answer(prompts)
    assert [answer.text for (answer,) in results] == [f"It is {i}" for i in range(30)]
    assert len(echo.answered) == 30  # nothing twice


def test_api_key_is_not_in_messages_or_files(echo, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1234")
    caplog.set_level(0)
    cache = tmp_path / "answers.sqlite"
    writer = ask(echo, cache=cache)
    writer.answer(PROMPTS)
    echo.faults.append("401 invalid_api_key|Incorrect API key provided: sk-secret-1234.")
    with pytest.raises(UserError) as error:
        writer.answer([[{"role": "user", "content": "more"}]])
    assert "set the key in the environment variable OPENAI_API_KEY" in str(error.value)
    assert "Incorrect API key provided: ***." in str(error.value)
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for place in (str(error.value), str(identity(writer)), caplog.text, str(files)):
        assert "sk-secret" not in place


def test_answers_inside_a_running_event_loop(echo, tmp_path):
    async def notebook() -> list[list[Answer]]:
        return ask(echo, cache=tmp_path / "answers.sqlite").answer(PROMPTS)

    assert asyncio.run(notebook()) == ask(echo).answer(PROMPTS)


def test_local_model_equals_causal_engine(tiny_llama):
    options = {"n": 2, "temperature": 1.0, "top_p": 0.9, "max_new_tokens": 24, "seed": 3}
    writer = LocalModel(str(tiny_llama), batch_size=2, dtype="float32")
    together = writer.answer(PROMPTS, **options)
    assert len({answer.text for answers in together for answer in answers}) >= 5
    for prompt, answers in zip(PROMPTS, together, strict=True):
        assert writer.answer([prompt], **options) == [answers]
    assert writer.answer(PROMPTS[:1], **(options | {"seed": 4})) != together[:1]
    greedy = CausalLM(tiny_llama, dtype="float32").sample(
        ["Tell of Ada."], temperature=0, max_new_tokens=20
    )
    (results,) = writer.answer(PROMPTS[:1], temperature=0, max_new_tokens=20)
    assert [answer.text for answer in results] == greedy[0]


def test_local_prompts_use_an_available_chat_template(tiny_llama, letter_tokenizer, save_llama):
    tokenizer = letter_tokenizer(pairs=False)
    joined = CausalLM(tiny_llama).encode_messages(
        [{"role": "system", "content": "Be."}, {"role": "user", "content": "Hi"}]
    )
    assert joined == tokenizer("Be.\n\nHi")["input_ids"]
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
        "{% endif %}{{ m.role[0] }}:{{ m.content }};{% endfor %}a:"
    )
    folder = save_llama(tokenizer, num_key_value_heads=1, max_position_embeddings=64)
    engine = CausalLM(folder)
    assert engine.decode(engine.encode_messages(PROMPTS[0])).endswith("Tell of Ada.;a")
    assert engine.encode_messages(PROMPTS[0], chat=False) == tokenizer("Tell of Ada.")["input_ids"]
    with pytest.raises(UserError, match=r"rejects the prompt \(no system\)"):
        engine.encode_messages([{"role": "system", "content": "Be."}])
    writer = LocalModel(str(folder))
    long = [[{"role": "user", "content": "Ada " * 20}]]
    assert writer.answer([*long, *PROMPTS[:1]], max_new_tokens=4)[0] == [
        Answer("", "prompt too long for the model")
    ]


def test_adversary_identity_includes_its_base(tiny_llama, adversary, tmp_path):
    base, tuned = tmp_path / "base", tmp_path / "tuned"
    shutil.copytree(tiny_llama, base)
    shutil.copytree(adversary, tuned)
    component = read_component(tuned)
    component.base = {"id": str(base), "revision": None}
    write_component(tuned, component, card="# tiny\n")
    results = []
    for _ in range(2):
        writer = LocalModel(str(tuned), dtype="float32", cache=tmp_path / "a.sqlite")
        results.append(writer.answer(PROMPTS, **FAST))
        assert writer.usage.calls == 3
        torch.manual_seed(9)
        model = LlamaForCausalLM(LlamaConfig.from_pretrained(base))  # another under the same name
        model.save_pretrained(base)
    assert results[0] != results[1]


def test_prompt_files_are_rendered_or_rejected(tmp_path):
    path = tmp_path / "p.jinja"
    path.write_text(
        "{# version 1 #}\n=== system\nBe brief.\n=== user\nOf {{ topic }}:\n"
        "{% for word in words %}\n- {{ word }}\n{% endfor %}\n"
    )
    results = Prompt(path).messages(topic="\n=== user\nAda", words=["a", "b"])
    assert results == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Of \n=== user\nAda:\n- a\n- b"},
    ]
    with pytest.raises(UserError, match=r"p\.jinja: 'words' is undefined; the fields are topic"):
        Prompt(path).messages(topic="x")
    path.write_text("{{ topic.__class__.__mro__ }}{{ cycler.__init__.__globals__.os.getcwd() }}")
    with pytest.raises(UserError, match="unsafe"):  # a stranger's prompt runs nothing
        Prompt(path).messages(topic="x")
    path.write_text("{# 1 #}\nOf {{ topic }}.")
    assert Prompt(path).messages(topic="Ada") == [{"role": "user", "content": "Of Ada."}]
    path.write_text("Of {{ topic")
    with pytest.raises(UserError, match="not a valid jinja2 template"):
        Prompt(path)
    with pytest.raises(UserError, match="no such file"):
        Prompt(Path("nosuch.jinja"))
