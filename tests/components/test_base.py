"""Base models: heads of foreign checkpoints, incomplete weights, models in parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertConfig,
    AlbertForSequenceClassification,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    MPNetConfig,
    MPNetForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from components.base import (
    load_causal,
    load_classifier,
    match_labels,
    skip_unread_tokens,
)
from components.checkpoint import RELATIONS
from records import UserError

SIZE = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
MODELS = [
    (BertConfig, BertForSequenceClassification, {}),
    (RobertaConfig, RobertaForSequenceClassification, {}),
    (AlbertConfig, AlbertForSequenceClassification, {"embedding_size": 8}),
    (MPNetConfig, MPNetForSequenceClassification, {}),
]
IDS = torch.tensor([[5, 6, 7, 8], [9, 5, 11, 12]])


def saved(folder: Path, config: type, kind: type, labels: list[str], **more: object) -> object:
    torch.manual_seed(0)
    names = dict(enumerate(labels))
    model = kind(config(**SIZE, **more, num_labels=len(labels), id2label=names)).eval()
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize(("config", "kind", "more"), MODELS)
def test_foreign_nli_head_is_kept_in_our_order(config, kind, more, tmp_path: Path):
    theirs = saved(tmp_path, config, kind, ["CONTRADICTION", "neutral", "Entailment"], **more)
    ours = load_classifier(str(tmp_path), RELATIONS).eval()
    with torch.inference_mode():
        expected, result = theirs(input_ids=IDS).logits, ours(input_ids=IDS).logits
    torch.testing.assert_close(result, expected[:, [2, 1, 0]])
    assert list(ours.config.id2label.values()) == RELATIONS


@pytest.mark.parametrize(("config", "kind", "more"), MODELS)
def test_encoder_is_kept_under_a_head_of_another_size(config, kind, more, tmp_path: Path):
    theirs = saved(tmp_path, config, kind, ["positive", "negative", "mixed"], **more)
    ours = load_classifier(str(tmp_path), ["probability"])
    left, right = theirs.base_model.state_dict(), ours.base_model.state_dict()
    for name in right:
        torch.testing.assert_close(right[name], left[name])
    assert ours(input_ids=IDS).logits.shape == (2, 1)


@pytest.mark.parametrize(("config", "kind", "more"), MODELS)
def test_a_probability_starts_as_entailment_minus_contradiction(config, kind, more, tmp_path):
    theirs = saved(tmp_path, config, kind, ["CONTRADICTION", "neutral", "Entailment"], **more)
    ours = load_classifier(str(tmp_path), ["probability"]).eval()
    with torch.inference_mode():
        expected, result = theirs(input_ids=IDS).logits, ours(input_ids=IDS).logits
    torch.testing.assert_close(result[:, 0], expected[:, 2] - expected[:, 0])


def test_classes_that_cannot_be_matched_start_a_fresh_head(tmp_path: Path):
    theirs = saved(tmp_path, *MODELS[0][:2], ["positive", "negative", "mixed"])
    ours = load_classifier(str(tmp_path), RELATIONS)
    assert not torch.equal(ours.classifier.weight, theirs.classifier.weight)


def test_published_label_names_are_known():
    assert match_labels(["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], RELATIONS) == [0, 2, 1]
    assert match_labels(["LABEL_0", "LABEL_1", "LABEL_2"], RELATIONS) is None
    assert match_labels([0, 1, 2], RELATIONS) is None
    assert match_labels(["entailment", "not_entailment"], RELATIONS) is None
    assert match_labels(["LABEL_0"], ["probability"]) == [0]
    assert match_labels(["LABEL_0", "LABEL_1"], ["probability"]) is None


def test_weights_that_the_encoder_lacks_are_named(tmp_path: Path):
    saved(tmp_path, *MODELS[0][:2], RELATIONS)
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    gone = next(name for name in weights if "layer.1" in name)
    save_file({n: w for n, w in weights.items() if n != gone}, path, metadata={"format": "pt"})
    with pytest.raises(UserError, match=rf"lacks encoder weights {gone}"):
        load_classifier(str(tmp_path), RELATIONS)
    weights["bert.encoder.layer.0.extra"] = weights[gone].clone()
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(UserError, match="unknown encoder weights"):
        load_classifier(str(tmp_path), RELATIONS)


def changed(folder: Path, **fields: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_a_language_model_that_its_files_do_not_fill_is_refused(tmp_path: Path):
    sizes = {**SIZE, "num_key_value_heads": 2}
    LlamaForCausalLM(LlamaConfig(**sizes)).save_pretrained(tmp_path)
    load_causal(str(tmp_path))
    for fields in ({"num_hidden_layers": 3}, {"num_hidden_layers": 2, "intermediate_size": 48}):
        changed(tmp_path, **fields)
        with pytest.raises(UserError, match=r"lack model\.layers"):
            load_causal(str(tmp_path))


def test_heads_of_a_language_model_are_left_over_and_the_pooler_may_be_missing(tmp_path: Path):
    BertForMaskedLM(BertConfig(**SIZE)).save_pretrained(tmp_path)
    assert load_classifier(str(tmp_path), RELATIONS).config.num_labels == 3


ENCODERS = {
    "bert": ("Bert", {}),
    "deberta-v2": ("DebertaV2", {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "electra": ("Electra", {"embedding_size": 32}),
    "mpnet": ("MPNet", {}),
    "roberta": ("Roberta", {}),
    "xlm-roberta": ("XLMRoberta", {}),
}


def classifier(kind: str) -> transformers.PreTrainedModel:
    """A random sequence classifier of a kind, without dropout."""
    name, encoder_options = ENCODERS[kind]
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2}
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    common_sizes = {"vocab_size": 40, "intermediate_size": 64, "max_position_embeddings": 64}
    config = getattr(transformers, f"{name}Config")(
        **sizes, **none, **common_sizes, **encoder_options, num_labels=3
    )
    torch.manual_seed(0)
    return getattr(transformers, f"{name}ForSequenceClassification")(config)


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("rows", [1, 5])
def test_the_last_layer_without_what_nobody_reads_answers_and_learns_the_same(kind, rows):
    model = classifier(kind)
    tokens = torch.randint(5, 40, (rows, 17), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(tokens)
    mask[0, 13:] = 0
    widths = []
    last = model.base_model.encoder.layer[-1]
    last.intermediate.register_forward_hook(lambda _, command, out: widths.append(out.shape[1]))

    def answers():
        model.zero_grad()
        logits = model(input_ids=tokens, attention_mask=mask).logits
        logits.square().sum().backward()
        grads = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        return logits.detach(), grads

    whole, grads = answers()
    assert skip_unread_tokens(model) is model
    cut, cut_grads = answers()
    assert widths == [17, 2]
    assert torch.allclose(whole, cut, atol=1e-6)
    assert grads.keys() == cut_grads.keys()
    assert all(torch.allclose(grads[name], cut_grads[name], atol=1e-5) for name in grads)
