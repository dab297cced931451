"""Verdicts that documents bring: FactReasoner's outputs give their tables without a model."""

import json

import pytest

from eval.decompose.given import Given
from eval.metrics.corpus import summarise
from eval.pipeline import Pipeline
from eval.verify.factreasoner.stage import FactReasoner
from eval.verify.recorded import Recorded
from records import Document, read_records
from tests.eval.test_factreasoner import C, E, Told, document


def values(documents, verify, k):
    scored = Pipeline(Given(), [verify], gamma=0).score(documents)
    return {row.metric: row for row in summarise(scored, "hash", "tests", k=k)}


def test_recorded_verdicts_are_scored_unchanged(tmp_path):
    labelled = document({"a": ["x"], "b": ["y"], "c": []}, ["x", "y"], a="S", b="S", c="NS")
    model = Told({("x", "a"): (E, 0.8), ("y", "b"): (C, 0.8)})
    stage = FactReasoner(model, versions=[2])
    before = values([labelled], stage, k=2)
    (verdicts,) = stage([labelled], [labelled.claims], [labelled.passages])
    atoms = [c.model_dump(include={"id", "text", "label", "contexts"}) for c in labelled.claims]
    contexts = [p.model_dump(include={"id", "title", "text"}) for p in labelled.passages]
    results = {
        "marginals": [{"variable": v.claim, "probabilities": [1 - v.p, v.p]} for v in verdicts],
        "predictions": {v.claim: "S" if v.label == "supported" else "NS" for v in verdicts},
    }
    row = {"input": "x", "output": labelled.text, "topic": labelled.topic, "atoms": atoms}
    path = tmp_path / "output.json"
    path.write_text(json.dumps(row | {"contexts": contexts, "results": results}))
    after = values(read_records(path, Document), Recorded(), k=2)
    names = ("supported", "contradicted", "undecided", "factual_precision", "recall_at_k")
    for name in (*names, "f1_at_k", "e_measure", "brier", "precision_mae"):
        assert after[name].value == pytest.approx(before[name].value), name


def test_a_claim_without_a_verdict_is_failed():
    labelled = document({"a": []}, [])
    (outputs,) = Recorded()([labelled], [labelled.claims], [[]])
    assert [(v.label, v.reason) for v in outputs] == [("failed", "no verdict was recorded")]
