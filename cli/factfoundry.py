"""``factfoundry {train,build,eval} …``: the programs of this repository, in any folder."""

import os
import sys
from importlib import import_module

from cli.command import choose_command, run_command

PROGRAMS = {
    "train": "train and export components",
    "build": "build a dataset",
    "eval": "score texts, audit a metric, run an experiment",
}


def _run() -> int:
    name, rest = choose_command("factfoundry", PROGRAMS, None)
    program = import_module(f"{'data_builders' if name == 'build' else name}.__main__")
    return program.main(rest)


def main() -> None:
    """Entry point of the console script."""
    sys.path.insert(0, os.getcwd())  # of custom stages, as `python -m` does
    run_command(_run)
