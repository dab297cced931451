"""The robustness experiment and the `core` command with tiny real checkpoints."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from eval.commands import core as core_command
from eval.commands.experiment import main
from eval.commands.report import build_report
from eval.decompose.sentences import Sentences
from eval.experiments.robustness.robustness import Robustness
from eval.pipeline import Pipeline
from eval.verify.labels import Labels
from records import BadInput, Claim, Document, Generation, UserError, read_results, write_jsonl

ROOT = Path(__file__).parents[2]
ENTAILMENT = "eval.models.encoder.Entailment"
UNLI = "eval.models.encoder.Unli"


def generations():
    for topic in ("Ann Lee", "Bob Ray"):
        own = {"topic": topic, "group": "A", "bin": "rare"}
        yield Generation(**own, text=f"{topic} was a painter. {topic} won.", kind="normal")
        yield Generation(**own, text=f"{topic} lived. {topic} was.", kind="uninformative")


def pipeline(relation, unli):
    options = {"checkpoint": str(relation), "cache": "answers.sqlite"}
    entailment = {"class_path": ENTAILMENT, "init_args": options}
    return {
        "decompose": {"class_path": "eval.decompose.sentences.Sentences"},
        "select": {
            "class_path": "eval.select.core.Core",
            "init_args": {
                "entailment": entailment,
                "unli": {"class_path": UNLI, "init_args": {"checkpoint": str(unli)}},
                "bleached": ["{topic} is someone."],
            },
        },
        "retrieve": {
            "class_path": "eval.retrieve.bm25.BM25",
            "init_args": {"passages": "passages.jsonl", "k": 1},
        },
        "verify": [{"class_path": "eval.verify.nli.NLI", "init_args": {"entailment": entailment}}],
    }


@pytest.fixture
def config(tmp_path, monkeypatch, relation, unli, adversary):
    monkeypatch.chdir(tmp_path)
    write_jsonl("generations.jsonl", generations())
    write_jsonl("passages.jsonl", [{"id": "p", "title": "Ann Lee", "text": "Ann Lee won."}])
    (tmp_path / "logs/version_0").mkdir(parents=True)
    (tmp_path / "logs/version_0/metrics.csv").write_text("step,train/loss\n1,0.5\n")
    content = {
        "experiment": {
            "generations": ["generations.jsonl"],
            "pipeline": pipeline(relation, unli),
            "control": pipeline(relation, unli),
            "adversary": str(adversary),
            "appended": [0, 2],
            "max_new_tokens": 12,
            "targets": [{"kind": "normal", "at_least": 0.6}],
            "training_logs": {"unli": "logs"},
        }
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def run(config, output):
    main(["robustness", "--config", str(config), "--output", output])
    return (Path(output) / "results.json").read_bytes()


def test_the_experiment_writes_all_its_parts_and_can_go_on(config):
    first = run(config, "one")
    assert sorted(p.name for p in Path("one").iterdir()) == [
        "figures",
        "results.json",
        "samples.jsonl",
        "selections.jsonl",
        "tables.csv",
        "tables.md",
        "training",
    ]
    found = {
        (r.variant, r.kind, r.selection, r.group, r.bin, r.metric)
        for r in read_results("one/results.json").results
    }
    for kind in ("normal", "uninformative"):
        for components in ("trained", "untrained"):
            assert (components, kind, "core", "all", "all", "kept_share") in found
    assert ("trained", "sampled", "core", "all", "all", "kept_share") in found
    for stratum in (("A", "all"), ("all", "rare")):
        assert ("trained", "sampled", "core", *stratum, "kept_share") in found
        assert ("untrained", "normal", "none", *stratum, "factual_precision") in found
        assert (2, "corrupted", "none", *stratum, "factual_precision") not in found
    page = build_report("one").read_text()
    assert "By group and frequency" in page
    assert "frequency rare" in page
    Path("one/report.html").unlink()
    (sample, _) = map(json.loads, Path("one/samples.jsonl").read_text().splitlines())
    assert (sample["group"], sample["bin"]) == ("A", "rare")
    assert (2, "corrupted", "none", "all", "all", "factual_precision") in found
    assert (0, "corrupted", "core", "all", "all", "factual_precision") in found
    rows = [json.loads(line) for line in Path("one/selections.jsonl").read_text().splitlines()]
    assert {"text", "label", "selected", "weight", "reason"} <= set(rows[0]["claims"][0])
    assert run(config, "one") == first
    assert run(config, "two") == first
    Path("answers.sqlite").unlink()
    assert run(config, "three") == first


def test_appended_zero_is_the_text_itself(config):
    run(config, "one")
    values = {
        (r.kind, r.variant): r.value
        for r in read_results("one/results.json").results
        if r.metric == "factual_precision" and r.selection == "none" and r.bin == "all"
    }
    assert values["corrupted", 0] == values["normal", "trained"]


def test_an_absent_kind_is_the_users_mistake(config):
    with pytest.raises(UserError, match="no generation of kind 'repetitive'"):
        main(
            [
                "robustness",
                "--config",
                str(config),
                "--output",
                "o",
                "--experiment.kinds",
                '["repetitive"]',
            ]
        )


def texts_of(rows, **options):
    write_jsonl("texts.jsonl", rows)
    pipeline = Pipeline(Sentences(), [Labels()])
    return Robustness(["texts.jsonl"], pipeline, **options)._documents()


def test_each_generator_keeps_its_texts_of_a_topic(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"topic": topic, "kind": "normal", "generator": who, "text": f"{who} {n}", "bin": "rare"}
        for topic in ("Ann", "Bob")
        for who in ("gpt", "llama")
        for n in range(2)
    ]
    found = texts_of(rows, per_topic=1)
    assert [(d.topic, d.generator) for d in found] == [
        (topic, who) for topic in ("Ann", "Bob") for who in ("gpt", "llama")
    ]
    assert {(d.text.split()[1], d.bin) for d in found} == {("0", "rare")}
    assert len({d.id for d in found}) == 4


def test_a_text_of_no_kind_is_not_silently_a_normal_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"topic": "Ann", "kind": "normal", "text": "x"}, {"topic": "Bob", "text": "x"}]
    with pytest.raises(BadInput) as refused:
        texts_of(rows)
    (line,) = str(refused.value).splitlines()
    assert line.startswith("texts.jsonl:2: kind: field required; give one, e.g. normal")
    assert "--experiment.unnamed_kind" in line
    assert [d.kind for d in texts_of(rows, unnamed_kind="draft")] == ["normal", "draft"]
    # Another project's file, by its own field names.
    with pytest.raises(BadInput, match=r"texts\.jsonl:1: kind: field required"):
        texts_of([{"topic": "Ann", "output": "Ann won."}])
    (one,) = texts_of([{"topic": "Ann", "output": "Ann won."}], unnamed_kind="normal")
    assert (one.kind, one.text) == ("normal", "Ann won.")
    (own,) = texts_of([{"topic": "Ann", "output": "Ann won.", "kind": "info", "bin": "rare"}])
    assert (own.kind, own.bin) == ("info", "rare")


def test_core_command_keeps_every_claim(tmp_path, relation, unli):
    claims = [Claim(id=f"c{i}", text=t) for i, t in enumerate(["Ann won.", "Ann is.", "Ann won."])]
    source = tmp_path / "in.jsonl"
    write_jsonl(source, [Document(id="d", topic="Ann", text="Ann won.", claims=claims)])
    output = tmp_path / "out.jsonl"
    arguments = ["--claims", str(source), "--output", str(output), "--checkpoints"]
    core_command.main([*arguments, str(relation), str(unli), "--bleached", '["{topic} is."]'])
    (row,) = map(json.loads, output.read_text().splitlines())
    assert [claim["text"] for claim in row["claims"]] == ["Ann won.", "Ann is.", "Ann won."]
    for claim in row["claims"]:
        assert {"selected", "weight", "document_entailment", "reason"} <= set(claim)
    with pytest.raises(UserError, match="no unli checkpoint"):
        core_command.main([*arguments, str(relation), "--bleached", '["{topic} is."]'])
    with pytest.raises(UserError, match="no relation checkpoint"):
        core_command.main([*arguments, str(unli), "--weighting", "uniform"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "--config", "{config}", "--documents", "x", "--output", "y"],
        ["experiment", "robustness", "--config", "{config}", "--output", "y"],
        ["core", "--config", "{config}", "--claims", "x", "--checkpoints", "y", "--output", "z"],
        ["nothing"],
        ["experiment", "nothing"],
        ["report", "--run", "{config}.absent"],
    ],
)
def test_mistakes_end_with_one_line_and_code_2(tmp_path, arguments):
    config = tmp_path / "c.yaml"
    config.write_text("unknown_key: 1\n")
    words = [word.format(config=config) for word in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "eval", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stderr.startswith("error: ")
