"""Results of several runs as a frame."""

import math

import pytest

from eval.commands.score import main as score_main
from records import (
    Claim,
    Document,
    UserError,
    read_frame,
    read_results,
    write_jsonl,
)

CONFIG = """
pipeline:
  decompose: {class_path: eval.decompose.given.Given}
  verify: [{class_path: eval.verify.labels.Labels}]
"""


def score(labels, output, *more):
    """A run of ``score`` over a text for each string, which has a label for each claim."""
    documents = [
        Document(
            **{"id": str(i), "topic": f"Ann {i}", "text": "x."},
            claims=[
                Claim(id=str(n), text=f"x{n}", label=entry)
                for n, entry in enumerate(element.split())
            ],
        )
        for i, element in enumerate(labels)
    ]
    write_jsonl("documents.jsonl", documents)
    rows = ["--config", "config.yaml", "--documents", "documents.jsonl", "--output", str(output)]
    assert score_main([*rows, *more]) == 0


@pytest.fixture
def run_folders(tmp_path, monkeypatch):
    """A folder with two runs of ``score``, the one of people done before the one of films."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    score(["S NS", "S S S NS"], "runs/people")
    score(["S", "NS", "S NS"], "runs/films", "--domain", "films", "--pipeline.gamma", "3")
    return tmp_path


def test_results_are_a_frame(run_folders):
    (empty := run_folders / "empty").mkdir()
    frame = read_frame("runs")
    results = read_results("runs/people/results.json").results
    assert len(frame[frame["run"] == "runs/people"]) == len(results)
    assert set(frame["command"]) == {"score"}
    assert set(frame["config_hash"]) == {
        read_results(f"runs/{name}/results.json").provenance["config_hash"]
        for name in ("people", "films")
    }
    first = read_frame("runs/films/results.json").set_index("metric")
    assert first.loc["factual_precision", "value"] == 0.5
    assert first.loc["factual_precision", "low"] <= 0.5 <= first.loc["factual_precision", "high"]
    assert math.isnan(first.loc["judged", "low"])
    with pytest.raises(UserError, match=r"no results\.json"):
        read_frame(empty)
