"""``python -m eval COMMAND …``."""

from collections.abc import Sequence
from importlib import import_module

from cli.command import choose_command, run_command

# A command's module in ``eval/commands`` has ``main(argv) -> int``; it is imported only when its
# command runs, so that --help is quick and no command needs another's extras.
COMMANDS = {
    "score": "score documents with the pipeline, with and without Core",
    "core": "show which claims Core selects, and why",
    "component": "judge one trained component on held-out data",
    "experiment": "run one of the papers' experiments",
    "report": "write a run's HTML report",
    "runs": "list the runs below a folder, or set two side by side",
    "doctor": "say what is installed, and what each config here lacks",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command."""
    name, rest = choose_command("python -m eval", COMMANDS, argv)
    return import_module(f"eval.commands.{name}").main(rest)


if __name__ == "__main__":
    run_command(main)
