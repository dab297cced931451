"""The figures of docs/results.md as rows of docs/results.csv.

    python benchmarks/results.py    # after a change of the page

A section has its command in a block, and a line ``**Data:** … · **n:** … · **time:** … ·
**commit:** …`` before its tables. The first cell of a table's header names the figures, several
with ``;`` between them, and each cell has as many values, ``value`` or ``value [low, high]``. A
column ``n`` replaces the section's, and a column ``value`` has no name in the rows. A dash stands
for no value.
"""

import argparse
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from cli.command import run_command
from records import write_text

PAGE, TABLE = Path("docs/results.md"), Path("docs/results.csv")
COLUMNS = (
    "question",
    "figure",
    "value",
    "low",
    "high",
    "n",
    "command",
    "data",
    "time",
    "commit",
)
SOURCE = re.compile(r"\*\*(\w+):\*\* (.+?)(?= · \*\*|$)")
BLOCK = re.compile(r"^```\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
VALUE = re.compile(r"(.+?)(?: \[(.+), (.+)\])?")
NO_VALUE = {"", "–"}


def rows_of(page: str) -> Iterator[dict[str, str]]:
    """One row per figure of a page in the form of docs/results.md."""
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        common = {"question": section.partition("\n")[0]}
        for part in re.split(r"\n\n(?!\n)", BLOCK.sub(_as_line, section)):
            if part.startswith("Command: "):
                common["command"] = part.removeprefix("Command: ")
            elif part.startswith("**Data:**"):
                common |= {name.lower(): _cell(text) for name, text in SOURCE.findall(part)}
            elif part.startswith("|"):
                yield from _rows_of_table(part, common)


def _as_line(block: re.Match) -> str:
    return "Command: " + " && ".join(re.sub(r" \\\n +", " ", block[1]).splitlines())


def _cell(text: str) -> str:
    return "" if text.strip() in NO_VALUE else text.strip()


def _rows_of_table(table: str, common: dict[str, str]) -> Iterator[dict[str, str]]:
    head, _, *lines = (
        [_cell(cell) for cell in line.strip("|").split("|")] for line in table.splitlines()
    )
    for label, *cells in lines:
        size = dict(zip(head[1:], cells, strict=True)).get("n") or common["n"]
        for column, cell in zip(head[1:], cells, strict=True):
            if column == "n" or not cell:
                continue
            for name, text in zip(head[0].split("; "), cell.split("; "), strict=True):
                if text not in NO_VALUE:
                    value, low, high = VALUE.fullmatch(text).groups(default="")
                    figure = f"{name}: {label}" + f", {column}" * (column != "value")
                    numbers = {"value": value, "low": low, "high": high, "n": size}
                    yield common | numbers | {"figure": figure}


def as_csv(page: str) -> str:
    """The content of docs/results.csv."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows_of(page.replace("−", "-")))
    return file.getvalue()


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    write_text(TABLE, as_csv(PAGE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    run_command(main)
