"""Metrics as evaluate modules."""

import evaluate
import pytest

from eval.models.encoder import Entailment, Unli
from eval.select.core import Core
from records import Claim, Document

BLEACHED = ["{topic} is a person."]


def module(pytestconfig, tmp_path, monkeypatch, name):
    monkeypatch.setenv("HF_EVALUATE_OFFLINE", "1")
    path = pytestconfig.rootpath / f"eval/metrics/{name}.py"
    return evaluate.load(str(path), cache_dir=str(tmp_path))


def test_f1_at_k(pytestconfig, tmp_path, monkeypatch):
    metric = module(pytestconfig, tmp_path, monkeypatch, "f1_at_k")
    result = metric.compute(predictions=[[1, 1, 0, 1], [0, -1], [-1], []])
    # The median of 4, 2 and 1 claims; precision 3/4, recall 1.
    assert (result["k"], result["n"], result["failed"]) == (2, 3, 2)
    assert result["f1_at_k"] == pytest.approx(2 * 0.75 / 1.75 / 3)
    assert result["recall_at_k"] == pytest.approx(1 / 3)
    assert metric.compute(predictions=[[1, 1, 0, 1]], k=6)["recall_at_k"] == 0.5
    skipped = metric.compute(predictions=[[1, 1, 0, 1], [0, -1], [-1], []], abstentions="skip")
    assert (skipped["k"], skipped["n"]) == (2, 2)
    assert skipped["f1_at_k"] == pytest.approx(2 * 0.75 / 1.75 / 2)
    with pytest.raises(ValueError, match="abstentions"):
        metric.compute(predictions=[[1]], abstentions="keep")


def test_core_precision(pytestconfig, tmp_path, monkeypatch, relation, unli):
    metric = module(pytestconfig, tmp_path, monkeypatch, "core_precision")
    claims = [["Ann Lee sings.", "ann lee sings", "Ann boxes."], ["Bob sings."]]
    options = {
        "predictions": [[1, 1, 0], [-1]],
        "claims": claims,
        "sentences": [[text.upper() for text in texts] for texts in claims],
        "topics": ["Ann Lee", "Bob"],
        "relation": str(relation),
        "unli": str(unli),
        "bleached": BLEACHED,
        "p": 0.0,
        "epsilon": 0.0,
    }
    result = metric.compute(**options)
    assert result["factual_precision"] == pytest.approx(2 / 3)
    assert (result["n"], result["failed"]) == (1, 1)
    model = Core(Entailment(str(relation)), Unli(str(unli)), BLEACHED, p=0.0, epsilon=0.0)
    document = Document(id="0", topic="Ann Lee", text="x")
    document_claims = [Claim(id=str(i), text=t, source=t.upper()) for i, t in enumerate(claims[0])]
    kept = [s.selected for s in model([document], [document_claims])[0]]
    assert result["kept_share"] == pytest.approx(sum(kept) / 3)
    decided = [d for d, k in zip([1, 1, 0], kept, strict=True) if k]
    assert result["core_precision"] == pytest.approx(sum(decided) / len(decided))
    assert sum(kept) in (1, 2), "the same text twice is one claim"
