"""MiniCheck: the checker's probabilities and chunks, and the verdicts from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertForSequenceClassification,
)

from components.base import load_tokenizer
from components.identity import identity
from eval.models.checker import Checker
from eval.models.hub import load_whole
from eval.models.openai_server import OpenAIServer
from eval.verify.minicheck import MiniCheck, PromptedMiniCheck
from records import Claim, Document, Passage, UserError
from tests.model_server import ModelServer

LONG = "Ada Lovelace wrote it. She was born in London! Was she a poet? He was."
CLAIM = "She was born in London."
PAIRS = [(LONG, CLAIM), ("Byron was a poet.", "He was a poet."), (LONG, "He was a poet.")]


@pytest.fixture(scope="module")
def classifier(save_bert: Callable, letter_tokenizer: Callable) -> Path:
    """Its first class is the one that MiniCheck's have second."""
    return save_bert(
        BertForSequenceClassification,
        letter_tokenizer(pairs=True),
        max_position_embeddings=128,
        initializer_range=0.5,
        id2label={0: "1", 1: "0"},
    )


@cache
def _loaded(folder: Path) -> tuple:
    auto = AutoModelForSequenceClassification
    if folder.name.startswith("t5"):
        auto = AutoModelForSeq2SeqLM
    return AutoTokenizer.from_pretrained(folder), auto.from_pretrained(folder).eval()


@torch.no_grad()
def _by_hand(folder: Path, text: str) -> float:
    """The probability of "1" over "0" after one text."""
    tokenizer, model = _loaded(folder)
    inputs = tokenizer(text, return_tensors="pt")
    if not model.config.is_encoder_decoder:
        return float(model(**inputs).logits[0].softmax(-1)[0])
    start = torch.tensor([[model.config.decoder_start_token_id]])
    logits = model(input_ids=inputs["input_ids"], decoder_input_ids=start).logits[0, 0]
    return float(logits[tokenizer.convert_tokens_to_ids(["1", "0"])].softmax(-1)[0])


def test_classifier_uses_its_best_chunk_and_labels(classifier: Path, tmp_path: Path) -> None:
    checker = Checker(str(classifier), chunk=37, max_length=128, cache=tmp_path / "c.sqlite")
    results = checker.relations(PAIRS)
    chunks = [
        "Ada Lovelace wrote it.",
        "She was born in London!",
        "Was she a poet? He was.",
    ]
    expected = [
        max(_by_hand(classifier, f"{chunk}[SEP]{CLAIM}") for chunk in chunks),
        _by_hand(classifier, "Byron was a poet.[SEP]He was a poet."),
    ]
    assert results[:2, 0] == pytest.approx(expected, abs=1e-5)
    assert results.sum(axis=1) == pytest.approx(1)
    assert not results[:, 2].any()
    rerun = Checker(str(classifier), chunk=37, max_length=128, cache=tmp_path / "c.sqlite")
    rerun.__dict__["_model"] = None  # whoever asks it would fail
    assert (rerun.relations(PAIRS) == results).all()
    turned = Checker(str(classifier), "0", "1", chunk=200, max_length=128)
    assert turned.relations(PAIRS[1:2])[0, 0] == pytest.approx(1 - expected[1], abs=1e-5)
    assert checker.relations([]).shape == (0, 3)


def test_seq2seq_first_token_decides_over_chunks(t5: Path) -> None:
    results = Checker(str(t5), chunk=9, max_length=200).relations(PAIRS)[:, 0]
    chunks = ["Ada Lovelace wrote it. She was born in London!", "Was she a poet? He was."]
    expected = [max(_by_hand(t5, f"predict: {c}[SEP]{CLAIM}") for c in chunks)]
    expected.append(_by_hand(t5, f"predict: {PAIRS[1][0]}[SEP]{PAIRS[1][1]}"))
    assert results[:2] == pytest.approx(expected, abs=1e-5)


