"""A parser's error is one line: the configuration's line, the error and a suggestion."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from cli.command import run_command

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
         "does not have the parameters and annotations (Sequence, not list) of protocol Selector"),
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
        ("data_builders kb_pairs --sed 3", "unrecognized arguments: --sed 3; did you mean seed?"),
    ],
)
def test_an_error_in_the_command_line(arguments, error, error_of):
    assert error_of(*arguments.split()).startswith(f"error: {error}")
