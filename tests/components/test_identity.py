"""What an object is, as JSON: its class, its options, and the content of files and models."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from components.identity import COST_OPTIONS, identity, input_sha256
from eval.defences import PipelineScore, read_pipeline
from eval.models.encoder import Entailment
from eval.models.joint import Joint
from records import UserError
from tests.eval.conftest import make_checkpoint, relation

__all__ = ["make_checkpoint", "relation"]  # fixtures


def shifted(checkpoint: Path, to: Path) -> Path:
    """A copy of a checkpoint with another bias."""
    shutil.copytree(checkpoint, to)
    weights = load_file(to / "model.safetensors")
    weights["classifier.bias"] += torch.tensor([1.0, 0.0, 0.0])
    save_file(weights, to / "model.safetensors", metadata={"format": "pt"})
    return to


def test_two_checkpoints_of_one_name_differ_by_their_weights(relation, tmp_path):
    copied = Path(shutil.copytree(relation, tmp_path / relation.name))
    other = shifted(relation, tmp_path / "b" / relation.name)
    first, same, second = (identity(Entailment(path)) for path in (relation, copied, other))
    assert first == same != second
    assert first["class"] == "eval.models.encoder.Entailment"
    assert str(tmp_path) not in json.dumps(second)
    assert input_sha256(relation) == input_sha256(copied) != input_sha256(other)


def test_tokenizer_and_options_change_an_identity_but_cache_and_device_do_not(relation, tmp_path):
    first = identity(Entailment(relation))
    assert identity(Entailment(relation, 8, tmp_path / "c.sqlite", device="cpu")) == first
    assert identity(Entailment(relation, dtype="bfloat16")) != first
    changed = Path(shutil.copytree(relation, tmp_path / relation.name))
    tokenizer = changed / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text("utf-8").replace('"z"', '"Ж"'), encoding="utf-8")
    assert identity(Entailment(changed)) != first


def test_a_pipeline_changes_with_a_judge_inside_it(relation, tmp_path):
    other = shifted(relation, tmp_path / relation.name)
    first, second = (
        identity(partial(Joint, models=[Entailment(relation), Entailment(path)]))
        for path in (relation, other)
    )
    assert first != second


def test_a_file_option_is_described_by_its_content(tmp_path):
    @dataclass
    class Listed:
        path: str
        words: list[str]

    path = tmp_path / "names.txt"
    path.write_text("ann")
    first = identity(Listed(str(path), ["names"]))
    path.write_text("bob")
    assert first["words"] == identity(Listed(str(path), ["names"]))["words"] == ["names"]
    assert identity(Listed(str(path), ["names"]))["path"] != first["path"]


class Forgetful:
    def __init__(self, model: str):
        self.loaded = f"weights of {model}"


class Loading:
    def __init__(self):
        self.loaded = "weights"


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (Forgetful("a"), "Forgetful: does not keep its option model; store it in an attribute"),
        (Loading(), "Loading: has no options; define what it is in the attribute `identity`"),
        (lambda pairs: pairs, "<lambda>"),
    ],
)
def test_an_object_without_an_identity_is_an_error(thing, message):
    with pytest.raises(UserError, match=message):
        identity({"judge": thing})


@pytest.mark.parametrize("config", sorted(Path("configs/eval").glob("[rs]*/*.yaml")), ids=str)
def test_every_shipped_pipeline_has_an_identity(config):
    try:
        described = identity(PipelineScore(read_pipeline(str(config))))
    except (UserError, ValueError) as error:
        if "no such folder" in str(error) or "base of its adapter" in str(error):
            pytest.skip(f"needs a trained checkpoint: {error}")
        raise
    assert not COST_OPTIONS & {name for name in json.dumps(described).split('"')}
