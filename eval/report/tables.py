"""Tables as text: for Markdown, CSV, LaTeX and the terminal."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO

from eval.report.declare import Cell, TextTable
from eval.report.terminal import format_value
from records import Result, escape_markdown

_PLACES = ("domain", "generator", "kind", "group", "bin", "selection")
_NAMES = ("assessor", "variant", "against")
_WRITTEN = {"metric", *_NAMES, *_PLACES, "value", "n", "failed"}
# Between a number and what belongs to it: its spread, or the other end of its interval.
_WITHIN = re.compile(r"(?<=\d) (?=±)|(?<=±) (?=\d)|(?<=\d,) (?=[-−]?\d+(\.\d+)?\])")

# Values that a spreadsheet interprets as formulas.
_FORMULA = re.compile(r"[\t\n]|\s*[=+@＝＋－＠-]")
_NUMBER = re.compile(r"[+-]?[\d,.]+(e[+-]?\d+)?( ?%)?", re.IGNORECASE)


def unbroken(text: object) -> str:
    """Insert no-break spaces within numbers and intervals."""
    return _WITHIN.sub("\N{NO-BREAK SPACE}", str(text))


# Tables


def markdown(tables: Iterable[TextTable], first: str) -> str:
    """Tables one below the other, ``first`` above them."""
    parts = [f"{first}\n"]
    for table in tables:
        text = [f"## {escape_markdown(table.title)}", escape_markdown(table.note)]
        if table.head:
            text.append(markdown_table(table.head, table.rows))
        parts.append("\n\n".join(filter(None, text)) + ("" if table.head else "\n"))
    return "\n".join(parts)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[Cell | str]]) -> str:
    """A table, its cells made plain."""
    lines = [
        f"| {' | '.join(escape_markdown(str(part)) for part in line)} |" for line in (head, *rows)
    ]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:], ""])


def results_csv(results: Sequence[Result]) -> str:
    """Format all results as CSV, one per line, with interval bounds."""
    rows = []
    for row in results:
        low, high = row.ci95 or ("", "")
        rows.append(row.model_dump(include=_WRITTEN) | {"low": low, "high": high})
    return as_csv(rows)


def as_csv(rows: Sequence[Mapping]) -> str:
    """Format rows as CSV with one column per name; ``None`` is empty.

    Formulas are escaped with an apostrophe; carriage returns become line feeds.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return _as_csv([columns, *([row.get(name, "") for name in columns] for row in rows)])


def _as_csv(lines: Iterable[Iterable[object]]) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([_no_formula(value) for value in line] for line in lines)
    return out.getvalue()


def _no_formula(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def plain_table(head: Sequence[str], rows: Sequence[Sequence[Cell | str]]) -> str:
    """A table whose columns are aligned by blanks, for a terminal."""
    lines = [[" ".join(str(part).split()) for part in line] for line in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([p.ljust(w) for p, w in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def terminal(rows: Sequence[Result]) -> str:
    """Format results one per line, without the fields that are equal in all results."""
    if not rows:
        return ""
    kept = [
        name
        for name in ("metric", *_PLACES, *_NAMES)
        if name == "metric" or len({getattr(row, name) for row in rows}) > 1
    ]
    names = [["" if (v := getattr(row, n)) is None else str(v) for n in kept] for row in rows]
    widths = [max(map(len, column)) for column in zip(kept, *names, strict=True)]
    lines = []
    for cells, end in zip([kept, *names], ["value", *map(format_value, rows)], strict=True):
        place = " ".join(name.ljust(width) for name, width in zip(cells, widths, strict=True))
        lines.append(f"{place} {end}")
    return "\n".join(lines)


# Files


def slug(text: str) -> str:
    """A name of a file or of a place in a page: letters, digits and underscores."""
    return "_".join(re.findall(r"\w+", text.lower()))[:60] or "unnamed"


def named_apart(names: Iterable[str]) -> list[str]:
    """Return unique slugs of names; duplicates get a number appended."""
    slugs: list[str] = []
    for name in map(slug, names):
        number_, candidate = 2, name
        while candidate in slugs:
            candidate, number_ = f"{name}_{number_}", number_ + 1
        slugs.append(candidate)
    return slugs


def table_files(tables: Sequence[TextTable]) -> dict[str, str]:
    """Name of a file to its content, CSV and LaTeX of each table that has rows."""
    nonempty = [table for table in tables if table.rows]
    files = {}
    for name, table in zip(named_apart(table.title for table in nonempty), nonempty, strict=True):
        files[f"{name}.csv"] = table_csv(table)
        files[f"{name}.tex"] = latex_table(table)
    return files


def table_csv(table: TextTable) -> str:
    """Format a table as CSV, with extra columns for intervals, marks and notes if present."""
    columns: list[list[str]] = []
    for head, parts in zip(table.head, zip(*table.rows, strict=True), strict=True):
        columns.append([head, *(p.value if isinstance(p, Cell) else p for p in parts)])
        for name in ("interval", "mark", "note"):
            more = [getattr(part, name, "") for part in parts]
            columns += [[f"{head}: {name}", *more]] if any(more) else []
    return _as_csv(zip(*columns, strict=True))


def latex_table(table: TextTable) -> str:
    """A ``tabular`` (package booktabs) with its title and note as comments."""
    import pandas as pd  # half a second to import

    rows = [[" ".join(str(part).split()) for part in row] for row in table.rows]
    frame = pd.DataFrame(rows, columns=list(table.head))
    lines = [f"% {' '.join(text.split())}" for text in (table.title, table.note) if text]
    form = "l" + "r" * (len(table.head) - 1)
    return "\n".join([*lines, frame.to_latex(index=False, escape=True, column_format=form)])
