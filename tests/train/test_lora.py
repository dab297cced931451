"""LoRA adapters of classifiers: what they export, and that ``eval`` judges by the same weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from components.base import load_classifier
from components.checkpoint import RELATIONS, read_component
from eval.commands.component import judge
from eval.models.encoder import Entailment
from records import RelationPair, read_records
from train.__main__ import main


@pytest.fixture
def adapter(arguments: Callable, tmp_path: Path) -> Path:
    main(arguments("relation", "--model.r", "4"))
    return tmp_path / "checkpoints/run"


def pairs_of(folder: Path) -> list[tuple[str, str]]:
    rows = read_records(folder.parents[1] / "relation.jsonl", RelationPair)
    return [(row.premise, row.hypothesis) for row in rows]


def test_adapter_folder_holds_adapter_and_head_alone(adapter: Path, tiny_bert: str) -> None:
    weights = load_file(adapter / "adapter_model.safetensors")
    assert not (adapter / "model.safetensors").exists()
    assert {name.split(".")[2] for name in weights} == {"bert", "classifier"}
    base = load_file(Path(tiny_bert) / "model.safetensors")
    assert not {name.removeprefix("base_model.model.bert.") for name in weights} & set(base) - {
        "pooler.dense.weight",
        "pooler.dense.bias",
    }
    config = json.loads((adapter / "adapter_config.json").read_text())
    assert (config["r"], config["base_model_name_or_path"]) == (4, tiny_bert)
    assert read_component(adapter, "relation").base["id"] == tiny_bert


def test_scores_of_an_adapter_equal_those_of_its_merged_weights(
    adapter: Path, tiny_bert: str
) -> None:
    pairs = pairs_of(adapter)
    component = read_component(adapter)
    model = AutoModelForSequenceClassification.from_pretrained(tiny_bert, num_labels=3)
    model = PeftModel.from_pretrained(model, adapter).eval()
    tokenizer = AutoTokenizer.from_pretrained(adapter)
    engine = Entailment(adapter)
    expected = []
    for pair in pairs:
        inputs = tokenizer(*pair, return_tensors="pt")
        with torch.inference_mode():
            logits = model(**inputs).logits[0]
            torch.testing.assert_close(engine._model(**inputs).logits[0], logits, atol=1e-5, rtol=0)
            with model.disable_adapter():
                assert (model(**inputs).logits[0] - logits).abs().max() > 0.01
        scaled = logits / component.temperature + torch.tensor([component.shift, 0, 0])
        expected.append(scaled.softmax(-1).tolist())
    np.testing.assert_allclose(engine.relations(pairs), expected, atol=1e-5)


@pytest.mark.parametrize("component", ["relation", "unli", "lss"])
def test_eval_measures_an_adapter_as_training_did(
    arguments: Callable, tmp_path: Path, component: str
) -> None:
    main(arguments(component, "--model.r", "2"))
    folder = tmp_path / "checkpoints/run"
    measures = judge(str(folder), str(tmp_path / f"{component}.jsonl"))["metrics"]
    for name, value in read_component(folder).metrics.items():
        assert measures[name]["value"] == pytest.approx(value, abs=1e-4)


def test_adapter_in_half_precision_takes_half_the_space_and_judges_alike(
    adapter: Path, arguments: Callable
) -> None:
    judged = Entailment(adapter).relations(pairs_of(adapter))
    half = adapter.with_name("half")
    resumed = arguments("relation", "--model.r", "4", "--ckpt_path", "last")
    main([*resumed, "--model.half", "true", "--export_to", str(half)])
    weights = load_file(half / "adapter_model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float16}
    np.testing.assert_allclose(Entailment(half).relations(pairs_of(half)), judged, atol=0.01)


def test_training_continues_from_an_adapter(adapter: Path) -> None:
    judged = Entailment(adapter)
    model = load_classifier(str(adapter), RELATIONS)
    merged = judged._model.bert.encoder.layer[0].output.LayerNorm.weight
    assert torch.equal(model.bert.encoder.layer[0].output.LayerNorm.weight, merged)
    assert load_classifier(str(adapter), ["probability"]).config.num_labels == 1


def test_adapter_is_continued_and_belongs_to_the_same_base(
    adapter: Path, arguments: Callable, tiny_bert: str, tmp_path: Path
) -> None:
    folder = tmp_path / "continued"
    options = ("--name", "continued", "--export_to", str(folder), "--trainer.max_steps", "0")
    main(arguments("relation", "--model.r", "4", "--model.start", str(adapter), *options))
    weights = load_file(adapter / "adapter_model.safetensors")
    continued = load_file(folder / "adapter_model.safetensors")
    assert all(torch.equal(weights[name], continued[name]) for name in weights)
    assert read_component(folder).base["id"] == tiny_bert


def test_cached_answers_of_an_adapter_belong_to_its_base(
    adapter: Path, tiny_bert: str, tmp_path: Path
) -> None:
    base = Path(shutil.copytree(tiny_bert, tmp_path / "base"))
    component = json.loads((adapter / "component.json").read_text())
    component["base"]["id"] = str(base)
    (adapter / "component.json").write_text(json.dumps(component))
    before = Entailment(adapter)._fingerprint
    weights = load_file(base / "model.safetensors")
    doubled = {name: 2 * weight for name, weight in weights.items()}
    save_file(doubled, base / "model.safetensors", {"format": "pt"})
    assert Entailment(adapter)._fingerprint != before
