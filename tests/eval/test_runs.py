"""The list of runs: what is in the folders, two runs side by side, and results as a frame."""

import math
import os

import pytest

from eval.commands import runs
from eval.commands.score import main as score_main
from eval.decompose.given import Given
from eval.pipeline import Pipeline, Scored
from eval.run.run import Run
from eval.verify.labels import Labels
from records import (
    Claim,
    Document,
    UserError,
    read_frame,
    read_records,
    read_results,
    write_jsonl,
)

CONFIG = """
pipeline:
  decompose: {class_path: eval.decompose.given.Given}
  verify: [{class_path: eval.verify.labels.Labels}]
"""
TRAINING = """
name: small/{name}
export_to: checkpoints/{name}
model: {{class_path: train.unli.Unli, init_args: {{monitor: dev/macro/mse}}}}
trainer: {{max_steps: 4}}
"""


def score(labels, output, *more):
    """A run of ``score`` over a text for each string, which has a label for each claim."""
    documents = [
        Document(
            **{"id": str(i), "topic": f"Ann {i}", "text": "x."},
            claims=[Claim(id=str(n), text=f"x{n}", label=one) for n, one in enumerate(own.split())],
        )
        for i, own in enumerate(labels)
    ]
    write_jsonl("documents.jsonl", documents)
    given = ["--config", "config.yaml", "--documents", "documents.jsonl", "--output", str(output)]
    assert score_main([*given, *more]) == 0


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with two runs of ``score``, the one of people done before the one of films."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    score(["S NS", "S S S NS"], "runs/people")
    score(["S", "NS", "S NS"], "runs/films", "--domain", "films", "--pipeline.gamma", "3")
    for at, name in enumerate(("people", "films")):
        os.utime(f"runs/{name}/results.json", (at, at))
    return tmp_path


def training(here, name, rows, exported):
    """What ``train fit`` leaves: its configuration, its curves, and at its end a checkpoint."""
    folder = here / f"runs/train/small/{name}"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(TRAINING.format(name=name))
    (folder / "metrics.csv").write_text("\n".join(["dev/mse,step", *rows, ""]))
    checkpoint = here / f"checkpoints/{name}/component.json"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_text("{}")
    began = (folder / "config.yaml").stat().st_mtime
    os.utime(checkpoint, (began + 1 if exported else began - 1,) * 2)


def listed(capsys, *arguments):
    """Cells of the list's rows."""
    assert runs.main(list(arguments)) == 0
    lines = capsys.readouterr().out.split("\n\n")[0].splitlines()
    return [[part.strip() for part in line.split("  ") if part.strip()] for line in lines[1:]]


def test_runs_are_listed_by_time_with_their_figures(here, capsys):
    assert listed(capsys) == [
        ["runs/people", "score", "1970-01-01 00:00", "finished", "2", "factual_precision 0.625"],
        ["runs/films", "score", "1970-01-01 00:00", "finished", "3", "factual_precision 0.500"],
    ]
    kept = ("scored.jsonl", "results.json")
    assert all(
        {p.name for p in (here / "runs" / n).iterdir()} == {*kept} for n in ("people", "films")
    )


def test_a_run_that_was_killed_is_unfinished(here, capsys):
    pipeline = Pipeline(Given(), [Labels()])
    documents = read_records("documents.jsonl", Document)

    def work(some):
        if some[0].id == "2":
            raise KeyboardInterrupt
        return pipeline.score(some)

    with pytest.raises(KeyboardInterrupt), Run("score", pipeline, {}, "runs/killed") as run:
        run.process("scored", work, documents, Scored, chunk=1)
    (journal,) = (here / "runs/killed").glob(".*.partial.jsonl")
    whole = journal.read_bytes()
    for torn in (b'{"id": "usage of the doc', '{"documents": ["José'.encode()[:-1]):
        journal.write_bytes(whole + torn)
        *_, last = listed(capsys)
        assert (last[0], last[1], *last[3:]) == ("runs/killed", "–", "unfinished", "2", "–")


def test_a_training_is_told_by_the_best_value_of_its_monitor(here, capsys):
    training(here, "unli", ["0.3,1", "nan,2", "0.1,3", "0.2,4"], exported=True)
    training(here, "again", ["0.3,1"], exported=False)
    found = {row[0]: row[3:] for row in listed(capsys, "runs", "--where", "command=train fit")}
    assert found == {
        "runs/train/small/unli": ["finished", "–", "dev/mse 0.100 at step 3"],
        "runs/train/small/again": ["unfinished", "–", "dev/mse 0.300 at step 1"],
    }


def test_the_list_is_narrowed_by_fields(here, capsys):
    training(here, "unli", ["0.3,1"], exported=True)

    def names(*fields):
        chosen = [part for field in fields for part in ("--where", field)]
        return [row[0].removeprefix("runs/") for row in listed(capsys, *chosen)]

    assert names("domain=films") == ["films"]
    assert names("command=score") == ["people", "films"]
    assert names("command=sco") == names("state=unfinished") == []
    assert names("metric=dev/mse") == ["train/small/unli"]
    assert names("metric=factscore", "domain=texts") == ["people"]
    assert listed(capsys, "--where", "metric=judged")[0][-1] == "judged 6.000"


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
    said = capsys.readouterr().out
    assert "0 results are in both runs" in said
    assert runs.main(["--against", "runs/films", "runs/films"]) == 0
    assert "No differences in configuration, content of files" in capsys.readouterr().out


def test_results_are_a_frame(here):
    (empty := here / "empty").mkdir()
    frame = read_frame("runs")
    own = read_results("runs/people/results.json").results
    assert len(frame[frame["run"] == "runs/people"]) == len(own)
    assert set(frame["command"]) == {"score"}
    assert set(frame["config_hash"]) == {
        read_results(f"runs/{name}/results.json").provenance["config_hash"]
        for name in ("people", "films")
    }
    one = read_frame("runs/films/results.json").set_index("metric")
    assert one.loc["factual_precision", "value"] == 0.5
    assert one.loc["factual_precision", "low"] <= 0.5 <= one.loc["factual_precision", "high"]
    assert math.isnan(one.loc["judged", "low"])
    with pytest.raises(UserError, match=r"no results\.json"):
        read_frame(empty)
