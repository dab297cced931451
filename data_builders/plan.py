"""What a build would ask and read, before it asks: the steps that ``--dry_run`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One kind of work of a build.

    Attributes:
        what: what it is for, e.g. ``citizenship of the people``.
        source: who is asked or read: an endpoint, a file, a model.
        number: how many requests, rows or texts at most; ``None`` where only the answer to an
            earlier step tells.
        unit: what ``number`` counts, e.g. ``requests``.
        seconds: how long it takes at the rate that the source's etiquette allows; ``None`` for
            unknown.
    """

    what: str
    source: str
    number: int | None = None
    unit: str = "requests"
    seconds: float | None = None


def show_plan(name: str, steps: Sequence[Step]) -> str:
    """The steps as a table for the terminal, with what they take together."""
    rows = [("step", "source", "at most", "time")]
    for step in steps:
        number = "depends" if step.number is None else f"{step.number:,} {step.unit}"
        rows.append((step.what, step.source, number, _duration(step.seconds)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in rows]
    known = sum(step.seconds or 0 for step in steps)
    open_steps = sum(step.seconds is None for step in steps)
    more = f", and {open_steps} step(s) whose time is not known yet" if open_steps else ""
    return "\n".join([*lines, "", f"{name}: {_duration(known)}{more}; nothing was asked."])


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "depends"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
