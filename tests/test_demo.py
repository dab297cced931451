"""What `make demo` shows: metrics are gamed without a defence, and not with Core."""

import subprocess
from pathlib import Path

import pytest

from records import read_results

ROOT = Path(__file__).parents[1]
RULED, REPEATED = "uninformative", "repetitive"


@pytest.mark.slow
def test_demo_metrics_are_gamed_without_core_and_not_with_core():
    subprocess.run(["make", "demo"], cwd=ROOT, check=True)
    file = read_results(ROOT / "runs/demo/results.json")
    whole = [r for r in file.results if (r.generator, r.group, r.bin) == ("all", "all", "all")]
    verdicts = {
        (r.assessor, r.selection, r.kind): r.verdict
        for r in whole
        if r.metric == "gain" and r.against is None
    }
    metrics = {assessor for assessor, *_ in verdicts} - {"labels"}
    for kind in (RULED, REPEATED):
        gamed = [metric for metric in metrics if verdicts[metric, "none", kind] == "gamed"]
        assert len(gamed) >= 2, kind
        assert not any(verdicts[metric, "core", kind] == "gamed" for metric in gamed), kind
        assert any(verdicts[metric, "random", kind] == "gamed" for metric in gamed), kind
    worst = {(r.assessor, r.selection): r.value for r in whole if r.metric == "worst_asr"}
    assert worst["NLI precision", "none"] >= 0.8
    assert worst["NLI precision", "robust"] <= 0.5
    even = {(r.assessor, r.selection): r.value for r in whole if r.metric == "break_even"}
    overtaken = [assessor for assessor in metrics if even[assessor, "none"] is not None]
    assert len(overtaken) >= 2
    assert all(even[assessor, "core"] is None for assessor in overtaken)
    kept = {r.kind: r.value for r in whole if (r.metric, r.selection) == ("kept_share", "core")}
    assert kept[RULED] <= 0.1
    assert kept[REPEATED] <= 0.25
    assert kept["normal"] >= 0.6
    # What was measured is a verifier that can tell: most true claims, few false ones.
    honest = {(r.assessor, r.metric): r.value for r in whole if r.kind == "normal"}
    assert honest["NLI precision", "supported_if_true"] >= 0.85
    assert honest["NLI precision", "supported_if_false"] <= 0.3
