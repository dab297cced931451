"""Door 1: ``python -m train {fit,validate,test,predict,sweep,push,convert} …``.

Here nothing but the way to each command: what takes seconds to import, torch above all, is left to
the command that needs it, and the help is read from the sources (``train/help.py``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("WANDB_SILENT", "true")

from cli.command import run_command
from records import UserError
from train.help import COMMANDS, help_of

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser

# Commands that no parser of Lightning's knows, and their functions.
OTHERS = {
    "sweep": "train.sweep.search",
    "push": "train.hub.push",
    "convert": "train.hub.convert",
}

HELP = """usage: python -m train COMMAND [options]

Train the components of factuality scoring, judge them, and hand them on.

commands:
  fit       train a component and export its checkpoint folder
  validate  judge a checkpoint on its dev data
  test      judge a checkpoint on other data
  predict   write a checkpoint's predictions
  sweep     search hyperparameters: a wandb sweep file, run here with Optuna
  push      upload a checkpoint folder to the Hugging Face Hub
  convert   make a checkpoint folder of a published T5 that writes LSS

python -m train COMMAND --help shows the options of one command;
python -m train fit --model train.unli.Unli --help those of a module."""


def main(arguments: list[str] | None = None) -> int:
    """Run the door; user mistakes raise ``UserError``."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command, *rest = arguments or ["--help"]
    if command in {"-h", "--help"}:
        print(HELP)
        return 0
    if command[:1] not in {"", "-"} and command not in {*COMMANDS, *OTHERS}:
        raise UserError(f"no command {command!r}; give one of: {', '.join([*COMMANDS, *OTHERS])}")
    if command in OTHERS:
        function, parser = parser_of(command)
        function(**parser.parse_args(rest))
        return 0
    text = help_of(command, rest)
    if text is not None:
        print(text)
        return 0
    return import_module("train.cli").run_lightning(arguments)


def parser_of(command: str) -> tuple[Callable[..., None], ArgumentParser]:
    """The function of one of ``OTHERS``, and the parser of its options."""
    from jsonargparse import ArgumentParser

    module, _, name = OTHERS[command].rpartition(".")
    function = getattr(import_module(module), name)
    parser = ArgumentParser(prog=f"python -m train {command}", exit_on_error=False)
    parser.description = function.__doc__.partition("\n")[0]
    parser.add_function_arguments(function, as_group=False)
    return function, parser


if __name__ == "__main__":
    run_command(main)
