"""The engines: what they answer does not depend on batching, order or an earlier run."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from components.checkpoint import RELATIONS
from components.encoding import encode_words, first_tokens
from components.windows import chunk_premise
from components.words import is_subsequence, split_words
from eval.models.cache import AnswerCache, answer_key
from eval.models.causal import CausalLM
from eval.models.draws import draw_token, text_draws
from eval.models.encoder import Entailment, LssTagger, Unli
from records import UserError

PAIRS = [
    (f"Ada wrote {'a long and ' * (i % 5)}note {i}.", f"{name} wrote {'it ' * (i % 3)}down.")
    for i in range(12)
    for name in ("Ada", "Grace", "Someone else")
]


def edit(folder: Path, target: Path, **fields: object) -> Path:
    """A copy of a checkpoint with other values in its component.json."""
    shutil.copytree(folder, target)
    path = target / "component.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return target


def test_relations_are_calibrated_and_in_canonical_order(relation):
    premise, hypothesis = "Ada wrote a note.", "Ada wrote."
    results = Entailment(relation, dtype="float32").relations([(premise, hypothesis)])
    model = AutoModelForSequenceClassification.from_pretrained(relation).eval()
    encoded = AutoTokenizer.from_pretrained(relation)(premise, hypothesis, return_tensors="pt")
    p = torch.softmax(model(**encoded).logits[0] / 1.5, dim=0).tolist()
    named = dict(zip(["contradiction", "entailment", "neutral"], p, strict=True))
    np.testing.assert_allclose(results, [[named[name] for name in RELATIONS]], atol=1e-6)
    assert np.ptp(results) > 0.05  # otherwise any order would pass


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_answers_do_not_depend_on_the_batch(relation, unli, batch_size):
    mixed = [PAIRS[i] for i in np.random.default_rng(0).permutation(len(PAIRS))]
    nli, likelihood = Entailment(relation, dtype="float32"), Unli(unli, dtype="float32")
    other = Entailment(relation, batch_size, dtype="float32")
    alone = np.concatenate([nli.relations([pair]) for pair in PAIRS])
    together = dict(zip(mixed, other.relations(mixed), strict=True))
    np.testing.assert_allclose([together[pair] for pair in PAIRS], alone, atol=1e-5)
    alone = np.concatenate([likelihood.likelihood([pair]) for pair in PAIRS])
    np.testing.assert_allclose(likelihood.likelihood(PAIRS + PAIRS), [*alone, *alone], atol=1e-5)
    assert alone.std() > 0.01


def test_overlong_hypothesis_fails_alone(unli):
    # Neighbours whose hypothesis is longer than their premise: cut differently if encoded together.
    neighbours = [("short premise " * 4, "hypothesis " * 11)]
    engine = Unli(unli, dtype="float32")
    alone = engine.likelihood(neighbours)
    together = engine.likelihood([*neighbours, ("a premise", "word " * 200)])
    np.testing.assert_allclose(together[:1], alone, atol=1e-6)


def test_best_window_of_a_long_premise_counts(relation):
    premise = " ".join(f"word{i} and then" for i in range(12))
    windows = chunk_premise(premise, 8)
    assert len(windows) > 3
    engine = Entailment(relation, dtype="float32")
    each = engine.relations([(window, "Ada wrote.") for window in windows])
    results = engine.relations([(premise, "Ada wrote."), PAIRS[0]])
    np.testing.assert_allclose(results[0], each[each[:, 0].argmax()], atol=1e-6)


def test_bfloat16_is_close_to_float32(relation):
    exact = Entailment(relation, dtype="float32").relations(PAIRS)
    rough = Entailment(relation, dtype="bfloat16").relations(PAIRS)
    assert 0 < np.abs(exact - rough).max() < 0.05
    np.testing.assert_allclose(rough.sum(axis=1), 1, atol=1e-9)


def test_cached_answers_are_used_for_the_same_engine_only(relation, tmp_path):
    cache = tmp_path / "cache.sqlite"
    first = Entailment(relation, cache=cache, dtype="float32").relations(PAIRS)
    engine = Entailment(relation, cache=cache, dtype="float32")
    # Overwrite one answer behind the engine's back: it must come from the cache now.
    table = AnswerCache(cache)
    key = answer_key(engine._fingerprint, PAIRS[0])
    assert list(table.get([key])) == [key]
    table._table.execute("DELETE FROM checked_answers WHERE key = ?", (key,))
    table.put({key: np.asarray([0.25, 0.5, 0.25])})
    rerun = engine.relations(PAIRS)
    assert rerun[0].tolist() == [0.25, 0.5, 0.25]
    np.testing.assert_array_equal(rerun[1:], first[1:])
    variants = [
        Entailment(edit(relation, tmp_path / "t", temperature=3.0), cache=cache, dtype="float32"),
        Entailment(edit(relation, tmp_path / "l", max_length=64), cache=cache, dtype="float32"),
        Entailment(relation, cache=cache, dtype="bfloat16"),
    ]
    retrained = edit(relation, tmp_path / "w")
    weights = load_file(retrained / "model.safetensors")
    weights["classifier.bias"] += 1.0
    save_file(weights, retrained / "model.safetensors", metadata={"format": "pt"})
    variants.append(Entailment(retrained, cache=cache, dtype="float32"))
    for other in variants:
        assert other.relations(PAIRS[:1])[0].tolist() != [0.25, 0.5, 0.25]


def _write_batches(path: str, name: bytes, batches: int, progress: Connection) -> None:
    cache = AnswerCache(path)
    for i in range(batches):
        keys = [answer_key(name, [str(i), str(j)]) for j in range(50)]
        cache.put({key: np.full(3, i) for key in keys})
        progress.send(i)


def test_cache_survives_a_kill_and_two_processes(tmp_path):
    path = str(tmp_path / "cache.sqlite")
    context = multiprocessing.get_context("fork")
    reports, progress = context.Pipe(duplex=False)
    _, unread = context.Pipe(duplex=False)
    killed = context.Process(target=_write_batches, args=(path, b"a", 10**9, progress))
    other = context.Process(target=_write_batches, args=(path, b"b", 20, unread))
    killed.start()
    other.start()
    while reports.recv() < 19:
        pass
    killed.kill()
    killed.join()
    other.join()
    assert other.exitcode == 0
    cache = AnswerCache(path)
    for name in (b"a", b"b"):
        keys = [answer_key(name, [str(i), str(j)]) for i in range(20) for j in range(50)]
        results = cache.get(keys)
        assert [results[key][0] for key in keys] == [i for i in range(20) for _ in range(50)]


def test_wrong_component_and_broken_weights_raise(relation, unli, tmp_path):
    with pytest.raises(UserError, match="unli"):
        Unli(relation)
    headless = edit(unli, tmp_path / "headless")
    weights = load_file(headless / "model.safetensors")
    kept = {name: w for name, w in weights.items() if not name.startswith("classifier")}
    save_file(kept, headless / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match="lack classifier"):
        Unli(headless).likelihood(PAIRS[:1])
    (headless / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(UserError, match="weights cannot be loaded"):
        Unli(headless).likelihood(PAIRS[:1])


CLAIMS = [
    ("Ada Lovelace wrote the first program, in 1843.", "Ada wrote a program in 1843."),
    ("Grace didn't retire.", "Grace Hopper went on. " * 9),
]


def test_tagger_keeps_words_by_first_token(lss):
    claim, reference = CLAIMS[0]
    words = split_words(claim)
    tokenizer = AutoTokenizer.from_pretrained(lss)
    model = AutoModelForTokenClassification.from_pretrained(lss).eval()
    encoded = encode_words(tokenizer, words, reference)
    places = first_tokens(encoded, 0, len(words))
    logits = model(**encoded.convert_to_tensors("pt")).logits[0, :, 0]
    expected = torch.sigmoid(logits)[places].tolist()
    tagger = LssTagger(lss, dtype="float32")
    np.testing.assert_allclose(tagger.keep_probabilities(CLAIMS)[0], expected, atol=1e-6)
    results = tagger.subsequences(CLAIMS)[0]
    assert results.keep == [p >= 0.5 for p in expected]
    assert 0 < sum(results.keep) < len(words)
    assert is_subsequence(results.text, claim)


def test_tagger_windows_threshold_and_claims_that_do_not_fit(lss, tmp_path):
    tagger = LssTagger(lss, dtype="float32")
    claim, reference = CLAIMS[1]
    each = tagger.keep_probabilities([(claim, window) for window in chunk_premise(reference, 8)])
    assert len(each) > 2
    results = tagger.keep_probabilities([CLAIMS[0], (claim, reference)])[1]
    np.testing.assert_allclose(results, np.max(each, axis=0), atol=1e-6)
    endless = ("endless " * 60, "a reference")
    assert tagger.subsequences([CLAIMS[0], endless, CLAIMS[0]])[1] is None
    # With the marks of new words a claim may fit in the windows that have its words alone.
    marking = LssTagger(edit(lss, tmp_path / "marks", mark_new=True, max_length=28))
    some = ("Ada wrote it down in a note", "Ada wrote it down in a note " + "x " * 8)
    assert len(chunk_premise(some[1], 8)) > 1
    assert marking.subsequences([(some[0], some[0])])[0] is not None
    assert marking.subsequences([some, some]) == [None, None]


TEXTS = [
    "Ada is a person.",
    "Ada lives. Ada thinks. Ada is.",
    "",
    "Born in 1815, she wrote a note.",
]


def test_likelihood_covers_the_completion_and_its_end(adversary, tiny_llama):
    lm = CausalLM(adversary, dtype="float32")
    prompt = lm.prompt_for("Ada")
    assert prompt == "Tell me of Ada."
    base = AutoModelForCausalLM.from_pretrained(tiny_llama)
    model = PeftModel.from_pretrained(base, adversary).eval()
    tokenizer = AutoTokenizer.from_pretrained(adversary)
    results = lm.log_likelihoods([(prompt, text) for text in TEXTS])
    for text, row in zip(TEXTS, results, strict=True):
        head, body = tokenizer(prompt)["input_ids"], tokenizer(text)["input_ids"]
        ids = torch.tensor([[*head, *body, tokenizer.eos_token_id]])
        log_p = torch.log_softmax(model(input_ids=ids).logits[0, :-1], dim=-1)
        nll = -log_p.gather(1, ids[0, 1:, None])[len(head) - 1 :].sum()
        assert row.tokens == len(body) + 1
        assert row.nll == pytest.approx(float(nll.detach()), rel=1e-4)
        assert not row.truncated


def test_likelihood_uses_the_full_input_length_of_the_model(adversary):
    """The adapter was trained on 96 tokens; its base has 256 positions."""
    lm = CausalLM(adversary, dtype="float32")
    texts = ["Ada.", "Ada is. " * 20, "Ada is. " * 60]
    short, long, cut = lm.log_likelihoods([("Tell me.", text) for text in texts])
    (nothing,) = lm.log_likelihoods([("Tell " * 60, "Ada.")])
    assert not short.truncated
    assert not long.truncated
    assert long.tokens == len("Ada is. " * 20) + 1 > 96
    assert cut.truncated
    assert cut.tokens == lm.positions - len("Tell me.")
    assert nothing == (0.0, 0, True)


def test_a_text_depends_on_seed_topic_and_index_only(adversary):
    lm = CausalLM(adversary, batch_size=4)
    options = {"temperature": 1.0, "top_p": 0.9, "max_new_tokens": 24, "seed": 3}
    topics = ["Ada", "Grace Hopper", "Bob", "Eve", "A Person Whose Name Is Very Long"]
    together = lm.sample(topics, n=3, **options)
    assert [len(texts) for texts in together] == [3, 3, 3, 3, 3]
    assert len({text for texts in together for text in texts}) > 9
    for topic, texts in zip(topics, together, strict=True):
        assert lm.sample([topic], n=3, **options) == [texts]
        assert lm.sample([topic], n=1, **options) == [texts[:1]]
    assert lm.sample(topics, n=3, **(options | {"seed": 4})) != together


def test_generated_text_does_not_depend_on_the_batch(adversary):
    lengths = [1, 5, 17, 31, 32, 33, 50, 64, 65, 100]
    ids = CausalLM(adversary)._tokenizer("Tell me of Ada. " * 8)["input_ids"]

    def written(batch_size: int, order: list[int]) -> dict[int, tuple[list[int], list[float]]]:
        lm = CausalLM(adversary, batch_size=batch_size, dtype="float32")
        draws = [text_draws(0, str(length), 0) for length in order]
        results = lm.write([ids[:length] for length in order], draws, 1.0, 0.95, 20)
        return {order[place]: (tokens, logprobs) for place, tokens, logprobs in results}

    alone = {length: written(1, [length])[length] for length in lengths}
    assert len({tuple(tokens) for tokens, _ in alone.values()}) == len(lengths)
    remaining = lengths[1::3]  # after a kill
    for batch_size, order in ((16, lengths), (3, lengths[::-1]), (16, remaining)):
        together = written(batch_size, order)
        assert together.keys() == set(order)
        for length, (tokens, logprobs) in together.items():
            assert tokens == alone[length][0]
            np.testing.assert_allclose(logprobs, alone[length][1], atol=1e-5)


def test_temperature_zero_is_greedy_decoding(adversary, tiny_llama):
    base = AutoModelForCausalLM.from_pretrained(tiny_llama)
    model = PeftModel.from_pretrained(base, adversary).merge_and_unload().eval()
    tokenizer = AutoTokenizer.from_pretrained(adversary)
    ids = tokenizer("Tell me of Ada.", return_tensors="pt")["input_ids"]
    mask = torch.ones_like(ids)
    out = model.generate(ids, attention_mask=mask, max_new_tokens=20, do_sample=False)
    expected = tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True).strip()
    lm = CausalLM(adversary, dtype="float32")
    results = lm.sample(["Ada"], n=1, temperature=0, max_new_tokens=20)[0][0]
    assert results
    assert expected.startswith(results)


def test_tokens_are_drawn_from_the_nucleus():
    p = np.asarray([0.02, 0.5, 0.3, 0.18])
    logits = np.log(p).astype(np.float32)
    grid = (np.arange(10_000) + 0.5) / 10_000
    counts = Counter(draw_token(logits, u, 1.0, 1.0) for u in grid)
    np.testing.assert_allclose([counts[i] / 10_000 for i in range(4)], p, atol=2e-4)
    # 0.5 + 0.3 reach 0.75; the rest is never drawn, and the two share its mass.
    counts = Counter(draw_token(logits, u, 1.0, 0.75) for u in grid)
    assert sorted(counts) == [1, 2]
    assert counts[1] / 10_000 == pytest.approx(0.5 / 0.8, abs=2e-4)
    assert {draw_token(logits, u, 0, 1.0) for u in grid[::100]} == {1}
