"""Declarations of report pages: tables, figures and texts, by fields of results.

``eval/report/render.py`` renders them and documents the declarations. This module does not import
matplotlib, so experiments can import it cheaply.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from records import Result, ResultFile, iter_rows

# A field of results to its value, to a list of values, or to a function of its value.
Where = Mapping[str, object]
# An x (a number, or a group's name), a value, and the ends of its interval.
Point = tuple[float | str, float, tuple[float, float] | None]
# A part of a claim, and whether it is kept; None if not judged.
Runs = Sequence[tuple[str, bool | None]]

_FORMATS = {"score": ".3f", "mean": ".2f", "tenth": ".1f", "total": ",.0f"}
_DEFAULTS = {name: field.default for name, field in Result.model_fields.items()}


# Values


@dataclass(frozen=True)
class Cell:
    """A value with its interval, note and mark.

    Attributes:
        mark: short label of the value, e.g. ``gamed``.
        good: colour of the mark: good, bad, or neither.
        shade: position in the heat map's colours, from 0 to 1.
    """

    value: str
    interval: str = ""
    note: str = ""
    mark: str = ""
    good: bool | None = None
    shade: float | None = None

    def __str__(self) -> str:
        note = self.note and f"({self.note})"
        return " ".join(filter(None, (self.value, self.interval, self.mark, note)))


def number(value: float | None, unit: str = "score") -> str:
    """Format a value in its unit; a dash for no value.

    Args:
        unit: ``score`` (three digits), ``mean`` (two), ``tenth`` (one), ``total`` (none),
            ``share`` (per cent), or ``p`` (four digits, smaller ones with an exponent).
    """
    if value is None:
        return "–"
    if unit == "p":
        return f"{value:.4f}" if value >= 1e-4 or value == 0 else f"{value:.1e}"
    return f"{100 * value:.1f} %" if unit == "share" else f"{value:{_FORMATS[unit]}}"


def interval(row: Result, unit: str = "score") -> str:
    """Format the 95 % interval in brackets, in the unit of the value; empty without one."""
    if row.ci95 is None:
        return ""
    low, high = (number(end, unit).removesuffix(" %") for end in row.ci95)
    return f"[{low}, {high}]"


def cell(row: Result | None, unit: str = "score", note: str = "") -> Cell:
    """Format a result as a table cell; a dash for none.

    Args:
        note: note of the cell, with fields of the result in braces.
    """
    if row is None:
        return Cell("–")
    return Cell(number(row.value, unit), interval(row, unit), note.format_map(dict(row)))


# Tables


@dataclass(frozen=True)
class TextTable:
    """A rendered table: column headings and rows of cells."""

    title: str
    note: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Cell | str]] = field(default_factory=list)
    folded: bool = False


@dataclass(frozen=True)
class Table:
    """A table of results: a row for each value of some fields, a column for each of others.

    Rows and columns follow the order of the results, grouped by the first field.
    Each row ends with its largest ``n`` and ``failed``; a cell with other ones names them. Fields
    that have their default in all rows are left out, and so is a table without rows.

    Attributes:
        rows: the fields that name a row, with their heads.
        columns: the fields that name a column.
        metrics: the metrics that are shown, with their names in the heads; empty for all.
        heads: values of ``columns`` (a tuple for several fields) to column headings; other columns
            are not shown.
        where: which results are shown.
        unit: of the values (:func:`number`), or a metric or variant to that of its values.
        mark: function of a result that returns its mark and whether it is good.
    """

    title: str
    rows: Mapping[str, str]
    columns: Sequence[str] = ("metric",)
    metrics: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    where: Where = field(default_factory=dict)
    heads: Mapping[object, str] = field(default_factory=dict)
    unit: str | Mapping[str, str] = "score"
    mark: Callable[[Result], tuple[str, bool | None]] = lambda row: ("", None)

    def of(self, results: Iterable[Result]) -> TextTable:
        """The table of some results."""
        selected = _select_rows(results, self.where, self.metrics)
        if self.heads:
            selected = [row for row in selected if _key(row, self.columns) in self.heads]
        columns = list(self.heads or dict.fromkeys(_key(row, self.columns) for row in selected))
        if self.metrics and not self.heads and self.columns[0] == "metric":
            order = list(self.metrics)
            columns.sort(key=lambda key: order.index(key if isinstance(key, str) else key[0]))
        lines: dict[tuple, dict[object, Result]] = {}
        for row in selected:
            place = tuple(getattr(row, name) for name in self.rows)
            lines.setdefault(place, {})[_key(row, self.columns)] = row
        first = list(dict.fromkeys(place[0] for place in lines))
        named = [at for at in range(len(self.rows)) if self._is_named(at, lines)]
        columns = [key for key in columns if any(key in line for line in lines.values())]
        rows = [
            [*self._names(place, named), *self._cells(lines[place], columns)]
            for place in sorted(lines, key=lambda place: first.index(place[0]))  # stable
        ]
        heads = [self.heads.get(key) or _head(self.columns, key, self.metrics) for key in columns]
        names = list(self.rows.values())
        head = [*(names[at] for at in named), *heads, "n", "failed"]
        return TextTable(self.title, self.note, head, rows)

    def _is_named(self, at: int, places: Iterable[tuple]) -> bool:
        name, values = list(self.rows)[at], {place[at] for place in places}
        return not at or (len(values) > 1 if name == "domain" else values != {_DEFAULTS[name]})

    def _names(self, place: tuple, named: Sequence[int]) -> list[str]:
        fields = list(self.rows)
        return [
            self.metrics.get(place[at], place[at]) if fields[at] == "metric" else _text(place[at])
            for at in named
        ]

    def _cells(self, line: Mapping[object, Result], columns: Sequence[object]) -> list[Cell | str]:
        n, failed = (max(getattr(row, name) for row in line.values()) for name in ("n", "failed"))
        return [*(self._cell(line.get(key), n, failed) for key in columns), f"{n:,}", f"{failed:,}"]

    def _cell(self, row: Result | None, n: int, failed: int) -> Cell:
        if row is None:
            return Cell("–")
        units = {} if isinstance(self.unit, str) else self.unit
        unit = units.get(row.variant) or units.get(row.metric)
        unit = unit or (self.unit if isinstance(self.unit, str) else "score")
        other = [f"n = {row.n:,}"] * (row.n != n) + [f"{row.failed:,} failed"] * (
            row.failed != failed
        )
        mark, good = self.mark(row)
        return Cell(number(row.value, unit), interval(row, unit), ", ".join(other), mark, good)


def _select_rows(results: Iterable[Result], where: Where, metrics: Iterable[str]) -> list[Result]:
    conditions = {"metric": list(metrics), **where} if metrics else where
    return [r for r in results if all(_fits(getattr(r, k), v) for k, v in conditions.items())]


def _fits(value: object, expected: object) -> bool:
    if callable(expected):
        return bool(expected(value))
    return value in expected if isinstance(expected, list | tuple | set) else value == expected


def _key(row: Result, fields: Sequence[str]) -> object:
    values = tuple(getattr(row, name) for name in fields)
    return values[0] if len(values) == 1 else values


def _text(value: object) -> str:
    if value is None or value == "none":
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _head(fields: Sequence[str], key: object, metrics: Mapping[str, str]) -> str:
    values = key if isinstance(key, tuple) and len(fields) > 1 else (key,)
    parts = []
    for name, value in zip(fields, values, strict=True):
        if name == "metric":
            parts.append(metrics.get(value, value.replace("_", " ")))
        elif value != _DEFAULTS.get(name) or len(fields) == 1:
            parts.append(f"against {value}" if name == "against" and value else _text(value))
    return ", ".join(filter(None, parts))


# Figures


@dataclass(frozen=True)
class Plot:
    """What a figure draws.

    Attributes:
        series: name to its points.
        x, y: labels of the axes.
        top: the end of an axis of values that begins at 0; found from them without it.
        square: the plot has sides of the same length.
    """

    title: str
    kind: Literal["bars", "lines"]
    series: Mapping[str, Sequence[Point]]
    x: str = ""
    y: str = ""
    top: float | None = None
    square: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure of results, with their intervals: bars side by side, or lines over an axis.

    Attributes:
        x: the field along the axis: names of groups of bars, or the numbers below the lines.
        series: the fields that name a bar of a group, or a line. Of several results that fall in
            one place the largest is drawn.
        each: the fields of whose values each has a plot.
        metrics, where: as of :class:`Table`.
        label: of the values; without it the title.
    """

    title: str
    x: str
    series: Sequence[str]
    metrics: Mapping[str, str] = field(default_factory=dict)
    where: Where = field(default_factory=dict)
    each: Sequence[str] = ()
    label: str = ""
    kind: Literal["bars", "lines"] = "bars"

    def of(self, results: Iterable[Result]) -> list[Plot]:
        """The plots of some results."""
        plots: dict[str, dict[str, dict[float | str, Result]]] = {}
        for row in _select_rows(results, self.where, self.metrics):
            at = getattr(row, self.x)
            if row.value is None or (self.kind == "lines" and not isinstance(at, int | float)):
                continue
            of = _head(self.each, _key(row, self.each), self.metrics) if self.each else ""
            name = _head(self.series, _key(row, self.series), self.metrics)
            points = plots.setdefault(of, {}).setdefault(name, {})
            if at not in points or points[at].value < row.value:
                points[at] = row
        return [
            Plot(
                f"{self.title} ({of})" if of else self.title,
                self.kind,
                {
                    name: [(at, row.value, row.ci95) for at, row in self._ordered(points)]
                    for name, points in series.items()
                },
                "" if self.kind == "bars" else self.x,
                self.label or self.title,
            )
            for of, series in plots.items()
        ]

    def _ordered(self, points: Mapping[float | str, Result]) -> list[tuple]:
        return sorted(points.items()) if self.kind == "lines" else list(points.items())


