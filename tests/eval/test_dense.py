"""Dense retrieval with tiny real encoders in the folder layout of sentence-transformers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from jsonargparse import ArgumentParser
from safetensors.torch import save_file
from transformers import BertModel, T5Config, T5EncoderModel

from components.identity import identity
from eval.models.sentence_encoder import SentenceEncoder
from eval.retrieve import dense
from eval.retrieve.dense import Dense, DenseIndex, PassageFile
from eval.stages import Searcher
from records import Claim, Document, Passage, UserError, write_jsonl

TEXTS = [
    ("ada lovelace", "ada wrote the first program ."),
    ("lovelace", "a poet was born in paris ."),
    ("london", "london is early ."),
    ("he", "he was a mathematician and a poet . he was born in london . he wrote very early ."),
    ("note", "note"),
]


@pytest.fixture(scope="module")
def plain(save_bert, word_tokenizer) -> Path:
    """A folder without modules.json."""
    return save_bert(BertModel, word_tokenizer(pairs=True))


@pytest.fixture(scope="module")
def gtr(tmp_path_factory, word_tokenizer) -> Path:
    """A random T5 encoder with the modules that GTR has."""
    folder = tmp_path_factory.mktemp("gtr")
    torch.manual_seed(0)
    tokenizer = word_tokenizer(pairs=True)
    sizes = {"d_model": 16, "d_ff": 32, "d_kv": 8, "num_layers": 2, "num_heads": 2}
    T5EncoderModel(T5Config(vocab_size=len(tokenizer), **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_modules(folder, pooling="mean_tokens", linear=True)
    return folder


def write_modules(folder: Path, pooling: str, linear: bool = False, step: str = "") -> None:
    names = ["Transformer", "Pooling", *(["Dense"] if linear else []), "Normalize"]
    names += [step] if step else []
    modules = [
        {
            "idx": n,
            "name": str(n),
            "path": f"{n}_{name}" if n else "",
            "type": f"sentence_transformers.models.{name}",
        }
        for n, name in enumerate(names)
    ]
    put(folder / "modules.json", modules)
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    width = json.loads((folder / "config.json").read_text())["d_model" if linear else "hidden_size"]
    pooling_modes = {f"pooling_mode_{m}": m == pooling for m in modes}
    put(folder / "1_Pooling" / "config.json", pooling_modes | {"word_embedding_dimension": width})
    put(folder / "sentence_bert_config.json", {"max_seq_length": 12})
    if linear:
        torch.manual_seed(1)
        activation = "torch.nn.modules.linear.Identity"
        config = {"in_features": 16, "out_features": 8, "bias": False}
        put(folder / "2_Dense" / "config.json", config | {"activation_function": activation})
        save_file({"linear.weight": torch.randn(8, 16)}, folder / "2_Dense" / "model.safetensors")


def put(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture
def passages(tmp_path) -> Path:
    path = tmp_path / "passages.jsonl"
    rows = [{"id": f"p{n}", "title": t, "text": text} for n, (t, text) in enumerate(TEXTS)]
    write_jsonl(path, rows)
    return path


@torch.inference_mode()
def by_hand(folder: Path, text: str, tokenizer) -> np.ndarray:
    """GTR's vector of one text, step by step."""
    ids = tokenizer(text, truncation=True, max_length=12)["input_ids"]
    states = T5EncoderModel.from_pretrained(folder)(torch.tensor([ids])).last_hidden_state
    weight = torch.nn.Linear(16, 8, bias=False)
    torch.manual_seed(1)
    weight.weight.data = torch.randn(8, 16)
    vector = weight(states[0].mean(dim=0))
    return (vector / vector.norm()).numpy()


