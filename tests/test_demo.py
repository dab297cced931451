"""What `make demo` shows: which metrics order honest texts, and what Core alone lets pass."""

import subprocess
from pathlib import Path

import pytest

from records import read_results

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_demo_metric_that_compares_years_orders_honest_texts_and_core_alone_lets_padding_pass():
    subprocess.run(["make", "demo"], cwd=ROOT, check=True)
    file = read_results(ROOT / "runs/demo/results.json")
    whole = [r for r in file.results if (r.generator, r.group, r.bin) == ("all", "all", "all")]
    order = {(r.assessor, r.selection): r.value for r in whole if r.metric == "order"}
    # Only a metric that compares years orders texts whose falsehoods use years of the page.
    assert order["NLI precision, slots", "none"] > order["word test", "none"] + 0.2
    inflation = {
        (r.assessor, r.selection, r.kind): r.value for r in whole if r.metric == "excess_inflation"
    }
    padded = {
        name: inflation["NLI precision, slots", name, "padded"]
        for name in ("none", "core", "robust")
    }
    assert padded["core"] > padded["none"] + 0.1
    assert padded["robust"] < padded["core"]
    # The judge can tell most true claims.
    honest = {(r.assessor, r.metric): r.value for r in whole if r.kind == "ladder"}
    assert honest["NLI precision", "supported_if_true"] >= 0.85
    assert honest["NLI precision, slots", "supported_if_false"] <= 0.2
