"""Claims that do not fit into a model, and evidence with more tokens than words."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import BertForSequenceClassification

from components.checkpoint import LSS_TEMPLATE
from eval.models.checker import Checker
from eval.models.encoder import Entailment, LssTagger, Unli
from eval.models.engine import TOO_LONG
from eval.models.seq2seq import LssSeq2Seq
from eval.select.core import Core
from eval.verify.minicheck import MiniCheck
from eval.verify.nli import NLI
from eval.verify.supported_share import SupportedShare
from records import Claim, Document, Passage

ADDRESSES = " ".join(f"see https://example.org/archive/{n}/page?id={n:06}" for n in range(4))
ENDLESS = "Ada wrote it. " * 200
DOCUMENT = Document(id="d", topic="Ada", text="Ada wrote.")


@pytest.fixture(scope="module")
def checker(save_bert: Callable, letter_tokenizer: Callable) -> str:
    labels = {"id2label": {0: "0", 1: "1"}, "label2id": {"0": 0, "1": 1}}
    sizes = {"max_position_embeddings": 96, "initializer_range": 0.5}
    return str(
        save_bert(BertForSequenceClassification, letter_tokenizer(pairs=True), **labels, **sizes)
    )


@pytest.fixture(scope="module")
def writer(t5: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("writer") / "lss"
    shutil.copytree(t5, folder)
    fields = {
        "component": "lss",
        "architecture": "seq2seq",
        "prompt_template": LSS_TEMPLATE,
        "decoding": {"num_beams": 1, "max_new_tokens": 16, "constrained": True},
        "max_length": 96,
        "base": {"id": "random"},
    }
    (folder / "component.json").write_text(json.dumps(fields))
    return folder


def verdict_reasons(verifier: Callable, text: str) -> list[str | None]:
    claims = [Claim(id="a", text=text, contexts=["p"]), Claim(id="b", text="Ada.", contexts=["p"])]
    passages = [Passage(id="p", title="Ada", text=ADDRESSES)]
    (verdicts,) = verifier([DOCUMENT], [claims], [passages])
    assert verdicts[1].label != "failed"
    return [verdict.reason for verdict in verdicts]


@pytest.mark.parametrize("kind", ["relation", "tagger", "seq2seq", "checker"])
def test_claim_of_600_words_is_failed_with_the_reason(
    kind: str, relation: Path, lss: Path, writer: Path, checker: str
) -> None:
    verifiers = {
        "relation": lambda: NLI(Entailment(relation)),
        "tagger": lambda: SupportedShare(LssTagger(lss)),
        "seq2seq": lambda: SupportedShare(LssSeq2Seq(writer)),
        "checker": lambda: MiniCheck(Checker(checker, max_length=64)),
    }
    reason, _ = verdict_reasons(verifiers[kind](), ENDLESS)
    assert reason.startswith(TOO_LONG)


def test_selection_counts_a_long_claim_as_failed(relation: Path, unli: Path) -> None:
    core = Core(Entailment(relation), Unli(unli), ["{topic} is a person."], p=0)
    claims = [Claim(id="a", text=ENDLESS), Claim(id="b", text="Ada wrote.")]
    (selections,) = core([DOCUMENT], [claims])
    assert (selections[0].reason, selections[0].selected) == ("failed", False)
    assert selections[1].reason != "failed"
