"""What `make demo` shows: metrics are gamed, and denied truths beat the stack of defences."""

import subprocess
from pathlib import Path

import pytest

from records import read_results

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_demo_metrics_are_gamed_and_the_stack_is_beaten_by_denied_truths():
    subprocess.run(["make", "demo"], cwd=ROOT, check=True)
    file = read_results(ROOT / "runs/demo/results.json")
    whole = [r for r in file.results if (r.generator, r.group, r.bin) == ("all", "all", "all")]
    verdicts = {
        (r.assessor, r.selection, r.kind): r.verdict
        for r in whole
        if r.metric == "excess_inflation"
    }
    metrics = {assessor for assessor, *_ in verdicts} - {"labels"}
    for kind in ("paraphrased", "denied_unseen"):
        assert verdicts["NLI precision", "none", kind] == "gamed", kind
    assert verdicts["NLI precision", "random", "paraphrased"] == "gamed"
    assert verdicts["NLI precision", "robust", "paraphrased"] != "gamed"
    assert verdicts["NLI precision", "robust", "denied_unseen"] == "gamed"
    order = {(r.assessor, r.selection): r.value for r in whole if r.metric == "order"}
    assert order["NLI precision", "none"] >= 0.5
    even = {(r.assessor, r.selection): r.value for r in whole if r.metric == "break_even"}
    overtaken = [assessor for assessor in metrics if even[assessor, "none"] is not None]
    assert len(overtaken) >= 2
    assert all(even[assessor, "core"] is None for assessor in overtaken)
    # What was measured is a verifier that can tell: most true claims, few false ones.
    honest = {(r.assessor, r.metric): r.value for r in whole if r.kind == "ladder"}
    assert honest["NLI precision", "supported_if_true"] >= 0.85
    assert honest["NLI precision", "supported_if_false"] <= 0.3
