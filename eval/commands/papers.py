"""``python -m eval papers``: the figures of the papers from their authors' released files."""

from pathlib import Path

from jsonargparse import ArgumentParser

from cli.parser import function_parser, parse
from cli.printable import printable
from eval.experiments.papers.papers import PrintedRow, as_printed, compare
from eval.report.declare import TextTable
from eval.report.tables import markdown, plain_table
from records import UserError, write_json, write_text

FILES = "downloads"
HEAD = ["Paper", "Table", "Figures", "Ours", "Paper's", "n", "State"]
NOTE = (
    "Ours: recomputed from the authors' released decisions, labels and annotations, with the "
    "digits that the paper prints. n: rows read. State: whether all printed digits are equal, why "
    "not, or where the file is."
)


def compare_figures(files: str = FILES, output: str = "runs/papers") -> None:
    """Print the papers' figures next to ours, from the files that their authors released.

    Args:
        files: folder with the released files, under their released names, at any depth; a row
            whose file is absent names its source.
        output: folder of ``papers.json`` and ``papers.md``.
    """
    folder, written = Path(files), Path(output)
    if not folder.is_dir() and files != FILES:
        raise UserError(f"files: {folder}: no such folder; pass the folder of the released files")
    rows = list(compare(folder))
    table = TextTable("Released files", NOTE, HEAD, [_cells(row) for row in rows])
    write_json(written / "papers.json", [row.model_dump() for row in rows])
    write_text(written / "papers.md", markdown([table], "# The papers' figures"))
    print(printable(plain_table(HEAD, table.rows)))
    print(written / "papers.json", written / "papers.md", sep="\n")


def build_parser() -> ArgumentParser:
    """The command's options."""
    return function_parser("python -m eval papers", compare_figures)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    compare_figures(**vars(parse(build_parser(), argv)))
    return 0


def _cells(row: PrintedRow) -> list[str]:
    ours = [f"{k} {as_printed(row.ours[k], text)}" for k, text in row.prints.items() if row.ours]
    printed = [f"{name} {text}" for name, text in row.prints.items()]
    n = "" if row.n is None else f"{row.n:,}"
    return [row.paper, row.table, row.name, ", ".join(ours), ", ".join(printed), n, row.state]
