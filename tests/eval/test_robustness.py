"""The robustness experiment and the `core` command with tiny real checkpoints."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from eval.commands import core as core_command
from eval.commands.experiment import main
from eval.decompose.sentences import Sentences
from eval.defences import Defence
from eval.experiments.experiment import half_of
from eval.experiments.robustness.robustness import Robustness
from eval.pipeline import Pipeline
from eval.run.run import Run
from eval.select.controls import DistinctWords, RandomDrop
from eval.verify.labels import Labels
from records import Claim, Document, UserError, Verdict, read_results, write_jsonl

ROOT = Path(__file__).parents[2]
ENTAILMENT = "eval.models.encoder.Entailment"
CORE = "eval.select.core.Core"
UNLI = "eval.models.encoder.Unli"


KINDS = {
    "normal": "{topic} was a painter. {topic} won. {topic} was born in Rome.",
    "info": "{topic} lived. {topic} was.",
}
TOPICS = ("Ann Lee", "Bob Ray", "Cy Poe")
HONEST = {"x": 0.2, "y": 0.5, "z": 1.0}  # generator to the gold F1 of its texts
GOLD = {"precision": 0.5, "recall": 0.5, "k": 4, "source": "construction"}
COLUMNS = ("none", "core", "untrained", "page", "recall", "robust")
COLUMNS += tuple(f"robust - {name}" for name in ("core", "page", "recall"))


def texts(kind, topics=TOPICS, **more):
    for number, topic in enumerate(topics):
        for generator, f1 in HONEST.items() if kind == "normal" else (("x", 0.0), ("y", 0.0)):
            yield {
                "id": f"{kind}-{number}-{generator}",
                "topic": topic,
                "text": KINDS[kind].format(topic=topic) + f" By {generator}.",
                "generator": generator,
                "group": "A" if number else "B",
                "bin": "rare" if number else "often",
                "gold": GOLD | {"f1": f1},
                **more,
            }


def appended():
    """Clean twins, and corrupted texts with k sentences behind."""
    for topic in TOPICS:
        yield {"id": topic, "topic": topic, "kind": "clean", "text": f"{topic} won. {topic} was."}
        for k in (0, 2):
            text = f"{topic} lost. {topic} was." + " It is." * k
            row = {"id": f"{topic}-{k}", "topic": topic, "kind": "corrupted", "text": text}
            yield row | {"clean": topic, "k": k}


def stages(relation, unli):
    options = {"checkpoint": str(relation), "cache": "answers.sqlite"}
    entailment = {"class_path": ENTAILMENT, "init_args": options}
    sentences = {"class_path": "eval.decompose.sentences.Sentences"}
    passages = {"passages": "passages.jsonl", "k": 1}
    retrieve = {"class_path": "eval.retrieve.bm25.BM25", "init_args": passages}
    nli = {"class_path": "eval.verify.nli.NLI", "init_args": {"entailment": entailment}}
    core_options = {
        "entailment": entailment,
        "unli": {"class_path": UNLI, "init_args": {"checkpoint": str(unli)}},
        "bleached": ["{topic} is someone."],
    }
    uniform = {"entailment": entailment, "weighting": "uniform"}
    return {
        "metrics": {
            "nli": {"decompose": sentences, "retrieve": retrieve, "verify": [nli]},
            "bare": {"decompose": sentences, "verify": [nli]},
        },
        "defences": {
            "core": {"select": {"class_path": CORE, "init_args": core_options}},
            "untrained": {"select": {"class_path": CORE, "init_args": uniform}},
            "page": {"wrap_retrieve": {"class_path": "eval.retrieve.titles.TopicPage"}},
            "recall": {"score": "f1_at_k", "k": 2},
        },
        "stacks": {"robust": ["core", "page", "recall"]},
        "leave_one_out": ["robust"],
    }


@pytest.fixture
def config(tmp_path, monkeypatch, relation, unli):
    monkeypatch.chdir(tmp_path)
    for kind in KINDS:
        write_jsonl(f"{kind}.jsonl", texts(kind))
    write_jsonl("curve.jsonl", appended())
    probes = [{"id": f"p{n}", "topic": t, "text": f"{t} won."} for n, t in enumerate(TOPICS)]
    write_jsonl("probes.jsonl", [p | {"kind": "probe", "probe": "true single"} for p in probes])
    passages = [{"id": topic, "title": topic, "text": f"{topic} won."} for topic in TOPICS]
    write_jsonl("passages.jsonl", passages)
    (tmp_path / "logs/version_0").mkdir(parents=True)
    (tmp_path / "logs/version_0/metrics.csv").write_text("step,train/loss\n1,0.5\n")
    content = {
        "experiment": {
            "texts": {kind: [f"{kind}.jsonl"] for kind in KINDS},
            "curves": {"appended": ["curve.jsonl"]},
            "controls": ["untrained"],
            "probes": ["probes.jsonl"],
            "training_logs": {"unli": "logs"},
            **stages(relation, unli),
        }
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def run(config, output):
    main(["robustness", "--config", str(config), "--output", output])
    return (Path(output) / "results.json").read_bytes()


def values(output):
    return [result.value for result in read_results(f"{output}/results.json").results]


def test_an_interrupted_grid_resumes_byte_identical(config, monkeypatch, capsys):
    first = run(config, "one")
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2:] == ["one/results.json", "one/report.html"]
    file = read_results("one/results.json")
    actual = {
        (r.metric, r.assessor, r.selection, r.kind, r.generator, r.group, r.bin)
        for r in file.results
    }
    whole = ("all", "all", "all")
    for metric in ("nli", "bare"):
        for defence in COLUMNS:
            if metric == "nli":  # without evidence there is no score
                assert ("excess_inflation", metric, defence, "info", *whole) in actual
                assert ("asr", metric, defence, "info", *whole) in actual
            assert ("certificate", metric, defence, "all", *whole) in actual
            is_precision = defence in ("none", "core", "untrained", "page", "robust - recall")
            score = "factual_precision" if is_precision else "f1_at_k"
            assert (score, metric, defence, "normal", *whole) in actual
            assert ("break_even", metric, defence, "appended", *whole) in actual
            if defence != "none" and metric == "nli":
                assert ("cost", metric, defence, "normal", *whole) in actual
        for stratum in (("x", "all", "all"), ("all", "A", "all"), ("all", "all", "rare")):
            assert ("factual_precision", metric, "core", "info", *stratum) in actual
    assert file.provenance["controls"] == ["untrained", "word test"]
    rows = [json.loads(line) for line in Path("one/texts.jsonl").read_text().splitlines()]
    assert [row["document"]["kind"] for row in rows] == ["normal"] * 9 + ["info"] * 6
    selections = rows[0]["metrics"]["nli"]["selections"]
    assert {*selections} == {*COLUMNS} - {"none", "page", "recall", "robust - core"}
    assert run(config, "one") == first, "it is finished"
    monkeypatch.setattr(Run, "process", cut_after(5))
    with pytest.raises(KeyboardInterrupt):
        run(config, "two")
    monkeypatch.setattr(Run, "process", DOCUMENTS)
    assert run(config, "two") == first, "it goes on from what was done"
    for name in (
        "texts.jsonl",
        "curves.jsonl",
        "probes.jsonl",
        "tables.md",
        "tables.csv",
        "report.html",
    ):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()
    Path("answers.sqlite").unlink()
    recomputed = run(config, "three")
    if torch.cuda.is_available():  # where values are equal to 1e-4
        assert values("three") == pytest.approx(values("one"), abs=1e-4)
    else:
        assert recomputed == first


DOCUMENTS = Run.process


def cut_after(count):
    """Documents two a chunk, until so many are begun."""
    started = 0

    def documents(self, part, work, to_process, record, chunk=2):
        def until(some):
            nonlocal started
            started += len(some)
            if started > count:
                raise KeyboardInterrupt
            return work(some)

        return DOCUMENTS(self, part, until, to_process, record, chunk=2)

    return documents


def test_k_0_and_clean_twin_are_separate_rows(config):
    run(config, "one")
    appended = [r for r in read_results("one/results.json").results if r.kind == "appended"]
    variants = {r.variant for r in appended if r.metric == "factual_precision"}
    assert variants == {"clean", 0, 2}
    assert {r.variant for r in appended if r.metric == "gain"} == {0, 2}


# What the options choose


def robustness(texts, **options):
    metrics = {"m": Pipeline(Sentences(), [Labels()])}
    return Robustness(texts, metrics, **options)


def documents_of(rows, **options):
    write_jsonl("texts.jsonl", rows)
    return robustness(["texts.jsonl"], **options).documents()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_generator_keeps_its_texts_of_a_topic(folder):
    pairs = [(topic, generator) for topic in ("Ann", "Bob") for generator in ("gpt", "llama")]
    common = {"kind": "normal", "bin": "rare"}
    rows = [
        common | {"topic": topic, "generator": generator, "text": f"{n}"}
        for topic, generator in pairs
        for n in range(2)
    ]
    actual = documents_of(rows, per_topic=1)
    assert [(d.topic, d.generator) for d in actual] == pairs
    assert {(d.text, d.bin) for d in actual} == {("0", "rare")}
    assert len({d.id for d in actual}) == 4


def test_rows_of_a_different_kind_are_skipped_and_reported(folder, capsys):
    rows = [{"topic": "Ann", "kind": kind, "text": kind} for kind in ("normal", "repetitive")]
    write_jsonl("a.jsonl", [*rows, {"topic": "Bob", "kind": "repetitive", "text": "x"}])
    actual = robustness({"normal": ["a.jsonl"]}).documents()
    assert [(d.kind, d.text) for d in actual] == [("normal", "normal")]
    line = "skipped 2 `repetitive` rows of a.jsonl (the file is configured for `normal`)\n"
    assert capsys.readouterr().err == line
    with pytest.raises(UserError, match=r"a\.jsonl: no text of kind 'info'"):
        robustness({"normal": ["a.jsonl"], "info": ["a.jsonl"]}).documents()


def test_equal_ids_of_two_files_are_separate_texts_with_their_attacks(folder):
    for name in "ab":
        rows = [{"id": "1", "topic": "Ann", "kind": "normal", "text": name}]
        rows += [{"id": "2", "topic": "Ann", "kind": "info", "text": name, "clean": "1"}]
        write_jsonl(f"{name}.jsonl", rows)
    files = ["a.jsonl", "b.jsonl"]
    for texts in (files, {"normal": files, "info": files}):
        actual = robustness(texts).documents()
        assert len({d.id for d in actual}) == 4
        honest = {d.id: d.text for d in actual if d.kind == "normal"}
        made_of = [(honest[d.clean], d.text) for d in actual if d.kind == "info"]
        assert made_of == [("a", "a"), ("b", "b")]


def test_halves_of_the_topics_share_none_and_are_all(folder):
    rows = [{"topic": f"T{n}", "kind": "normal", "text": "x"} for n in range(11)]
    rows += [{"topic": f"T{n}", "kind": "info", "text": "y"} for n in range(11)]
    halves = [documents_of(rows, half=half) for half in ("tuning", "test")]
    topics = [{d.topic for d in half} for half in halves]
    assert not topics[0] & topics[1]
    assert len(topics[0] | topics[1]) == 11
    assert topics[0] == {f"T{n}" for n in range(11) if half_of(f"T{n}", 0) == "tuning"}
    for half in halves:
        kinds = {k: {d.topic for d in half if d.kind == k} for k in ("normal", "info")}
        assert kinds["normal"] == kinds["info"], "an attack is of the same topics"


def test_a_curve_needs_its_twins_and_something_corrupted(folder):
    normal = {"normal": ["normal.jsonl"]}
    write_jsonl("normal.jsonl", [{"topic": "Ann", "text": "x"}])
    clean = {"id": "t", "topic": "Ann", "kind": "clean", "text": "x"}
    broken = {"id": "c", "topic": "Ann", "kind": "corrupted", "text": "y", "clean": "t", "k": 0}
    for rows, message in (
        ([broken], "curves: added: no clean twin 't' in curve.jsonl"),
        ([clean], "curves: added: no row has `clean` and `k`"),
        ([clean, broken, broken | {"id": "d"}], "curves: added: 2 texts of 't' have k = 0; use"),
    ):
        write_jsonl("curve.jsonl", rows)
        experiment = robustness(normal, curves={"added": ["curve.jsonl"]})
        with pytest.raises(UserError, match=re.escape(message)):
            experiment.run(Path("run"), {})


def test_a_curve_is_of_the_topics_that_are_drawn(folder):
    write_jsonl("normal.jsonl", texts("normal"))
    write_jsonl("curve.jsonl", appended())
    options = {"curves": {"added": ["curve.jsonl"]}, "topics": 2}
    file = robustness({"normal": ["normal.jsonl"]}, **options).run(Path("run"), {})
    rows = [r for r in file.results if (r.metric, r.variant) == ("break_even", None)]
    assert {(row.kind, row.assessor) for row in rows} == {
        ("added", "m"),
        ("added", "word test"),
        ("added", "labels"),
    }
    written = Path("run/texts.jsonl").read_text()
    drawn = {json.loads(line)["document"]["topic"] for line in written.splitlines()}
    assert len(drawn) == 2
    write_jsonl("curve.jsonl", [r for r in appended() if r["topic"] not in drawn])
    with pytest.raises(UserError, match="curves: added: no text of the topics that are scored"):
        robustness({"normal": ["normal.jsonl"]}, **options).run(Path("other"), {})


class LastName:
    """Supports the claims with a word of the last generator."""

    judges_sets = False

    def __call__(self, documents, claims, passages):
        labels = {True: "supported", False: "not_supported"}
        return [
            [Verdict(claim=c.id, assessor="name", label=labels["z" in c.text]) for c in row]
            for row in claims
        ]


def test_two_equal_metrics_with_different_selectors_are_compared_with_their_own_scores(folder):
    write_jsonl("texts.jsonl", [row | {"kind": k} for k in KINDS for row in texts(k)])
    pipeline = Pipeline(Sentences(), [LastName()])
    chosen = {"m": DistinctWords(), "n": RandomDrop(DistinctWords())}
    defences = {"own": Defence(select_for=chosen)}
    experiment = Robustness(["texts.jsonl"], dict.fromkeys("mn", pipeline), defences=defences)
    run = experiment.run(Path("run"))
    orders = {(r.assessor, r.selection) for r in run.results if r.metric == "order_lost"}
    assert orders == {("m", "own"), ("n", "own")}


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
    with pytest.raises(UserError, match="a unli checkpoint"):
        core_command.main([*arguments, str(relation), "--bleached", '["{topic} is."]'])
    with pytest.raises(UserError, match="a relation checkpoint"):
        core_command.main([*arguments, str(unli), "--weighting", "uniform"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "--config", "{config}", "--documents", "x", "--output", "y"],
        ["experiment", "robustness", "--config", "{config}", "--output", "y"],
        ["experiment", "nothing"],
        ["report", "--run", "{config}.absent"],
    ],
)
def test_user_errors_exit_with_one_line_and_code_2(tmp_path, arguments):
    config = tmp_path / "c.yaml"
    config.write_text("unknown_key: 1\n")
    words = [word.format(config=config) for word in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "eval", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stderr.startswith("error: ")
