"""What the robustness experiment says before it asks anybody, and what it leaves out."""

import json
from pathlib import Path

import pytest
import yaml

from eval.commands.experiment import EXPERIMENTS, build_parser, main
from eval.decompose.sentences import Sentences
from eval.experiments.robustness.robustness import Robustness
from eval.pipeline import Pipeline
from eval.report.render import terminal_summary
from eval.run.run import Run
from eval.verify.labels import Labels
from records import UserError, write_jsonl
from tests.eval.test_robustness import KINDS, TOPICS, appended, cut_after, stages, texts


@pytest.fixture
def config(tmp_path, monkeypatch, relation, unli):
    monkeypatch.chdir(tmp_path)
    for kind in KINDS:
        write_jsonl(f"{kind}.jsonl", texts(kind))
    write_jsonl("curve.jsonl", appended())
    passages = [{"id": n, "title": n, "text": f"{n} won. It rained."} for n in TOPICS]
    write_jsonl("passages.jsonl", passages)
    own = {
        "texts": {kind: [f"{kind}.jsonl"] for kind in KINDS},
        "curves": {"appended": ["curve.jsonl"]},
        "controls": ["untrained"],
        **stages(relation, unli),
    }
    return written({"experiment": own})


def written(content):
    Path("config.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return content


def dry_run(capsys, *options):
    main(["robustness", "--config", "config.yaml", "--output", "run", "--dry_run", *options])
    return capsys.readouterr().out.splitlines()


def rows_of(lines):
    """Stage to the numbers of its row."""
    cut = [line.split() for line in lines[lines.index("") :] if line and line[-1].isdigit()]
    return {" ".join(one[:-3]) or "all": [int(n.replace(",", "")) for n in one[-2:]] for one in cut}


def test_a_dry_run_says_what_is_compared_and_asks_nobody(config, capsys, monkeypatch):
    monkeypatch.setattr("eval.models.encoder.Encoder._forward", None)  # whoever asks, fails
    lines = dry_run(capsys)
    words = [" ".join(line.split()) for line in lines]
    assert words[:18] == [
        "texts normal x 3 on 3 topics, 0 with claims, 3 with gold; often 1; rare 2",
        "texts normal y 3 on 3 topics, 0 with claims, 3 with gold; often 1; rare 2",
        "texts info x 3 on 3 topics, 0 with claims, 3 with gold; often 1; rare 2",
        "texts info y 3 on 3 topics, 0 with claims, 3 with gold; often 1; rare 2",
        "curve appended 9 texts, k = 0, 2",
        "metric nli Sentences → BM25 → NLI",
        "metric bare Sentences → Given → NLI",
        "text metric labels",
        "defence none",
        "defence core",
        "defence untrained, a control",
        "defence page",
        "defence recall",
        "defence robust core + page + recall",
        "defence robust - core page + recall",
        "defence robust - page core + recall",
        "defence robust - recall core + page",
        "done 0 of 21 texts",
    ]
    assert "21 documents, about 66 (nli, none) claims" in lines[-1]
    assert not Path("run").exists()


def test_its_pairs_are_at_least_those_that_the_run_asks_for(config, capsys, monkeypatch):
    found = rows_of(dry_run(capsys))
    asked = {}

    def forward(self, inputs, own=None):
        asked[self.expected] = asked.get(self.expected, 0) + len(inputs)
        yield from FORWARD(self, inputs)

    from eval.models.encoder import Encoder

    FORWARD = Encoder._forward
    monkeypatch.setattr(Encoder, "_forward", forward)
    main(["robustness", "--config", "config.yaml", "--output", "run"])
    verified = sum(n for stage, (n, _) in found.items() if "NLI" in stage)
    # What is verified is known; what is selected depends on what the models say.
    assert 20 < verified <= asked["relation"] <= found["all"][0]
    capsys.readouterr()
    assert "run         run is finished" in dry_run(capsys)


def test_what_a_cut_run_had_done_and_a_cache_knows_is_not_counted(config, capsys, monkeypatch):
    whole = rows_of(dry_run(capsys))["all"]
    run = ["robustness", "--config", "config.yaml", "--output", "run"]
    with monkeypatch.context() as cut:
        cut.setattr(Run, "process", cut_after(5))
        with pytest.raises(KeyboardInterrupt):
            main(run)
    lines = dry_run(capsys)
    assert "done        4 of 21 texts, by an interrupted run" in lines
    some = rows_of(lines)["all"]
    assert some[0] < whole[0]
    main(run)
    capsys.readouterr()
    # Another run of the same texts: what has a cache is known.
    again = dry_run(capsys, "--experiment.seed", "3", "--output", "other")
    known = rows_of(again)
    nli = next(numbers for stage, numbers in known.items() if "NLI" in stage)
    assert nli[0] == 0 < nli[1]


def test_what_is_missing_is_a_line_each(config, capsys):
    content = json.loads(json.dumps(config))
    own = content["experiment"]
    own["texts"]["info"] = ["nowhere.jsonl"]
    own["metrics"]["nli"]["verify"][0]["init_args"]["entailment"]["init_args"]["checkpoint"] = "no"
    own["training_logs"] = {"unli": "logs/unli"}
    written(content)
    with pytest.raises(UserError, match=r"^3 inputs missing, see above; also: no: "):
        dry_run(capsys)
    assert [line.partition(" (")[0] for line in capsys.readouterr().out.splitlines()] == [
        "missing     logs/unli: not found",
        "missing     no: not found",
        "missing     nowhere.jsonl: not found",
    ]


def test_every_experiment_has_a_dry_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_jsonl("a.jsonl", [{"reference": "Ann won.", "claim": "Ann won.", "annotations": []}])
    arguments = ["lss_lengths", "--output", "run", "--experiment.files", "{train: a.jsonl}"]
    main([*arguments, "--dry_run"])
    found = capsys.readouterr().out
    assert found.splitlines()[:2] == [
        "reads       a.jsonl",
        "uses no language model; the number of calls is known when it runs",
    ]
    assert not Path("run").exists()


def test_jsonargparse_knows_the_type_of_every_option_of_an_experiment():
    for name in EXPERIMENTS:
        actions = build_parser(name)._actions
        assert not [a.dest for a in actions if "Unvalidated" in str(getattr(a, "_typehint", ""))]


# What is left out


def skipped_of(given, capsys, **options):
    metrics = {"m": Pipeline(Sentences(), [Labels()])}
    file = Robustness(given, metrics, **options).run(Path("run"), {"given": str(options)})
    err = [line for line in capsys.readouterr().err.splitlines() if "document/s" not in line]
    assert [f"skipped {line}" for line in file.provenance["skipped"]] == err
    lines = terminal_summary(Robustness.page, file).splitlines()
    assert [line for line in lines if line.startswith("Skipped ")] == [
        f"S{line[1:]}." for line in err
    ]
    return err


def test_whatever_is_asked_for_and_skipped_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_jsonl("normal.jsonl", texts("normal"))
    write_jsonl("info.jsonl", texts("info", ("Ann Lee", "Bob Ray")))
    write_jsonl("far.jsonl", texts("info", ("Dee Fox",)))
    given = {"normal": ["normal.jsonl"], "info": ["info.jsonl"], "far": ["far.jsonl"]}
    curve = [row for row in appended() if row["id"] != "Ann Lee-2"]
    write_jsonl("curve.jsonl", curve)
    (tmp_path / "empty").mkdir()
    found = skipped_of(
        given,
        capsys,
        curves={"added": ["curve.jsonl"]},
        training_logs={"unli": "empty"},
        by=["group", "bin"],
    )
    assert found == [
        "skipped pairing of `far` texts: 0 of their 1 topics have `normal` texts, so means over "
        "all texts are compared",
        "skipped 1 of 3 texts of curve added: they lack some k of 0, 2",
        "skipped training curve unli: empty has no metrics.csv",
    ]


def test_kinds_that_the_drawn_topics_do_not_have_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    topics = [f"T{n}" for n in range(12)]
    claims = [{"id": "c", "text": "x", "label": "S"}]
    rows = [{"topic": t, "kind": "normal", "text": "x", "claims": claims} for t in topics]
    rows += [{"topic": t, "kind": "info", "text": "y", "claims": claims} for t in topics[:8]]
    rows += [{"topic": t, "kind": "rare", "text": "z"} for t in ("U1", "U2")]
    write_jsonl("a.jsonl", rows)
    experiment = Robustness(["a.jsonl"], {"m": Pipeline(Sentences(), [Labels()])}, topics=9)
    own = {d.topic for d in experiment.documents() if d.kind == "info"}
    assert own == {*topics[:8]}  # those that two kinds have come first
    assert capsys.readouterr().err.splitlines() == [
        f"skipped `info` on {9 - len(own)} of the 9 drawn topics: no text",
        "skipped pairing of `rare` texts: 0 of their 2 topics have `normal` texts, so means over "
        "all texts are compared",
    ]
