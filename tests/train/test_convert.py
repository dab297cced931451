"""A published T5's folder as a checkpoint folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from components.base import random_t5
from components.checkpoint import LSS_TEMPLATE, read_component
from components.words import is_subsequence
from eval.commands.component import judge
from eval.models.seq2seq import LssSeq2Seq
from tests.train.conftest import lss_rows
from train.__main__ import main

SIZES = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2}
CLAIM = "Ada was a poet."


@pytest.fixture
def published(word_tokenizer: Callable, tmp_path: Path) -> Path:
    """A random T5 as ``save_pretrained`` writes it, without a component.json."""
    folder = tmp_path / "lss_archive"
    torch.manual_seed(0)
    tokenizer = word_tokenizer(pairs=True)
    tokenizer.eos_token = tokenizer.sep_token
    random_t5(tokenizer, SIZES).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def convert(published: Path, *more: str) -> Path:
    to = published.parent / "checkpoints/lss_t5"
    assert main(["convert", "--model", str(published), "--output", str(to), *more]) == 0
    return to


def test_it_becomes_a_checkpoint_that_is_used_like_a_trained_one(published: Path) -> None:
    to = convert(published)
    component = read_component(to, "lss")
    assert component.prompt_template == LSS_TEMPLATE
    assert component.decoding == {"num_beams": 5, "max_new_tokens": 128, "constrained": True}
    assert component.base["id"] == "lss_archive"
    assert list(component.base["sha256"]) == ["model.safetensors"]
    assert str(published.parent) not in (to / "component.json").read_text(encoding="utf-8")
    (result,) = LssSeq2Seq(to).subsequences([(CLAIM, "Ada wrote.")])
    assert is_subsequence(result.text, CLAIM)
    assert "evaluated here" in (to / "README.md").read_text(encoding="utf-8")


def test_it_is_judged_like_a_trained_one(published: Path, write: Callable) -> None:
    to, file = convert(published), write("lss", lss_rows())
    result = judge(str(to), file)
    assert (result["n"], result["failed"]) == (10, 0)
