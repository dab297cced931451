"""The runs below a folder as a table, for the terminal and for a page."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from cli.printable import printable
from eval.report.comparison import KEYS, by_key, varies
from eval.report.declare import Cell, TextTable, number
from records import Result, ResultFile

MOST_FIGURES = 4  # a run's in the list
# Metric shown for a run: the first of these that it has, else its first metric.
HEADLINES = ("decomp_score", "factual_precision", "precision", "balanced_accuracy", "pearson")


@dataclass(frozen=True)
class ListedRun:
    """A listed run folder.

    Attributes:
        command: the command, e.g. ``experiment agreement``; empty if unknown.
        written: time of the last write, in seconds since 1970.
        state: ``finished``, ``unfinished`` (running or interrupted) or ``unreadable``.
        texts: number of processed documents; ``None`` if unknown.
        figure: shown without results: a metric of a training, or an error.
        measure: name of the metric in ``figure``.
        file: its results, if present.
    """

    folder: Path
    command: str
    written: float
    state: str
    texts: int | None = None
    figure: str = ""
    measure: str | None = None
    file: ResultFile | None = None


def runs_table(runs: Sequence[ListedRun], picked: dict[str, str], page: Path | None) -> TextTable:
    """Return the table of runs, one per row.

    Args:
        runs: in the order of the table.
        picked: field to value; ``metric`` and ``domain`` also select the results shown.
        page: path of the page, for relative links to the runs' reports.
    """
    rows: list[list[Cell | str]] = []
    for run in runs:
        figure = _headline(run.file.results, picked) if run.file else run.figure
        when = datetime.fromtimestamp(run.written, UTC).strftime("%Y-%m-%d %H:%M")
        texts = "–" if run.texts is None else f"{run.texts:,}"
        name = Cell(printable(str(run.folder)), link=_report(run.folder, page) if page else "")
        rows.append([name, printable(run.command) or "–", when, run.state, texts])
        rows[-1].append(printable(figure) or "–")
    head = ["Run", "Command", "Written (UTC)", "State", "Texts", "Figures"]
    return TextTable("Runs", f"{len(runs):,} in all, the last written last.", head, rows)


def _headline(results: Sequence[Result], picked: dict[str, str]) -> str:
    rows = [row for row in results if row.domain == picked.get("domain", row.domain)]
    metrics = [row.metric for row in rows]
    usual = next((name for name in [*HEADLINES, *metrics] if name in metrics), None)
    rows = [row for row in rows if row.metric == picked.get("metric", usual)]
    rows = [row for row in rows if (row.group, row.bin) == ("all", "all")] or rows
    rows = [row for row in rows if row.against is None] or rows
    rows = [row for row in rows if row.variant is None] or rows
    keys = list(by_key(rows))
    fields = [i for i, name in enumerate(KEYS) if name != "metric" and varies(keys, i)]
    figures = []
    for row in rows[:MOST_FIGURES]:
        names = [str(getattr(row, KEYS[i])) for i in fields if getattr(row, KEYS[i]) is not None]
        figures.append(" ".join([*names, number(row.value)]))
    more = [f"and {len(rows) - len(figures):,} more"] if len(rows) > len(figures) else []
    return f"{rows[0].metric} {'; '.join([*figures, *more])}" if rows else ""


def _report(folder: Path, page: Path) -> str:
    report = folder / "report.html"
    if not report.is_file():
        return ""
    # Quoted, no name in it can be read as the scheme of an address.
    return quote(os.fsencode(os.path.relpath(report, page.parent)))
