"""The verifier and word overlap are compared on the same claims."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from eval.pipeline import Scored
from records import Claim, Document, Passage, Verdict, write_jsonl

PATH = Path(__file__).parents[2] / "benchmarks/nli_agreement.py"


def scored(name: str, wrong: int) -> Scored:
    """Three claims, of which the passage has the first; the verdict on one failed."""
    texts = ["Ann painted boats.", "Bob wrote operas.", "Eve sold lamps."]
    labels = ["S", "NS", "NS"]
    claims = [
        Claim(id=f"c{place}", text=text, label=label)
        for place, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    verdicts = [
        Verdict(claim=claim.id, assessor="nli", label="supported", p=[0.9, 0.2, 0.1][place])
        if place != wrong
        else Verdict(claim=claim.id, assessor="nli", label="failed", reason="no answer")
        for place, claim in enumerate(claims)
    ]
    return Scored(
        document=Document(id=name, topic=name, text=" ".join(texts)),
        claims=claims,
        selections=[],
        passages=[Passage(id="p", text="Ann painted many boats.")],
        verdicts=verdicts,
        core_verdicts=[],
        scores=[],
    )


def test_overlap_is_judged_on_the_claims_that_the_verifier_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("nli_agreement", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for run in ("one", "other"):
        # One document gives no interval and no correlation.
        write_jsonl(tmp_path / run / "scored.jsonl", [scored("a", wrong=2)])
    files = [str(tmp_path / run / "scored.jsonl") for run in ("one", "other")]
    monkeypatch.setattr("sys.argv", ["nli_agreement.py", *files])
    module.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    for line in lines:
        assert "balanced accuracy 1.000, Spearman –" in line
        assert line.endswith("2 claims of 1 documents, 1 claims skipped")
