"""Two runs side by side, and results as a frame."""

import math

import pytest

from eval.commands import runs
from eval.commands.score import main as score_main
from eval.report.comparison import compare_runs
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
def here(tmp_path, monkeypatch):
    """A folder with two runs of ``score``, the one of people done before the one of films."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    score(["S NS", "S S S NS"], "runs/people")
    score(["S", "NS", "S NS"], "runs/films", "--domain", "films", "--pipeline.gamma", "3")
    return tmp_path


def test_two_runs_stand_side_by_side(here, capsys):
    score(["S NS", "S S"], "runs/other", "--pipeline.gamma", "3")
    capsys.readouterr()
    assert runs.main(["--against", "runs/other", "runs/people"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line.split() for line in lines if line.startswith("factual_precision ")]
    assert (line[1], line[-1]) == ("0.750", "+0.125")
    (line,) = [line.split() for line in lines if line.startswith("judged ")]
    assert line[1:] == ["4.000", "6.000", "-2.000"]
    (gamma,) = [line.split() for line in lines if line.startswith("config.pipeline.gamma")]
    assert gamma[1:] == ["3.0", "10"]
    changed = [line.split()[0] for line in lines if line.startswith(("config", "data", "versions"))]
    assert changed == ["config.pipeline.gamma", "data.documents.jsonl"]


def test_runs_of_two_domains_have_no_result_in_common(here, capsys):
    assert runs.main(["--against", "runs/films", "runs/people"]) == 0
    out = capsys.readouterr().out
    assert "0 results are in both runs" in out
    assert runs.main(["--against", "runs/films", "runs/films"]) == 0
    assert "No differences in configuration, content of files" in capsys.readouterr().out


def test_results_are_a_frame(here):
    (empty := here / "empty").mkdir()
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


def test_compared_runs_are_a_frame_with_difference_interval_and_p(here):
    score(["S S", "S S", "S S", "S NS"], "runs/a")
    score(["S NS", "S NS", "NS NS", "S NS"], "runs/b")
    (row,) = compare_runs("runs/a", "runs/b").to_dict("records")
    # Differences 0.5, 0.5, 1, 0: mean 0.5, sd 0.408, t = 2.449 with 3 degrees of freedom.
    assert (row["n"], row["a"], row["b"], row["difference"]) == (4, 0.875, 0.375, 0.5)
    assert row["low"] <= 0.5 <= row["high"]
    assert row["p"] == row["p_holm"] == pytest.approx(0.0917, abs=1e-3)


def test_two_folders_without_against_are_an_error_that_names_it():
    with pytest.raises(UserError, match=r"--against A B`, got runs/a runs/b"):
        runs.main(["runs/a", "runs/b"])


def test_unchanged_results_are_hidden_and_p_is_first(here, capsys):
    score(["S NS", "S S S S"], "runs/other")
    capsys.readouterr()
    assert runs.main(["--against", "runs/other", "runs/people"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["p", "p,"]
    assert not [line for line in lines if line.startswith("judged ")]
    assert any("unchanged results are not shown" in line for line in lines)
