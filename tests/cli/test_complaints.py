"""What the parser complains of: one line with its place and what was probably meant."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from cli.command import run_command

ROOT = Path(__file__).parents[2]
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


def complaint(arguments, monkeypatch, capsys, door="eval"):
    """The line on standard error of a door that exits with 2."""
    monkeypatch.setattr(sys, "argv", [door, *arguments])
    with pytest.raises(SystemExit) as left:
        run_command(import_module(f"{door}.__main__").main)
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        (
            GIVEN + LABELS + "  select: {class_path: eval.select.core.Coree}\n",
            "{file}:4: eval.select.core.Coree: module 'eval.select.core' has no attribute "
            "'Coree'; did you mean eval.select.core.Core?",
        ),
        (
            "  decompose: {class_path: eval.decompose.sentenses.Sentences}\n" + LABELS,
            "{file}:2: eval.decompose.sentenses.Sentences: module 'eval.decompose' has no "
            "attribute 'sentenses'; did you mean eval.decompose.sentences.Sentences?",
        ),
        (
            GIVEN + "  retrieve: {class_path: eval.retrieve.bm25.BM25, init_args: {kk: 2}}\n",
            "{file}:3: eval.retrieve.bm25.BM25 has no option 'kk'; did you mean k?",
        ),
        (
            GIVEN + NLI % "bach_size: 2",
            "{file}:8: eval.models.encoder.Entailment has no option 'bach_size'; did you mean "
            "batch_size?",
        ),
        (
            GIVEN + NLI % "batch_size: many",
            "{file}:8: eval.models.encoder.Entailment: batch_size: Expected a whole number. Got "
            "value: many",
        ),
        (
            GIVEN + LABELS + "  gama: 3\n",
            "{file}:4: no option 'pipeline.gama'; did you mean pipeline.gamma?",
        ),
        (
            GIVEN + LABELS + "  select: {class_path: eval.verify.labels.Labels}\n",
            "{file}:4: pipeline.select: Import path eval.verify.labels.Labels does not implement "
            "protocol Selector; give its methods the names of parameters and all types that "
            "eval.stages.Selector has",
        ),
        (
            "  decompose: {class_path: eval.decompose.given.Given\n" + LABELS,
            "{file}:3: no YAML: expected ',' or '}}', but got ':' while parsing a flow mapping of "
            "line 2; mend the line",
        ),
    ],
)
def test_a_mistake_in_a_config_is_told_with_its_line(stages, said, tmp_path, monkeypatch, capsys):
    file = tmp_path / "my.yaml"
    file.write_text(f"pipeline:\n{stages}")
    (tmp_path / "documents.jsonl").write_text('{"id": "a", "topic": "t", "text": "x."}\n')
    arguments = ["score", "--config", str(file), "--output", str(tmp_path / "out")]
    arguments += ["--documents", str(tmp_path / "documents.jsonl")]
    line = complaint(arguments, monkeypatch, capsys)
    assert line == f"error: {said.format(file=file)}"


@pytest.mark.parametrize("text", ["", "# to be filled\n", "nothing\n", "- pipeline\n"])
def test_a_config_without_an_option_is_told_with_its_name(text, tmp_path, monkeypatch, capsys):
    file = tmp_path / "my.yaml"
    file.write_text(text)
    line = complaint(["score", "--config", str(file), "--output", "out"], monkeypatch, capsys)
    assert line == f"error: {file}: no option in it; write `option: value`, one a line"


FIT = """\
name: mine  # what lr is
model: {{class_path: {model}, init_args: {{base: x, {options}}}}}
data:
  class_path: train.data.RecordData
  init_args: {{train: x, dev: x, {data}}}
