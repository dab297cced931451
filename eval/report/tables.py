"""Tables as Markdown and as CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO

from records import Result

# Between a number and what belongs to it: its spread, or the other end of its interval.
_WITHIN = re.compile(r"(?<=\d) (?=±)|(?<=±) (?=\d)|(?<=\d,) (?=[-−]?\d+(\.\d+)?\])")
_SHARES = {"kept_share", "respond_ratio", "empty_selection"}
_COUNTS = {"judged", "supported", "contradicted", "undecided", "irrelevant"}
_FIELDS = ("metric", "selection", "kind", "generator", "domain", "group")


@dataclass(frozen=True)
class TextTable:
    """A table of a page and of ``tables.md``."""

    title: str
    note: str
    head: list[str]
    rows: list[list[str]]


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, its cells made plain."""
    lines = [f"| {' | '.join(map(plain, line))} |" for line in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:], ""])


def plain(text: str) -> str:
    """A text in one line that is neither the end of a cell nor a piece of HTML."""
    text = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unbroken(text: str) -> str:
    """A cell of a page whose lines break beside its numbers and intervals, not within them."""
    return _WITHIN.sub("\N{NO-BREAK SPACE}", text)


def results_csv(results: Sequence[Result]) -> str:
    """All results, one a line, with the ends of their intervals."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_FIELDS, "value", "low", "high", "n", "failed"])
    for row in results:
        ends = row.ci95 or ("", "")
        value = "" if row.value is None else row.value
        names = [getattr(row, field) for field in _FIELDS]
        writer.writerow([*names, value, *ends, row.n, row.failed])
    return out.getvalue()


def number_with_interval(row: Result | None, digits: int = 3) -> str:
    """A value and its 95 % interval in brackets; a dash for none."""
    if row is None or row.value is None:
        return "–"
    value, *ends = (f"{x:.{digits}f}" for x in (row.value, *(row.ci95 or ())))
    return f"{value} [{', '.join(ends)}]" if ends else value


def number(value: float | None, metric: str = "") -> str:
    """A value with the digits and the unit that its metric is read in; a dash for no value."""
    if value is None:
        return "–"
    name = metric.partition(":")[0]  # of several assessors
    if name in _SHARES:
        return f"{100 * value:.1f} %"
    if name in _COUNTS:
        return f"{value:,.0f}"
    return f"{value:.1f}" if name == "claims" else f"{value:.3f}"


def interval(row: Result) -> str:
    """The 95 % interval in brackets, in the unit of the value."""
    if row.ci95 is None:
        return ""
    low, high = (number(end, row.metric).removesuffix(" %") for end in row.ci95)
    return f"[{low}, {high}]" + (" %" if row.metric.partition(":")[0] in _SHARES else "")
