"""Each table as a file of its own: CSV with values, intervals and notes apart, and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from eval.report.tables import Cell, TextTable, as_csv

_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
    "−": "$-$",
    "∞": r"$\infty$",
    "ε": r"$\varepsilon$",
}


def slug(text: str) -> str:
    """A name of a file or of a place in a page: letters, digits and underscores."""
    return "_".join(re.findall(r"\w+", text.lower()))[:60] or "unnamed"


def named_apart(names: Iterable[str]) -> list[str]:
    """Slugs of names, in their order; one that is taken gets a number behind it."""
    return _numbered(map(slug, names), "_")


def _numbered(names: Iterable[str], before: str) -> list[str]:
    found: list[str] = []
    for name in names:
        number = 2
        own = name
        while own in found:
            own, number = f"{name}{before}{number}", number + 1
        found.append(own)
    return found


def table_files(tables: Sequence[TextTable]) -> dict[str, str]:
    """Name of a file to its content, two a table that has rows."""
    shown = [table for table in tables if table.head and table.rows]
    files = {}
    for name, table in zip(named_apart(table.title for table in shown), shown, strict=True):
        files[f"{name}.csv"] = table_csv(table)
        files[f"{name}.tex"] = latex_table(table)
    return files


def table_csv(table: TextTable) -> str:
    """A column a head; of cells with an interval, a mark or a note a column of each as well.

    Of heads that are the same the second has a 2 behind it, and so on.
    """
    heads, rows = _numbered(table.head, " "), []
    for line in table.rows:
        row: dict[str, str] = {}
        for head, part in zip(heads, line, strict=True):
            if not isinstance(part, Cell):
                row[head] = str(part)
                continue
            row[head] = part.value
            for name in ("interval", "mark", "note"):
                if said := getattr(part, name):
                    row[f"{head}: {name}"] = said
        rows.append(row)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    order = [name for head in heads for name in columns if _of(name, head)]
    return as_csv([{name: row.get(name, "") for name in dict.fromkeys(order)} for row in rows])


def _of(column: str, head: str) -> bool:
    return column == head or column in {f"{head}: {n}" for n in ("interval", "mark", "note")}


def latex_table(table: TextTable) -> str:
    """A ``tabular`` with its title and note as comments; intervals behind the values."""
    lines = [f"% {' '.join(text.split())}" for text in (table.title, table.note) if text]
    lines.append(rf"\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}")
    lines.append(r"\hline")
    lines.append(_line(table.head) + r" \hline")
    lines += [_line([_short(part) for part in row]) for row in table.rows]
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def _short(part: Cell | str) -> str:
    if not isinstance(part, Cell):
        return part
    return " ".join(filter(None, (part.value, part.interval, part.mark)))


def _line(parts: Sequence[str]) -> str:
    row = " & ".join(map(latex, parts)) + r" \\"
    # Behind the row break before it, LaTeX would read such a sign as the break's own argument.
    return f"{{}}{row}" if row[0] in "[*" else row


def latex(text: str) -> str:
    """A text whose signs LaTeX takes for what they are."""
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(str(text).split()))
