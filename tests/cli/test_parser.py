"""A parser's error is one line: the configuration's line, the error and a suggestion."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from cli.command import run_command
from cli.parser import parse
from eval.commands.score import build_parser

GIVEN = "  decompose: {class_path: eval.decompose.given.Given}\n"
LABELS = "  verify: [{class_path: eval.verify.labels.Labels}]\n"
NLI = """\
  verify:
    - class_path: eval.verify.nli.NLI
      init_args:
        entailment:
          class_path: eval.models.encoder.Entailment
          init_args: {checkpoint: x, %s}
"""
FIT = """\
name: mine  # what lr is
model: {{class_path: {model}, init_args: {{base: x, {options}}}}}
data:
  class_path: train.data.RecordData
  init_args: {{train: x, dev: x, {data}}}
trainer: {{accelerator: cpu, {trainer}}}
"""
DEFAULTS = {
    "model": "train.unli.Unli",
    "options": "lr: 0.1",
    "data": "batch_size: 4",
    "trainer": "max_steps: 3",
}


@pytest.fixture
def error_of(monkeypatch, capsys):
    """The line on standard error of a command that exits with 2."""

    def run(*arguments):
        program, *rest = map(str, arguments)
        monkeypatch.setattr(sys, "argv", [program, *rest])
        with pytest.raises(SystemExit) as left:
            run_command(import_module(f"{program}.__main__").main)
        assert left.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return run


@pytest.mark.parametrize(
    ("stages", "line", "end"),
    [
        (GIVEN + LABELS + "  select: {class_path: eval.select.core.Coree}\n", 4,
         "has no attribute 'Coree'; did you mean Core?"),
        ("  decompose: {class_path: eval.decompose.sentenses.Sentences}\n" + LABELS, 2,
         "has no attribute 'sentenses'; did you mean sentences?"),
        (GIVEN + "  retrieve: {class_path: eval.retrieve.bm25.BM25, init_args: {kk: 2}}\n", 3,
         "Option 'kk' is not accepted; did you mean k?"),
        (GIVEN + NLI % "bach_size: 2", 8,
         "Option 'bach_size' is not accepted; did you mean batch_size?"),
        (GIVEN + NLI % "batch_size: many", 8, "Expected a <class 'int'>. Got value: many"),
        (GIVEN + LABELS + "  gama: 3\n", 4,
         "does not accept option 'gama'; did you mean gamma?"),
        (GIVEN + LABELS + "  select: {class_path: eval.verify.labels.Labels}\n", 4,
         "protocol Selector: expected eval.stages.Selector with `def __call__(self, documents: "
         "Sequence[Document], claims: Sequence[Sequence[Claim]]) -> list[list[Selection]]`"),
        ("  decompose: {class_path: eval.decompose.given.Given\n" + LABELS, 3,
         "line 3, column 9"),
    ],
)  # fmt: skip
def test_an_error_in_a_pipeline_has_its_line(stages, line, end, tmp_path, error_of):
    file = tmp_path / "my own.yaml"
    file.write_text(f"pipeline:\n{stages}")
    error = error_of("eval", "score", f"--config={file}", "--output", "x", "--documents", "x")
    assert error.startswith(f"error: {file}:{line}: ")
    assert error.endswith(end)


@pytest.mark.parametrize(
    ("changed", "line", "end"),
    [
        # An option that the class takes as ``**shared``
        ({"options": "schedul: 1"}, 2, "'schedul' is not accepted; did you mean schedule?"),
        ({"options": "optimizer: {class_path: torch.optim.SGDD}"}, 2, "did you mean SGD?"),
        ({"trainer": "max_step: 3"}, 6, "max_step'; did you mean max_steps?"),
    ],
)  # fmt: skip
def test_an_error_in_a_training_has_its_line(changed, line, end, tmp_path, error_of):
    file = tmp_path / "my.yaml"
    file.write_text(FIT.format(**DEFAULTS | changed))
    error = error_of("train", "fit", "--config", file)
    assert error.startswith(f"error: {file}:{line}: ")
    assert error.endswith(end)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("probabilty: 0.7", "'probabilty' is not accepted; did you mean probability?"),
        ("appended: [0, five]", "Expected a <class 'int'>. Got value: five"),
    ],
)
def test_an_error_in_a_dataset_has_its_line(text, end, tmp_path, error_of):
    file = tmp_path / "my.yaml"
    file.write_text(f"# the probability of a change, appended\noutput: data/x\n{text}\n")
    error = error_of("data_builders", "corruption", "--config", file)
    assert error.startswith(f"error: {file}:3: ")
    assert error.endswith(end)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("train fitt", "no command 'fitt'; expected one of: fit, rl, sweep, "),
        ("eval report", "the following arguments are required: run"),
        ("eval score --config /nowhere.yaml", 'Parser key "config": File does not exist: '),
        (
            "data_builders leads --sed 3",
            "unrecognized arguments: --sed 3; did you mean --seed?",
        ),
    ],
)
def test_an_error_in_the_command_line(arguments, error, error_of):
    assert error_of(*arguments.split()).startswith(f"error: {error}")


@pytest.mark.parametrize(
    ("option", "value", "parts"),
    [
        ("pipeline.decompose", "lines.Lines",
         ["`def __call__(self, documents: Sequence[Document]) -> list[list[Claim]]`",
          "eval.stages.Decomposer"]),
        ("pipeline.decompose", "lines.length", ["eval.stages.Decomposer"]),
        ("experiment.text_metrics", "{mine: {class_path: lines.length}}",
         ["`def score(self, documents: Sequence[Document]) -> list[float | None]`",
          "eval.metrics.text_metric.TextMetric"]),
    ],
)  # fmt: skip
def test_part_without_annotations_names_the_signature_and_the_base(
    option, value, parts, tmp_path, error_of, monkeypatch
):
    (tmp_path / "lines.py").write_text(
        "class Lines:\n    def __call__(self, documents): return [[] for _ in documents]\n"
        "def length(documents): return [1 for _ in documents]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lines", raising=False)
    command = ["experiment", "robustness"] if "experiment" in option else ["score"]
    error = error_of("eval", *command, "--documents=x", "--output", "y", f"--{option}", value)
    assert [part for part in parts if part not in error] == []


ROBUST = ["--config", "configs/eval/small/robust.yaml", "--documents", "x", "--output", "y"]
RELATION = "{class_path: eval.models.encoder.Entailment, init_args: {checkpoint: other}}"
BM25 = "{class_path: eval.retrieve.bm25.BM25, init_args: {passages: other}}"
VERIFY = ("verify", 0, "init_args")
INNER = ("retrieve", "init_args", "retrieve", "init_args")


@pytest.mark.parametrize(
    ("option", "value", "place", "expected"),
    [
        # DFActScore's threshold of 0.6 does not stay, nor the encoder's cache
        ("verify", f"[{{class_path: eval.verify.nli.NLI, init_args: {{entailment: {RELATION}}}}}]",
         VERIFY, {"threshold": None, "title_in_premise": False}),
        ("verify.init_args.entailment", RELATION, (*VERIFY, "entailment", "init_args"),
         {"cache": None}),
        ("verify.entailment", RELATION, VERIFY, {"threshold": 0.6}),
        # The name of a class keeps the options that both classes have
        ("verify.class_path", "eval.verify.nli.NLI", VERIFY, {"threshold": 0.6}),
        ("verify+", "{class_path: eval.verify.labels.Labels}", VERIFY, {"threshold": 0.6}),
        ("retrieve.retrieve", BM25, INNER, {"k": 3, "per": "claim"}),
        ("retrieve.retrieve.passages", "x", INNER, {"k": 2, "per": "topic"}),
    ],
)  # fmt: skip
def test_replaced_part_has_no_option_of_the_former_part(
    option, value, place, expected, monkeypatch
):
    monkeypatch.chdir(Path(__file__).parents[2])
    parser = build_parser()
    arguments = parse(parser, [*ROBUST, f"--pipeline.{option}", value])
    part = json.loads(parser.dump(arguments, format="json", skip_unset=False))["pipeline"]
    for key in place:
        part = part[key]
    assert {name: part[name] for name in expected} == expected
