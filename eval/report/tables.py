"""Numbers and tables as text: for a page, for Markdown, for CSV and for the terminal."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO

from records import Result, in_markdown

# How values are read: a share in per cent, totals, and means of so many digits.
_DIGITS = {"score": ".3f", "mean": ".2f", "tenth": ".1f", "total": ",.0f"}
_UNITS = {
    **dict.fromkeys(("kept_share", "respond_ratio", "empty_selection"), "share"),
    **dict.fromkeys(("supported_if_true", "supported_if_false"), "share"),
    **dict.fromkeys(("judged", "supported", "contradicted", "undecided", "irrelevant"), "total"),
    "claims": "tenth",
}
# What the variants of a run with a control are called, and what is said below a value.
COMPONENTS = {"trained": "trained components", "untrained": "untrained control"}
NOT_JUDGED = "n = {n}, {failed} not judged"
_PLACES = ("domain", "generator", "kind", "group", "bin", "selection")
_NAMES = ("metric", "assessor", "variant", "against")
# Between a number and what belongs to it: its spread, or the other end of its interval.
_WITHIN = re.compile(r"(?<=\d) (?=±)|(?<=±) (?=\d)|(?<=\d,) (?=[-−]?\d+(\.\d+)?\])")

# What a spreadsheet computes, also behind blanks, and what begins like it.
_FORMULA = re.compile(r"[\t\n]|\s*[=+@＝＋－＠-]")
_NUMBER = re.compile(r"[+-]?[\d,.]+(e[+-]?\d+)?( ?%)?", re.IGNORECASE)


@dataclass(frozen=True)
class Cell:
    """A value, its interval, and what it is of; a page sets them apart.

    Attributes:
        mark: a word on the value, e.g. ``gamed``.
        good: how a page colours the mark: good, bad, or neither.
        link: where a page leads from the value.
    """

    value: str
    interval: str = ""
    note: str = ""
    mark: str = ""
    good: bool | None = None
    link: str = ""

    def __str__(self) -> str:
        note = self.note and f"({self.note})"
        return " ".join(filter(None, (self.value, self.interval, self.mark, note)))


@dataclass(frozen=True)
class TextTable:
    """A table of a page and of ``tables.md``, or, without a ``head``, what stands above several.

    Attributes:
        figures: the drawings that a page shows with it, where they are.
        within: it belongs to the one above it and can be folded away.
    """

    title: str
    note: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Cell | str]] = field(default_factory=list)
    figures: Sequence[str] = ()
    within: bool = False


# Values


def unit_of(metric: str) -> str:
    """How a metric of ``score`` and of texts by kind is read."""
    return _UNITS.get(metric, "score")


def number(value: float | None, unit: str = "score") -> str:
    """A value as its unit is read; a dash for no value."""
    if value is None:
        return "–"
    return f"{100 * value:.1f} %" if unit == "share" else f"{value:{_DIGITS[unit]}}"


def interval(row: Result, unit: str = "score") -> str:
    """The 95 % interval in brackets, in the unit of the value; nothing without one."""
    if row.ci95 is None:
        return ""
    low, high = (number(end, unit).removesuffix(" %") for end in row.ci95)
    return f"[{low}, {high}]"


def cell(row: Result | None, unit: str = "score", note: str = "") -> Cell:
    """A result in a table; a dash for none.

    Args:
        note: what is said of it, with the fields of the result in braces.
    """
    if row is None:
        return Cell("–")
    return Cell(number(row.value, unit), interval(row, unit), note.format_map(dict(row)))


def unbroken(text: object) -> str:
    """A cell of a page whose lines break beside its numbers and intervals, not within them."""
    return _WITHIN.sub("\N{NO-BREAK SPACE}", str(text))


# Tables


def by(rows: Iterable[Result], *fields: str) -> dict:
    """Results by one of their fields, or by several."""
    if len(fields) == 1:
        return {getattr(row, fields[0]): row for row in rows}
    return {tuple(getattr(row, name) for name in fields): row for row in rows}


def pivot(
    results: Iterable[Result],
    place: Sequence[str],
    key: Sequence[str],
    heads: Mapping[tuple, str],
) -> tuple[list[str], list[tuple[tuple, list[Result | None]]]]:
    """Results side by side; what is empty throughout is left out.

    Args:
        place: the fields that say the row.
        key: the fields that say the column.
        heads: the values of ``key`` to the heads of their columns.

    Returns:
        The heads of the columns, and of each row its place and a result a column.
    """
    cells: dict[tuple, dict[tuple, Result]] = {}
    for row in results:
        column = tuple(getattr(row, name) for name in key)
        if column in heads:
            cells.setdefault(tuple(getattr(row, name) for name in place), {})[column] = row
    shown = [column for column in heads if any(column in own for own in cells.values())]
    rows = [(place, [own.get(column) for column in shown]) for place, own in cells.items()]
    return [heads[column] for column in shown], rows


def strata_tables(results: Sequence[Result]) -> list[TextTable]:
    """The table of the groups and bins that texts have; none of a run whose texts have neither."""
    columns = {
        ("factual_precision", "none"): "Precision without Core",
        ("factual_precision", "core"): "Precision with Core",
        ("kept_share", "core"): "What Core keeps",
    }
    fields = ("group", "bin", "kind", "generator", "assessor", "variant")
    own = [row for row in results if (row.group, row.bin) != ("all", "all")]
    heads, found = pivot(own, fields, ("metric", "selection"), columns)
    several = any(place[4] for place, _ in found)
    rows = []
    for (group, bin_, kind, generator, assessor, variant), cells in found:
        name = f"group {group}" if bin_ == "all" else f"frequency {bin_}"
        place = [name, f"{kind} ({generator})", *([assessor or ""] if several else [])]
        shown = [cell(row, unit_of(row.metric) if row else "score", NOT_JUDGED) for row in cells]
        rows.append([*place, str(variant or ""), *shown])
    note = "The same texts apart: by the group of their topic, and by the bin of its frequency."
    head = ["Topics", "Texts (generator)", *(["Assessor"] if several else []), "Components"]
    table = TextTable("By group and frequency", note, [*head, *heads], rows)
    return [table] if rows else []


def markdown(tables: Iterable[TextTable], first: str) -> str:
    """Tables one below the other, ``first`` above them."""
    parts = [f"{first}\n"]
    for table in tables:
        text = [f"##{'#' * table.within} {in_markdown(table.title)}", in_markdown(table.note)]
        if table.head:
            text.append(markdown_table(table.head, table.rows))
        parts.append("\n\n".join(filter(None, text)) + ("" if table.head else "\n"))
    return "\n".join(parts)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[Cell | str]]) -> str:
    """A table, its cells made plain."""
    lines = [f"| {' | '.join(in_markdown(str(part)) for part in line)} |" for line in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:], ""])


def results_csv(results: Sequence[Result]) -> str:
    """All results, one a line, with the ends of their intervals."""
    rows = []
    for row in results:
        low, high = row.ci95 or ("", "")
        names = {name: getattr(row, name) for name in (*_NAMES, *_PLACES)}
        rows.append(names | {"value": row.value, "low": low, "high": high} | _counts(row))
    return as_csv(rows)


def _counts(row: Result) -> dict:
    return {"n": row.n, "failed": row.failed}


def as_csv(rows: Sequence[Mapping]) -> str:
    """Rows with a column a name that any of them has; nothing for ``None``.

    A text that a spreadsheet would take for a formula has an apostrophe before it, and a carriage
    return, which begins a row without quotation marks around it, is a line feed.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_no_formula, columns))
    writer.writerows([_no_formula(row.get(name, "")) for name in columns] for row in rows)
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
    """Results one a line under their fields; what is the same of all of them is left out."""
    if not rows:
        return ""
    kept = [
        name
        for name in ("metric", *_PLACES, *_NAMES[1:])
        if name == "metric" or len({getattr(row, name) for row in rows}) > 1
    ]
    names = [["" if (v := getattr(row, n)) is None else str(v) for n in kept] for row in rows]
    values = [f"{number(r.value)} {interval(r)}".strip() for r in rows]
    ends = [f"{v} n={r.n} failed={r.failed}" for v, r in zip(values, rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(kept, *names, strict=True)]
    lines = []
    for own, end in zip([kept, *names], ["value", *ends], strict=True):
        place = " ".join(name.ljust(width) for name, width in zip(own, widths, strict=True))
        lines.append(f"{place} {end}")
    return "\n".join(lines)
