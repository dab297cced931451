"""``python -m eval papers``: the figures of the papers from their authors' released files."""

from pathlib import Path

from jsonargparse import ArgumentParser

from cli.parser import command_parser, parse
from cli.printable import printable
from eval.experiments.papers.papers import Row, as_printed, compare
from eval.report.declare import TextTable
from eval.report.tables import markdown, plain_table
from records import UserError, write_json, write_text

FILES = "downloads"
NOTE = (
    "Ours: recomputed from the authors' released decisions, labels and annotations, with the "
    "digits that the paper prints. n: rows read. State: whether all printed digits are equal, why "
    "not, or where the file is."
)


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        "python -m eval papers",
        "Print the papers' figures next to ours, from the files that their authors released.",
    )
    parser.add_argument(
        "--files",
        type=str,
        default=FILES,
        help="folder with the released files, under their released names, at any depth; entries "
        "whose file is absent name its source",
    )
    parser.add_argument("--output", type=str, default="runs/papers", help="output folder")
    return parser


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    arguments = parse(build_parser(), argv)
    folder, output = Path(arguments.files), Path(arguments.output)
    if not folder.is_dir() and arguments.files != FILES:
        raise UserError(f"--files: {folder}: no such folder; pass the folder of the released files")
    rows = list(compare(folder))
    head = ["Paper", "Table", "What", "Ours", "Paper's", "n", "State"]
    written = TextTable("Released files", NOTE, head, [_cells(row) for row in rows])
    write_json(output / "papers.json", [row.model_dump() for row in rows])
    write_text(output / "papers.md", markdown([written], "# The papers' figures"))
    print(printable(plain_table(head, written.rows)))
    print(output / "papers.json")
    print(output / "papers.md")
    return 0


def _cells(row: Row) -> list[str]:
    ours = [f"{k} {as_printed(row.ours[k], text)}" for k, text in row.printed.items() if row.ours]
    printed = [f"{name} {text}" for name, text in row.printed.items()]
    n = "" if row.n is None else f"{row.n:,}"
    return [row.paper, row.table, row.name, ", ".join(ours), ", ".join(printed), n, row.state]