# Pages


def rows_in(path: Path) -> Iterator[dict]:
    """Yield the rows of a file of the run folder; none if the file is missing."""
    if path.is_file() and path.stat().st_size:
        yield from (row for _, row in iter_rows(path))


class Line(NamedTuple):
    """A line below a text: a claim or a verdict.

    Attributes:
        label: row heading, e.g. the decomposer.
        runs: the claim with kept and dropped words.
        mark: short label, e.g. a verdict.
        good: colour of the mark: good, bad, or neither.
        note: further information.
    """

    label: str
    runs: Runs = ()
    mark: str = ""
    good: bool | None = None
    note: str = ""


@dataclass(frozen=True)
class Excerpt:
    """A text of a run with its claims and verdicts.

    Attributes:
        tag: category; a page shows the first texts of each.
        text: in full.
        notes: notes below the lines, e.g. passages.
    """

    title: str
    lines: Sequence[Line]
    tag: str = ""
    text: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """How the results of an experiment are shown.

    Attributes:
        question: its title.
        about: what the experiment does, and over what n counts and intervals are taken.
        tables: declared, or functions of the results file and the run folder that give tables.
        figures: declared, or functions of the same that give plots.
        summary: takes the results file and gives sentences for the top of the page and the
            terminal.
        lead_lines: number of these sentences that the page does not fold.
        texts: takes the run folder and gives texts to look into.
        documents: whether the page shows the documents of ``scored.jsonl`` with their verdicts.
        terminal: which results the terminal shows when the run ends; ``None`` for none.
    """

    question: str
    about: str
    tables: Sequence[Table | Callable[[ResultFile, Path], Iterable[TextTable]]]
    figures: Sequence[Figure | Callable[[ResultFile, Path], Iterable[Plot]]] = ()
    summary: Callable[[ResultFile], Sequence[str]] = lambda file: ()
    texts: Callable[[Path], Iterable[Excerpt]] = lambda folder: ()
    documents: bool = False
    lead_lines: int = 6
    terminal: Where | None = field(default_factory=dict)

    def terminal_results(self, results: Iterable[Result]) -> list[Result]:
        """The results that the terminal shows."""
        return [] if self.terminal is None else _select_rows(results, self.terminal, ())
