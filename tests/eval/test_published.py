"""Published NLI models as relation models: classes, windows, commits, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from eval.models.cache import AnswerCache
from eval.models.encoder import Entailment, Unli
from eval.run.provenance import build_provenance, hash_inputs
from eval.verify.nli import NLI
from records import Claim, Document, Passage, UserError

THREE = ["CONTRADICTION", "Entailment", "neutral"]
PAIRS = [("Ada wrote a note.", "Ada wrote."), ("She was born in London.", "Ada is a poet.")]
HUB = "lab/nli"
COMMIT, OTHER = "a" * 40, "b" * 40

Maker = Callable[..., Path]


@pytest.fixture(scope="module")
def published(save_bert: Maker, letter_tokenizer: Callable) -> Maker:
    """Makes a folder as a hub model is, with the classes it names."""

    def make(labels: list[str], kind: type = BertForSequenceClassification, **more: object) -> Path:
        options = {"max_position_embeddings": 256, "initializer_range": 0.3} | more
        names = {"id2label": dict(enumerate(labels))} if labels else {}
        return save_bert(kind, letter_tokenizer(pairs=True), **options, **names)

    return make


@pytest.fixture(scope="module")
def three(published: Maker) -> Path:
    return published(THREE)


@pytest.fixture
def hub(three: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds one model in two commits, as after downloads; the hub is out of reach."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    repository = tmp_path / "hub" / "models--lab--nli"
    for name, commit in (("main", COMMIT), ("v2", OTHER)):
        shutil.copytree(three, repository / "snapshots" / commit)
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / name).write_text(commit)
    path = repository / "snapshots" / OTHER / "model.safetensors"
    weights = load_file(path)
    weights["classifier.bias"] += torch.tensor([0.0, 1.0, 0.0])
    save_file(weights, path, metadata={"format": "pt"})
    return repository


@torch.no_grad()
def by_hand(folder: Path, premise: str, hypothesis: str) -> list[float]:
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    encoded = AutoTokenizer.from_pretrained(folder)(premise, hypothesis, return_tensors="pt")
    return model(**encoded).logits[0].softmax(-1).tolist()


def test_three_classes_are_put_into_our_order(three):
    actual = Entailment(three).relations(PAIRS)
    for row, pair in zip(actual, PAIRS, strict=True):
        contradiction, entailment, neutral = by_hand(three, *pair)
        np.testing.assert_allclose(row, [entailment, neutral, contradiction], atol=1e-6)
    assert np.ptp(actual) > 0.05  # otherwise any order would pass


def test_of_two_classes_not_entailment_is_shown_as_neutral(published):
    folder = published(["not_entailment", "entailment"])
    engine = Entailment(folder)
    actual = engine.relations(PAIRS)
    for row, pair in zip(actual, PAIRS, strict=True):
        other, entailment = by_hand(folder, *pair)
        np.testing.assert_allclose(row, [entailment, other, 0], atol=1e-6)
    documents = [Document(id="d", topic="Ada", text="Ada wrote.")]
    claims = [[Claim(id="c", text=PAIRS[0][1], contexts=["p"])]]
    passages = [[Passage(id="p", title="Ada", text=PAIRS[0][0])]]
    ((verdict,),) = NLI(engine)(documents, claims, passages)
    assert verdict.label == ("supported" if actual[0][0] > 0.5 else "not_supported")
    assert verdict.p == pytest.approx(actual[0][0])


def test_a_published_unli_model_has_one_unnamed_output(letter_tokenizer, three, tmp_path):
    """As Zhengping/roberta-large-unli: the sigmoid of its logit is the probability."""
    tokenizer = letter_tokenizer(pairs=True)
    tokenizer.model_input_names = ["input_ids", "attention_mask"]  # RoBERTa has no token types
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 16}
    sizes |= {"num_attention_heads": 2, "max_position_embeddings": 66, "num_labels": 1}
    config = RobertaConfig(vocab_size=len(tokenizer), type_vocab_size=1, pad_token_id=0, **sizes)
    folder = tmp_path / "unli"
    RobertaForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    tokens = AutoTokenizer.from_pretrained(folder)(*zip(*PAIRS, strict=True), padding=True)
    inputs = {name: torch.tensor(tokens[name]) for name in ("input_ids", "attention_mask")}
    expected = model(**inputs).logits[:, 0].sigmoid().detach().numpy()
    np.testing.assert_allclose(Unli(folder).likelihood(PAIRS), expected, atol=1e-5)
    with pytest.raises(UserError, match="expected one output"):
        Unli(three)


def test_the_commit_of_a_hub_model_decides_its_answers(hub, three, tmp_path):
    cache = tmp_path / "cache.sqlite"
    engine = Entailment(HUB, cache=cache)
    assert engine.component.base == {"id": HUB, "revision": COMMIT}
    actual = engine.relations(PAIRS)
    np.testing.assert_array_equal(actual, Entailment(three).relations(PAIRS))
    pinned = Entailment(HUB, cache=cache, revision="v2").relations(PAIRS)
    assert (pinned[:, 0] > actual[:, 0]).all()
    cached = Entailment(HUB, cache=cache, revision=COMMIT)
    np.testing.assert_array_equal(cached.relations(PAIRS), actual)
    assert cached.judged == 0
    rows = AnswerCache(cache)._table.execute("SELECT COUNT(*) FROM checked_answers").fetchone()
    assert rows == (4,)


def test_the_weights_of_a_folder_count_as_inputs(three, tmp_path):
    folder = Path(shutil.copytree(three, tmp_path / "model"))
    config = {"checkpoint": str(folder)}
    before = hash_inputs(config)
    assert build_provenance(config, before)["checkpoints"] == {
        str(folder): {"sha256": before[str(folder)]}
    }
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"] += 1
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    actual = [before, hash_inputs(config)]
    # Whatever else decides its answers: a prompt's form, a sentence encoder's modules.
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    actual.append(hash_inputs(config))
    (folder / "2_Dense").mkdir()
    save_file({"w": weights["classifier.bias"]}, folder / "2_Dense/model.safetensors")
    actual.append(hash_inputs(config))
    assert len({hashes[str(folder)] for hashes in actual}) == 4
    (folder / "README.md").write_text("What it is.")
    assert hash_inputs(config) == actual[-1]
