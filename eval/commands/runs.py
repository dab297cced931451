"""``python -m eval runs --against A B``: compare two runs.

Reads the runs' folders only; writes nothing except the requested page.
"""

from pathlib import Path

from jsonargparse import ArgumentParser

from cli.parser import command_parser, parse
from cli.printable import printable
from eval.report.comparison import compare
from eval.report.render import write_tables
from eval.report.tables import plain_table
from records import UserError

MAX_TEXTS = 20  # maximum number of changed texts in the terminal


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser("python -m eval runs", "Compare two runs.", config=False)
    parser.add_argument(
        "--against",
        nargs=2,
        metavar=("A", "B"),
        required=True,
        help="folders of two runs: compare their results and configurations",
    )
    parser.add_argument("--html", type=str | None, default=None, help="also write this HTML page")
    return parser


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    if argv and not argv[0].startswith("-"):
        raise UserError(f"runs: expected `python -m eval runs --against A B`, got {' '.join(argv)}")
    arguments = parse(build_parser(), argv)
    tables = compare(*map(Path, arguments.against))
    for table in tables:
        rows = table.rows[: MAX_TEXTS if table.title.endswith("changed") else None]
        lines = [*plain_table(table.head, rows).split("\n"), ""] if rows else []
        print("\n".join([*map(printable, lines), table.note]))
    if arguments.html:
        note = printable("A: {}; B: {}".format(*arguments.against))
        write_tables(Path(arguments.html), "How do two runs differ?", note, tables)
        print(arguments.html)
    return 0
