"""What `make demo` shows: which metrics order honest texts, and what Core alone lets pass."""

import subprocess
from pathlib import Path

import pytest

from records import read_results

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_demo_metrics_with_a_judge_order_honest_texts_and_core_alone_lets_padding_pass():
    subprocess.run(["make", "demo"], cwd=ROOT, check=True)
    file = read_results(ROOT / "runs/demo/results.json")
    whole = [r for r in file.results if (r.generator, r.group, r.bin) == ("all", "all", "all")]
    order = {(r.assessor, r.selection): r.value for r in whole if r.metric == "order"}
    judged = [order[metric, "none"] for metric in ("NLI precision, slots", "NLI precision")]
    assert judged[0] > judged[1] > order["word test", "none"]
    assert judged[1] >= 0.4
    inflation = {
        (r.assessor, r.selection, r.kind): r.value for r in whole if r.metric == "excess_inflation"
    }
    padded = {
        name: inflation["NLI precision", name, "padded"] for name in ("none", "core", "robust")
    }
    assert padded["core"] > padded["none"] + 0.1
    assert padded["robust"] < padded["core"]
    # The judge can tell most true claims.
    honest = {(r.assessor, r.metric): r.value for r in whole if r.kind == "ladder"}
    assert honest["NLI precision", "supported_if_true"] >= 0.85
    assert honest["NLI precision", "supported_if_false"] < honest["word test", "supported_if_false"]
