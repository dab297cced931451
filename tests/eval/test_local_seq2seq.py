"""An encoder-decoder as a language model that answers prompts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from components.base import random_t5
from components.identity import identity
from eval.models.local_seq2seq import LocalSeq2Seq

SIZES = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2}
SIZES |= {"initializer_factor": 3.0}
PROMPTS = ["ada was a poet .", "she wrote", "ada lovelace was born in paris and wrote ."]
PROMPTS = [[{"role": "user", "content": text}] for text in PROMPTS]
GREEDY = {"temperature": 0.0, "max_new_tokens": 8}


@pytest.fixture(scope="module")
def t5(word_tokenizer: Callable, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random T5 with its tokenizer, as the hub has them."""
    folder = tmp_path_factory.mktemp("t5")
    torch.manual_seed(0)
    tokenizer = word_tokenizer(pairs=True)
    tokenizer.eos_token = tokenizer.sep_token
    random_t5(tokenizer, SIZES).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_answers_do_not_depend_on_other_prompts(t5: str) -> None:
    together = LocalSeq2Seq(t5).answer(PROMPTS, **GREEDY)
    alone = [LocalSeq2Seq(t5, batch_size=1).answer([p], **GREEDY)[0] for p in PROMPTS]
    assert together == alone
    assert len({answer.text for (answer,) in together}) > 1
    assert all(answer.failed is None for (answer,) in together)
    beams = LocalSeq2Seq(t5, num_beams=4)
    assert identity(beams) != identity(LocalSeq2Seq(t5))
    assert len(beams.answer(PROMPTS, **GREEDY)) == 3
