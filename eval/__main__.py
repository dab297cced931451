"""``python -m eval COMMAND …``."""

from collections.abc import Sequence
from importlib import import_module

from cli.command import choose_command, run_command

# Each command's module in ``eval/commands`` has ``main(argv) -> int``. It is imported only when the
# command runs, so --help is fast and no command needs the optional packages of another.
COMMANDS = {
    "score": "score documents with the pipeline, with and without Core",
    "audit": "attack a metric or reward, and say whether it is gamed",
    "core": "show which claims Core selects, and why",
    "component": "judge one trained component on held-out data",
    "experiment": "run one of the papers' experiments",
    "report": "write a run's HTML report",
    "papers": "print the papers' figures next to ours, from their released files",
    "doctor": "check the installation, and list the missing inputs of each config",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command."""
    name, rest = choose_command("python -m eval", COMMANDS, argv)
    return import_module(f"eval.commands.{name}").main(rest)


if __name__ == "__main__":
    run_command(main)