trainer: {{accelerator: cpu, {trainer}}}
"""
AS_IT_IS = {
    "model": "train.unli.Unli",
    "options": "lr: 0.1",
    "data": "batch_size: 4",
    "trainer": "max_steps: 3",
}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model": "train.unli.Unly"}, "2: train.unli.Unly: module 'train.unli' has no attribute "
         "'Unly'; did you mean train.unli.Unli?"),
        ({"model": "Unly"}, "2: Unly: no class; give its path, such as package.module.Class"),
        ({"options": "lrr: 1"}, "2: train.unli.Unli has no option 'lrr'; did you mean lr?"),
        # One that the class takes as ``**shared``
        ({"options": "schedul: 1"}, "2: train.unli.Unli has no option 'schedul'; did you mean "
         "schedule?"),
        ({"options": "lr: fast"}, "2: train.unli.Unli: lr: Expected a number. Got value: fast"),
        ({"options": "optimizer: {class_path: torch.optim.SGDD}"}, "2: torch.optim.SGDD: module "
         "'torch.optim' has no attribute 'SGDD'; did you mean torch.optim.SGD?"),
        ({"options": "optimizer: {class_path: torch.optim.SGD, init_args: {momentun: 1}}"},
         "2: torch.optim.SGD has no option 'momentun'; did you mean momentum?"),
        ({"data": "batch_size: many"}, "5: train.data.RecordData: batch_size: Not "
         "of type PositiveInt: invalid literal for int() with base 10: 'many'"),
        ({"trainer": "max_step: 3"}, "6: no option 'trainer.max_step'; did you mean "
         "trainer.max_steps?"),
        ({"trainer": "max_steps: many"}, "6: trainer.max_steps: Expected a whole number. "
         "Got value: many"),
        ({"trainer": "callbacks: [{class_path: lightning.pytorch.callbacks.Timmer}]"},
         "6: lightning.pytorch.callbacks.Timmer: module 'lightning.pytorch.callbacks' has no "
         "attribute 'Timmer'; did you mean lightning.pytorch.callbacks.Timer?"),
        ({"trainer": "devices: 1}\npatients: {a: 1"}, "7: no option 'patients'; did you mean "
         "patience?"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_config_of_a_training_is_told_with_its_line(
    changed, said, tmp_path, monkeypatch, capsys
):
    file = tmp_path / "my.yaml"
    file.write_text(FIT.format(**AS_IT_IS | changed))
    line = complaint(["fit", "--config", str(file)], monkeypatch, capsys, "train")
    assert line == f"error: {file}:{said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("probabilty: 0.7", "3: no option 'probabilty'; did you mean probability?"),
        ("probability: often", "3: probability: Expected a number. Got value: often"),
        ("appended: [0, five]", "3: appended: Expected a whole number. Got value: five"),
        ("corrupter: {class_path: data_builders.written.corruption.swap.ValueSwop}",
         "3: data_builders.written.corruption.swap.ValueSwop: module "
         "'data_builders.written.corruption.swap' has no attribute 'ValueSwop'; did you mean "
         "data_builders.written.corruption.swap.ValueSwap?"),
        ("corrupter: {class_path: data_builders.written.corruption.swap.ValueSwap, init_args: "
         "{endpont: a}}", "3: data_builders.written.corruption.swap.ValueSwap has no option "
         "'endpont'; did you mean endpoint?"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_config_of_a_dataset_is_told_with_its_line(
    text, said, tmp_path, monkeypatch, capsys
):
    file = tmp_path / "my.yaml"
    file.write_text(f"# the probability of a change, appended\noutput: data/x\n{text}\n")
    line = complaint(["corruption", "--config", str(file)], monkeypatch, capsys, "data_builders")
    assert line == f"error: {file}:{said}"


def test_of_several_keys_of_one_name_the_one_with_the_value_is_told(tmp_path, monkeypatch, capsys):
    file = tmp_path / "my.yaml"
    sources = "\n  - {file: a.jsonl, weight: 2}\n  - {file: b.jsonl, weight: heavy}\n"
    file.write_text(f"output: data/x\ntarget: unli\nsources:{sources}")
    line = complaint(["pairs", "--config", str(file)], monkeypatch, capsys, "data_builders")
    assert line == (
        f"error: {file}:5: data_builders.published.pairs.pairs.Source: weight: Expected a number. "
        "Got value: heavy"
    )


def test_a_command_that_is_not_there_is_told_those_that_are(monkeypatch, capsys):
    line = complaint(["fitt"], monkeypatch, capsys, "train")
    assert line.startswith("error: no command 'fitt'; give one of: fit, validate, test, predict,")


@pytest.mark.parametrize(
    ("door", "arguments", "said"),
    [
        ("train", ["fit"], "--data, --model; give them, here or in a YAML given by --config"),
        ("data_builders", ["kb_pairs"], "--output; give it, here or in a YAML given by --config"),
        ("eval", ["report"], "--run; give it"),
    ],
)
def test_what_is_missing_is_told_as_it_is_given(door, arguments, said, monkeypatch, capsys):
    assert complaint(arguments, monkeypatch, capsys, door) == f"error: missing: {said}"


def test_a_module_that_lacks_a_package_is_told_what_it_lacks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("lab").mkdir()
    Path("lab/stages.py").write_text("import nosuch_package\n")
    Path("my.yaml").write_text(f"pipeline:\n  decompose: {{class_path: lab.stages.Own}}\n{LABELS}")
    arguments = ["score", "--config", "my.yaml", "--documents", "my.yaml", "--output", "out"]
    line = complaint(arguments, monkeypatch, capsys)
    assert line == "error: my.yaml:2: lab.stages.Own: No module named 'nosuch_package'"
    Path("my.yaml").write_bytes(b"pipeline: \x00\n")
    line = complaint(arguments, monkeypatch, capsys)
    assert line.startswith("error: my.yaml: no YAML: ")


def test_a_wrong_option_on_the_command_line_is_told_the_right_one(monkeypatch, capsys):
    line = complaint(["kb_pairs", "--sed", "3"], monkeypatch, capsys, "data_builders")
    assert line == "error: unrecognized arguments: --sed 3; did you mean --seed?"
    line = complaint(["score", "--config", "/nowhere.yaml"], monkeypatch, capsys)
    assert line.startswith("error: /nowhere.yaml: no such file; give the path of a YAML")


@pytest.mark.parametrize(
    ("door", "arguments"),
    [("eval", ["score"]), ("data_builders", ["pairs"]), ("train", ["fit"])],
)
def test_a_config_in_another_encoding_is_told_with_its_line(
    door, arguments, tmp_path, monkeypatch, capsys
):
    config = tmp_path / "own.yaml"
    config.write_bytes(b"# a\ndomain: gr\xf6\xdfe\n")
    line = complaint([*arguments, "--config", str(config)], monkeypatch, capsys, door)
    assert line == f"error: {config}:2: not UTF-8 (there is a byte 0xf6); save the file as UTF-8"


@pytest.mark.parametrize("is_one_word", [True, False])
def test_a_config_in_a_folder_with_a_blank_is_named(is_one_word, tmp_path, monkeypatch, capsys):
    config = tmp_path / "my own.yaml"
    config.write_text("\nchnk: 4\n")
    given = [f"--config={config}"] if is_one_word else ["--config", str(config)]
    line = complaint(["score", *given], monkeypatch, capsys)
    assert line == f"error: {config}:2: no option 'chnk'; did you mean chunk?"
