"""The engine that writes LSS and LSS* with a trained T5."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from components.base import random_t5
from components.checkpoint import Component, write_component
from components.words import is_subsequence, join_words, split_words
from eval.commands.component import judge
from eval.models.seq2seq import LssSeq2Seq

SIZES = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2}
SIZES |= {"initializer_factor": 3.0}
PAIRS = [
    ("Ada Lovelace was a poet.", "ada was a mathematician ."),
    ("she wrote the first program", "ada lovelace wrote"),
    ("Ada Lovelace was a poet.", "she was born in paris"),
    ("Ada Lovelace was a poet.", "ada was a mathematician ."),
    ("日本 was born, in (Paris)!", "she was born in paris"),
]


@pytest.fixture(scope="module")
def write_t5(word_tokenizer: Callable, tmp_path_factory: pytest.TempPathFactory) -> Callable:
    """Writes a random T5 checkpoint."""

    def write(component: str = "lss", **more: object) -> Path:
        folder = tmp_path_factory.mktemp(component)
        torch.manual_seed(0)
        tokenizer = word_tokenizer(pairs=True)
        random_t5(tokenizer, SIZES).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        constrained = component == "lss"
        fields = {
            "component": component,
            "architecture": "seq2seq",
            "prompt_template": "{reference} ? {claim}",
            "decoding": {"num_beams": 3, "max_new_tokens": 10, "constrained": constrained},
            "max_length": 32,
            "base": {"id": "random"},
        }
        write_component(folder, Component(**(fields | more)), card="# tiny\n")
        return folder

    return write


@pytest.fixture(scope="module")
def lss_t5(write_t5: Callable) -> Path:
    return write_t5()


def test_outputs_are_subsequences_of_the_claim(lss_t5: Path) -> None:
    results = LssSeq2Seq(lss_t5).subsequences(PAIRS)
    for (claim, _), answer in zip(PAIRS, results, strict=True):
        assert is_subsequence(answer.text, claim)
        assert answer.text == join_words(claim, split_words(claim), answer.keep)
    assert results[0] == results[3]
    assert any(answer.text for answer in results)


def test_outputs_do_not_depend_on_the_batch(lss_t5: Path) -> None:
    together = LssSeq2Seq(lss_t5).subsequences(PAIRS)
    engine = LssSeq2Seq(lss_t5, batch_size=1)
    assert [engine.subsequences([pair])[0] for pair in PAIRS] == together


def test_unconstrained_lss_star_may_have_any_words(write_t5: Callable) -> None:
    results = LssSeq2Seq(write_t5("lss_star")).subsequences(PAIRS)
    assert any(answer.keep is None for answer in results)
    for (claim, _), answer in zip(PAIRS, results, strict=True):
        assert (answer.keep is not None) == is_subsequence(answer.text, claim)


def test_component_command_evaluates_lss_and_lss_star(write_t5: Callable, tmp_path: Path) -> None:
    rows = [
        {
            "reference": reference,
            "claim": claim,
            "annotations": [{"lss": claim, "lss_star": "she was", "rating": 1 + place}],
        }
        for place, (claim, reference) in enumerate(PAIRS)
    ]
    rows.append({**rows[0], "claim": "was " * 40})
    file = tmp_path / "lss.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    plain = judge(str(write_t5()), str(file))
    assert (plain["component"], plain["n"], plain["failed"]) == ("lss", 5, 1)
    assert plain["metrics"]["subsequence_share"]["value"] == 1
    star = judge(str(write_t5("lss_star")), str(file))
    assert (star["component"], star["n"], star["failed"]) == ("lss_star", 5, 1)
    assert star["metrics"]["subsequence_share"]["value"] < 1
