"""Door 3: ``python -m eval COMMAND …``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from cli.command import run_command
from records import UserError

# Command: module with ``main(argv) -> int``, and what it does. A module is imported only when its
# command runs, so that --help is quick and no command needs another's extras.
COMMANDS = {
    "score": ("eval.commands.score", "score documents with the pipeline, with and without Core"),
    "core": ("eval.commands.core", "show which claims Core selects, and why"),
    "component": ("eval.commands.component", "judge one trained component on held-out data"),
    "experiment": ("eval.commands.experiment", "run one of the papers' experiments"),
    "report": ("eval.commands.report", "write a run's HTML report"),
    "runs": ("eval.commands.runs", "list the runs below a folder, or set two side by side"),
    "doctor": ("eval.commands.doctor", "say what is installed, and what each config here lacks"),
}

USAGE = "usage: python -m eval COMMAND [options]"


def help_text() -> str:
    """The commands, one a line."""
    lines = [f"  {name:<12}{text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            USAGE,
            "",
            "The scoring pipeline, its components, its experiments and the report.",
            "",
            "commands:",
            *lines,
            "",
            "python -m eval COMMAND --help shows the options of one command.",
        ]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command."""
    name, *rest = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in {"-h", "--help"}:
        print(help_text())
        return 0
    if name not in COMMANDS:
        raise UserError(f"no command {name!r}; give one of: {', '.join(COMMANDS)}")
    return import_module(COMMANDS[name][0]).main(rest)


if __name__ == "__main__":
    run_command(main)
