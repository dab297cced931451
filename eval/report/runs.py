"""Runs as tables: all below a folder, or two side by side; for the terminal and for a page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from cli.printable import printable
from eval.report.tables import Cell, TextTable, cell, number
from records import Result, ResultFile

MOST_FIGURES = 4  # a run's in the list
# What a run is known by: the first of these that it has, or else its first metric.
HEADLINES = ("decomp_score", "factual_precision", "precision", "balanced_accuracy", "pearson")
# Which result it is; the rest of its fields is what was found.
KEYS = ("metric", "assessor", "variant", "against", "domain", "generator", "kind", "group", "bin")
KEYS += ("selection",)
# What of the provenance two runs may differ in.
_DECIDING = ("config", "data", "checkpoints", "prompts", "versions")


@dataclass(frozen=True)
class ListedRun:
    """A run's folder, as it is listed.

    Attributes:
        command: what wrote it, e.g. ``experiment agreement``; empty where the folder does not say.
        written: when it was last written, in seconds since 1970.
        state: ``finished``, ``unfinished`` (under way, or killed) or ``unreadable``.
        texts: how many documents are done; ``None`` where the folder does not say.
        figure: what is told where there are no results: a training's measure, or what is wrong.
        measure: of ``figure``, where it is one.
        file: its results, where they are there.
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
    """Runs, one a row.

    Args:
        runs: in the order of the table.
        picked: field to value; ``metric`` and ``domain`` also say which results are told.
        page: of which it will be a part; its links lead to the runs' reports.
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


def side_by_side(one: ResultFile, other: ResultFile) -> list[TextTable]:
    """The results of two runs, matched by their keys, and what else differs.

    Args:
        one: A.
        other: B.

    Returns:
        The table of values and of their differences, and that of the provenance.
    """
    ours, theirs = _by_key(one.results), _by_key(other.results)
    keys = list(dict.fromkeys([*ours, *theirs]))
    shown = [i for i, name in enumerate(KEYS) if name == "metric" or _varies(keys, i)]
    rows = []
    for key in keys:
        a, b = ours.get(key), theirs.get(key)
        names = ["" if key[i] is None else printable(str(key[i])) for i in shown]
        rows.append([*names, cell(a), cell(b), _difference(a, b)])
    both = len(ours.keys() & theirs.keys())
    note = (
        f"{both:,} results are in both runs, {len(ours) - both:,} only in A, "
        f"{len(theirs) - both:,} only in B. Brackets hold each run's own 95 % interval."
    )
    head = [*(KEYS[i].capitalize() for i in shown), "A", "B", "A − B"]
    return [TextTable("Results", note, head, rows), _what_differs(one, other)]


def _headline(results: Sequence[Result], picked: dict[str, str]) -> str:
    rows = [row for row in results if row.domain == picked.get("domain", row.domain)]
    metrics = [row.metric for row in rows]
    usual = next((name for name in [*HEADLINES, *metrics] if name in metrics), None)
    rows = [row for row in rows if row.metric == picked.get("metric", usual)]
    rows = [row for row in rows if (row.group, row.bin) == ("all", "all")] or rows
    rows = [row for row in rows if row.against is None] or rows
    rows = [row for row in rows if row.variant is None] or rows
    keys = list(_by_key(rows))
    shown = [i for i, name in enumerate(KEYS) if name != "metric" and _varies(keys, i)]
    told = []
    for row in rows[:MOST_FIGURES]:
        names = [str(getattr(row, KEYS[i])) for i in shown if getattr(row, KEYS[i]) is not None]
        told.append(" ".join([*names, number(row.value)]))
    more = [f"and {len(rows) - len(told):,} more"] if len(rows) > len(told) else []
    return f"{rows[0].metric} {'; '.join([*told, *more])}" if rows else ""


def _by_key(results: Iterable[Result]) -> dict[tuple, Result]:
    found: dict[tuple, Result] = {}
    for row in results:
        key, place = tuple(getattr(row, name) for name in KEYS), 0
        while (*key, place) in found:
            place += 1
        found[*key, place] = row
    return found


def _varies(keys: Sequence[tuple], place: int) -> bool:
    return len({key[place] for key in keys}) > 1


def _difference(a: Result | None, b: Result | None) -> str:
    if a is None or b is None or a.value is None or b.value is None:
        return "–"
    return f"{a.value - b.value:+z.3f}"


def _what_differs(one: ResultFile, other: ResultFile) -> TextTable:
    ours, theirs = _deciding(one), _deciding(other)
    rows = [
        [printable(key), *(printable(side.get(key, "–")) for side in (ours, theirs))]
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key) != theirs.get(key)
    ]
    note = "Configuration, content of files (SHA-256) and versions, by their keys in results.json."
    if not rows:
        note = "Nothing: configuration, content of files and versions are the same."
    return TextTable("What differs", note, ["Key", "A", "B"], rows)


def _deciding(file: ResultFile) -> dict[str, str]:
    found = {"experiment": file.experiment}
    for name in _DECIDING:
        found |= _flat(file.provenance.get(name), name)
    # A checkpoint is its weights; its measures come with them.
    return {k: v for k, v in found.items() if not k.startswith("checkpoints") or "sha256" in k}


def _flat(value: object, where: str) -> dict[str, str]:
    if isinstance(value, dict) and value:
        parts = [(f"{where}.{key}", item) for key, item in value.items()]
    elif isinstance(value, list) and value:
        parts = [(f"{where}[{place}]", item) for place, item in enumerate(value)]
    else:
        return {where: json.dumps(value, ensure_ascii=False)}
    return {key: text for way, item in parts for key, text in _flat(item, way).items()}


def _report(folder: Path, page: Path) -> str:
    report = folder / "report.html"
    if not report.is_file():
        return ""
    # Quoted, no name in it can be read as the scheme of an address.
    return quote(os.fsencode(os.path.relpath(report, page.parent)))