def test_true_template_has_premise_and_hypothesis(t5: Path) -> None:
    template = "premise: {document} hypothesis: {claim}"
    checker = Checker(str(t5), max_length=200, template=template)
    braces = [("A {claim} of Ada.", "It is {document}.")]
    results = checker.relations([PAIRS[1], *braces])[:, 0]
    texts = [f"premise: {document} hypothesis: {claim}" for document, claim in (PAIRS[1], *braces)]
    assert results == pytest.approx([_by_hand(t5, text) for text in texts], abs=1e-5)
    assert identity(checker) != identity(Checker(str(t5), max_length=200))
    with pytest.raises(UserError, match="template"):
        Checker(str(t5), template="premise: {document}")
    with pytest.raises(UserError, match="segments"):
        Checker(str(t5), segments=True, template=template)


def test_code_in_a_model_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "ran"
    names = {auto: "own.Own" for auto in ("AutoConfig", "AutoModelForSequenceClassification")}
    config = {"model_type": "own", "auto_map": names | {"AutoTokenizer": ["own.Own", None]}}
    for name in ("config.json", "tokenizer_config.json"):
        (tmp_path / name).write_text(json.dumps(config))
    (tmp_path / "own.py").write_text(
        f"from pathlib import Path\nfrom transformers import PretrainedConfig as Own\n"
        f"Path({str(ran)!r}).touch()\n"
    )
    monkeypatch.setattr("builtins.input", lambda _: "y")
    with pytest.raises(UserError, match="cannot be loaded"):
        Checker(str(tmp_path)).relations(PAIRS)
    with pytest.raises(UserError, match="weights cannot be loaded"):
        load_whole(AutoModelForSequenceClassification, str(tmp_path), torch.device("cpu"))
    with pytest.raises(UserError, match="tokenizer"):
        load_tokenizer(str(tmp_path))
    assert not ran.exists()


DOCUMENTS = [Document(id="d", topic="Ada", text="…"), Document(id="e", topic="Byron", text="…")]
PASSAGES = [
    [Passage(id="p0", title="Ada", text=LONG), Passage(id="p1", text="Byron was a poet.")],
    [],
]
CLAIMS = [
    [
        Claim(id="c0", text=CLAIM, contexts=["p1", "p0"]),
        Claim(id="c1", text="He was a poet.", contexts=["p1"]),
        Claim(id="c2", text="Who?", contexts=[]),
    ],
    [Claim(id="c0", text="Who?")],
]


def test_minicheck_uses_the_best_passage(classifier: Path) -> None:
    checker = Checker(str(classifier), chunk=200, max_length=128)
    titled = [(PASSAGES[0][1].text, CLAIM), (f"Ada. {LONG}", CLAIM)]
    p = checker.relations(titled)[:, 0].tolist()
    best = max(p)
    verdicts = MiniCheck(checker, threshold=best - 1e-6, title_in_premise=True)(
        DOCUMENTS, CLAIMS, PASSAGES
    )
    first = verdicts[0][0]
    assert (first.label, first.p) == ("supported", best)
    assert first.evidence == [["p1", "p0"][p.index(best)]]
    turned = [[CLAIMS[0][0].model_copy(update={"contexts": ["p0", "p1"]})], []]
    ((rerun,), _) = MiniCheck(checker, title_in_premise=True)(DOCUMENTS, turned, PASSAGES)
    assert (rerun.p, rerun.evidence) == (first.p, first.evidence)
    strict = MiniCheck(checker, threshold=best, title_in_premise=True)
    assert strict(DOCUMENTS, CLAIMS, PASSAGES)[0][0].label == "not_supported"
    assert [(v.label, v.reason) for v in (verdicts[0][2], verdicts[1][0])] == [
        ("failed", "no passage was found"),
        ("failed", "retrieval failed"),
    ]


def test_language_model_is_queried_per_passage_and_a_yes_supports() -> None:
    def reply(body: dict) -> str:
        prompts = body["messages"][-1]["content"]
        assert prompts.startswith("Document: ")
        assert body["messages"][0]["role"] == "system"
        return "Yes" if LONG in prompts else "Perhaps" if "He was" in prompts else "No."

    with ModelServer(reply) as server:
        verify = PromptedMiniCheck(OpenAIServer("m", server.url))
        verdicts = verify(DOCUMENTS, CLAIMS, PASSAGES)
        assert len(server.asked) == 3
    assert [(v.label, v.evidence) for v in verdicts[0]] == [
        ("supported", ["p0"]),
        ("failed", None),
        ("failed", None),
    ]
    assert verdicts[0][1].reason == "no answer in the text"
    assert verdicts[1][0].reason == "retrieval failed"
