"""``--limit`` of an experiment, and what the robustness experiment skips."""

import re
from pathlib import Path

import pytest
import yaml

from eval.commands.experiment import EXPERIMENTS, build_parser, main
from eval.decompose.sentences import Sentences
from eval.experiments.robustness.robustness import Robustness
from eval.pipeline import Pipeline
from eval.report.render import terminal_summary
from eval.verify.labels import Labels
from records import write_jsonl
from tests.eval.test_robustness import KINDS, TOPICS, appended, stages, texts


@pytest.fixture
def config(tmp_path, monkeypatch, relation, unli):
    monkeypatch.chdir(tmp_path)
    for kind in KINDS:
        write_jsonl(f"{kind}.jsonl", texts(kind))
    write_jsonl("curve.jsonl", appended())
    passages = [{"id": n, "title": n, "text": f"{n} won. It rained."} for n in TOPICS]
    write_jsonl("passages.jsonl", passages)
    options = {
        "texts": {kind: [f"{kind}.jsonl"] for kind in KINDS},
        "curves": {"appended": ["curve.jsonl"]},
        "controls": ["untrained"],
        **stages(relation, unli),
    }
    return written({"experiment": options})


def written(content):
    Path("config.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return content


def test_limit_processes_some_texts_and_the_next_run_resumes(config, capsys):
    arguments = ["robustness", "--config", "config.yaml", "--output", "run"]
    main([*arguments, "--limit", "2"])
    part, each, total = capsys.readouterr().out.splitlines()
    assert part == "part 'texts'"
    assert re.match(r"per document: [\d.]+ pairs, [\d.]+ s$", each)
    assert total.startswith("all 15 documents: ")
    assert not Path("run/results.json").exists()
    (journal,) = Path("run").glob(".texts.*")
    assert journal.read_text().count("\n") == 3  # two rows, and the end of their chunk
    main(arguments)
    assert Path("run/results.json").exists()
    capsys.readouterr()
    main([*arguments, "--limit", "2"])
    assert "pairs" not in capsys.readouterr().out  # the run is finished


def test_jsonargparse_knows_the_type_of_every_option_of_an_experiment():
    for name in EXPERIMENTS:
        actions = build_parser(name)._actions
        assert not [a.dest for a in actions if "Unvalidated" in str(getattr(a, "_typehint", ""))]


# What is left out


def skipped_of(texts, capsys, **options):
    metrics = {"m": Pipeline(Sentences(), [Labels()])}
    file = Robustness(texts, metrics, **options).run(Path("run"), {"given": str(options)})
    err = [line for line in capsys.readouterr().err.splitlines() if "document/s" not in line]
    assert [f"skipped {line}" for line in file.provenance["skipped"]] == err
    lines = terminal_summary(Robustness.page, file).splitlines()
    assert [line for line in lines if line.startswith("Skipped ")] == [
        f"S{line[1:]}." for line in err
    ]
    return err


def test_skipped_kinds_are_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_jsonl("normal.jsonl", texts("normal"))
    write_jsonl("info.jsonl", texts("info", ("Ann Lee", "Bob Ray")))
    write_jsonl("far.jsonl", texts("info", ("Dee Fox",)))
    files = {"normal": ["normal.jsonl"], "info": ["info.jsonl"], "far": ["far.jsonl"]}
    curve = [row for row in appended() if row["id"] != "Ann Lee-2"]
    write_jsonl("curve.jsonl", curve)
    (tmp_path / "empty").mkdir()
    actual = skipped_of(
        files,
        capsys,
        curves={"added": ["curve.jsonl"]},
        training_logs={"unli": "empty"},
        by=["group", "bin"],
    )
    assert actual == [
        "skipped 1 of 3 texts of curve added: they lack some k of 0, 2",
        "skipped verdict of 2 of 2 `far` texts: no `normal` text with `gold` and the same topic",
        "skipped training curve unli: empty has no metrics.csv",
        "skipped verdicts: the texts of kind 'normal' have fewer than three gold scores per topic, "
        "so they are no ladder (`data_builders ladders` writes one)",
    ]
