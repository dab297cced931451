"""The identity of a PEFT adapter, the key of its cached answers, contains that of its base."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaForCausalLM

from components.identity import identity
from eval.models.local import LocalModel
from records import UserError


def test_the_identity_of_an_adapter_changes_with_its_base(tiny_llama: Path, tmp_path: Path) -> None:
    base, adapter = tmp_path / "writers/base", tmp_path / "adapter"
    shutil.copytree(tiny_llama, base)
    lora = LoraConfig(r=2, task_type="CAUSAL_LM")
    get_peft_model(LlamaForCausalLM.from_pretrained(base), lora).save_pretrained(adapter)
    before = identity(LocalModel(str(adapter), chat=False))
    assert before["model"]["base"] == identity(LocalModel(str(base), chat=False))["model"]

    model = LlamaForCausalLM.from_pretrained(base)
    torch.nn.init.zeros_(model.lm_head.weight)
    model.save_pretrained(base)
    assert identity(LocalModel(str(adapter), chat=False)) != before

    shutil.rmtree(base)
    with pytest.raises(UserError, match=r"adapter: the base of its adapter is missing .*base"):
        _ = identity(LocalModel(str(adapter), chat=False))