def test_gtr_vectors_equal_mean_pooling_and_linear_layer(gtr, word_tokenizer):
    texts = [text for _, text in TEXTS]
    results = SentenceEncoder(str(gtr), batch_size=2, device="cpu").encode(texts)
    assert results.shape == (5, 8)
    for text, vector in zip(texts, results, strict=True):
        expected = by_hand(gtr, text, word_tokenizer(pairs=True))
        np.testing.assert_allclose(vector, expected, atol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token", "max_tokens"])
def test_pooling_ignores_padding(save_bert, word_tokenizer, pooling):
    tokenizer = word_tokenizer(pairs=True)
    folder = save_bert(BertModel, tokenizer)
    write_modules(folder, pooling)
    texts = [text for _, text in TEXTS]
    results = SentenceEncoder(str(folder), device="cpu").encode(texts)
    model = BertModel.from_pretrained(folder).eval()
    for text, vector in zip(texts, results, strict=True):
        inputs = tokenizer(text, truncation=True, max_length=12, return_tensors="pt")
        states = model(**inputs).last_hidden_state[0]
        by_kind = {"mean_tokens": states.mean(dim=0), "max_tokens": states.max(dim=0).values}
        pooling_modes = by_kind.get(pooling, states[0])
        np.testing.assert_allclose(
            vector, (pooling_modes / pooling_modes.norm()).numpy(), atol=1e-5
        )


def test_nearest_passages_equal_brute_force(plain, passages):
    encoder = SentenceEncoder(str(plain), device="cpu")
    index = DenseIndex(PassageFile(passages), encoder)
    texts = [f"{title} {text}" for title, text in TEXTS]
    expected = encoder.encode(["who wrote ?"]) @ encoder.encode(texts).T
    (hits,) = index.search(["who wrote ?"], 3)
    assert [hit.row for hit in hits] == np.argsort(-expected[0])[:3].tolist()
    np.testing.assert_allclose(
        [hit.score for hit in hits], np.sort(expected[0])[::-1][:3], atol=2e-3
    )
    (everything,) = index.search(["who wrote ?"], 99)
    assert len(everything) == 5
    assert index.search([], 3) == []


def test_vectors_are_cached_and_a_killed_run_resumes(plain, passages, tmp_path, monkeypatch):
    monkeypatch.setattr(dense, "CHUNK", 2)
    encoder = SentenceEncoder(str(plain), device="cpu")
    file = tmp_path / "v.npy"
    queries = ["who wrote ?", "london"]
    whole = DenseIndex(PassageFile(passages), encoder, file)
    assert isinstance(whole.vectors, np.memmap)
    assert whole.vectors.dtype == np.float16
    expected, kept = whole.search(queries, 3), file.read_bytes()
    assert DenseIndex(PassageFile(passages), encoder).search(queries, 3) == expected
    width = whole.vectors.shape[1] * 2
    for cut in (0, 10, 128 + 2 * width, 128 + 3 * width + 5):
        file.unlink()
        file.with_suffix(".partial").write_bytes(kept[:cut])
        DenseIndex(PassageFile(passages), encoder, file)
        assert file.read_bytes() == kept
        assert not file.with_suffix(".partial").exists()
    for torn in (b"", kept[:-1]):
        file.write_bytes(torn)
        with pytest.raises(UserError, match=r"v\.npy: truncated .*; delete it"):
            DenseIndex(PassageFile(passages), encoder, file)


def test_stage_sets_contexts_of_claims(plain, passages, tmp_path):
    stage = Dense(str(passages), str(plain), k=2, device="cpu", cache_dir=tmp_path / "cache")
    documents = [Document(id="d", topic="ada", text=""), Document(id="e", topic="he", text="")]
    claims = [[Claim(id="a", text="ada wrote"), Claim(id="b", text="london")], []]
    results, pooling_modes = stage(documents, claims)
    assert [len(claim.contexts) for claim in results[0]] == [2, 2]
    assert results[1] == []
    assert pooling_modes[1] == []
    assert {passage.id for passage in pooling_modes[0]} == {
        c for claim in results[0] for c in claim.contexts
    }
    assert all(isinstance(passage, Passage) for passage in pooling_modes[0])
    rerun = Dense(str(passages), str(plain), k=2, device="cpu", cache_dir=tmp_path / "cache")
    assert rerun(documents, claims) == (results, pooling_modes)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert identity(stage) == identity(rerun)
    assert str(tmp_path) not in json.dumps(identity(rerun))


def test_dense_stage_searches_and_ranks_pages(plain, passages):
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--search", type=Searcher)
    encoder = {
        "class_path": "eval.models.sentence_encoder.SentenceEncoder",
        "init_args": {"model": str(plain)},
    }
    for name, options in (
        ("dense.Dense", {"passages": str(passages), "model": str(plain), "device": "cpu"}),
        ("knowledge.SqliteKnowledge", {"path": "x.db", "encoder": encoder}),
    ):
        settings = {"class_path": f"eval.retrieve.{name}", "init_args": options}
        parsed = parser.parse_object({"search": settings})
        searcher = parser.instantiate(parsed).search
        if name.startswith("knowledge"):
            assert len(identity(searcher.encoder)["model"]["sha256"]) == 64
        else:
            results = searcher.search(["ada wrote", "london", "ada wrote"], 2)
            assert [len(hits) for hits in results] == [2, 2, 2]
            assert results[0] == results[2]
            assert all(isinstance(passage, Passage) for hits in results for passage in hits)
            assert len(identity(searcher)["passages"]["sha256"]) == 64
