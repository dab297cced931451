"""A result as a cell of a table."""

from __future__ import annotations

from eval.report.declare import Cell, interval, number
from eval.report.tables import unit_of
from records import Result


def note_of(row: Result) -> str:
    """Topics, and what could not be judged."""
    return f"n = {row.n}" + f", {row.failed:,} not judged" * bool(row.failed)


def shown(row: Result | None, as_: str = "") -> Cell:
    """A result in a cell.

    Args:
        as_: a format, e.g. ``+z.3f`` for a difference; without it that of the metric.
    """
    if row is None:
        return Cell("–")
    if row.value is None:
        return Cell("–", note=note_of(row))
    if as_:
        ends = "" if row.ci95 is None else f"[{row.ci95[0]:{as_}}, {row.ci95[1]:{as_}}]"
        return Cell(f"{row.value:{as_}}", ends, note_of(row))
    unit = unit_of(row.metric)
    return Cell(number(row.value, unit), interval(row, unit), note_of(row))
