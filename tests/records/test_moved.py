"""Old class paths are answered with the new ones."""

from __future__ import annotations

from functools import partial
from importlib import import_module

import pytest

from records.door import run_door
from records.moved import MOVED, moved

# Where a class of each package is given; which class it is, is looked at after the import.
OPTION = {
    "data_builders": ["corruption", "--corrupter"],
    "eval": ["score", "--pipeline.retrieve"],
    "train": ["fit", "--model"],
}


@pytest.mark.parametrize("old", MOVED)
def test_a_door_names_the_new_place_in_one_line(old, capsys):
    package = old.split(".")[0]
    main = import_module(f"{package}.__main__").main
    with pytest.raises(SystemExit) as left:
        run_door(partial(main, [*OPTION[package], old]))
    assert left.value.code == 2
    assert capsys.readouterr().err == f"error: class_path {old} has moved; write {MOVED[old]}\n"


@pytest.mark.parametrize("new", sorted(set(MOVED.values())))
def test_the_new_place_is_there(new):
    module, _, name = new.rpartition(".")
    assert hasattr(import_module(module), name)


def test_a_config_is_answered_too_however_deep_the_class_stands(tmp_path, capsys):
    config = tmp_path / "old.yaml"
    config.write_text(
        "pipeline:\n"
        "  decompose: {class_path: eval.decompose.given.Given}\n"
        "  verify:\n"
        "    - class_path: eval.verify.nli.NLI\n"
        "      init_args:\n"
        "        entailment:\n"
        "          class_path: eval.models.prompted_relations.PromptedRelations\n"
        "          init_args: {prompt: logprobs}\n"
    )
    main = import_module("eval.__main__").main
    # The file of documents is looked for before the config is read.
    arguments = ["score", "--config", str(config), "--documents", str(config), "--output", "y"]
    with pytest.raises(SystemExit):
        run_door(partial(main, arguments))
    said = capsys.readouterr().err
    assert "write eval.prompting.prompted_relations.PromptedRelations\n" in said
    assert said.count("\n") == 1


def test_only_whole_paths_count():
    assert moved("my.data_builders.corruption.swap.ValueSwap") is None
    assert moved("data_builders.corruption.swap.ValueSwapper") is None
    assert moved("no such file: corruption.yaml") is None
