"""``python -m train {fit,rl,sweep,convert} …``.

Each command imports its own slow dependencies (torch), so that ``--help`` stays fast.
"""

import os
from collections.abc import Callable, Sequence
from importlib import import_module

from jsonargparse import ArgumentParser

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("WANDB_SILENT", "true")

from cli.command import choose_command, run_command
from cli.parser import command_parser, parse
from train.options import RunOptions

COMMANDS = {
    "fit": "train a component and export its checkpoint folder",
    "rl": "train an adversary against a metric by GRPO",
    "sweep": "repeat a fit over a grid or random values of its options",
    "convert": "convert a published T5 that generates LSS to a checkpoint folder",
}
# Commands that do not use Lightning.
FUNCTIONS = {"sweep": "train.sweep.search", "convert": "train.convert.convert"}

# Help for options of Lightning's parser, which is slow to import.
_HELP = {
    "seed_everything": "seed of the initial weights and the batch order; default: 1",
    "ckpt_path": ".ckpt file to resume from; default: last.ckpt of the same run, which `last` "
    "prefers even with --overwrite",
    "model": "train.unli.Unli, train.relation.Relation, train.lss_tagger.LssTagger, "
    "train.lss_seq2seq.LssSeq2Seq, train.adversary.Adversary, train.preference.Preference or a "
    "custom LightningModule; `--model.help CLASS` lists its options (--model.OPTION)",
    "data": "train.data.RecordData or a custom LightningDataModule; `--data.help CLASS` lists its "
    "options (--data.OPTION)",
    "trainer.OPTION": "option of Lightning's Trainer; --print_config lists all of them",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command."""
    command, rest = choose_command("python -m train", COMMANDS, arguments)
    if command in FUNCTIONS:
        options = parse(parser_of(command), rest)
        options.pop("config")
        _function(command)(**options)
        return 0
    if command == "rl":
        return import_module("train.rl").run(rest)
    if {"-h", "--help"} & set(rest):
        _print_help(command)
        return 0
    return import_module("train.cli").run_lightning([command, *rest])


def parser_of(command: str) -> ArgumentParser:
    """Return the parser of a command in ``FUNCTIONS``."""
    parser = command_parser(f"python -m train {command}", COMMANDS[command])
    parser.add_function_arguments(_function(command), as_group=False)
    return parser


def _function(command: str) -> Callable[..., None]:
    module, _, name = FUNCTIONS[command].rpartition(".")
    return getattr(import_module(module), name)


def _print_help(command: str) -> None:
    parser = command_parser(f"python -m train {command}", COMMANDS[command])
    for name, text in _HELP.items():
        parser.add_argument(f"--{name}", help=text)
    parser.add_class_arguments(RunOptions, as_group=False)
    parser.print_help()


if __name__ == "__main__":
    run_command(main)
