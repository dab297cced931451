"""Drawings of several plots side by side: curves against a level, and boxes of distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eval.report.figures import (
    COLOURS,
    HATCHES,
    LINES,
    MARKERS,
    Hints,
    Line,
    drawing,
    plain_label,
    written,
)

COLUMNS = 3
MAX_GROUPS = 40  # rows of boxes in a drawing
MAX_LABEL = 36  # characters; hints have names in full


class Curve(NamedTuple):
    """A line of a plot.

    Attributes:
        line: its points, band and hints.
        level: what it is held against, drawn dashed.
        crossing: the point at which it is above that for the first time, marked by a star.
        look: number of its colour and of its kind of line, where lines that share one belong
            together; else each line of a plot has a colour of its own.
    """

    line: Line
    level: float | None = None
    crossing: tuple[float, float] | None = None
    look: tuple[int, int] | None = None


class Box(NamedTuple):
    """A distribution: number of values, mean, 5 %, quartiles and 95 %."""

    n: int
    mean: float
    low: float
    q1: float
    median: float
    q3: float
    high: float


def box_of(values: Sequence[float]) -> Box | None:
    """The box of some numbers; ``None`` of none."""
    if not len(values):
        return None
    quantiles = np.percentile(values, [5, 25, 50, 75, 95]).tolist()
    return Box(len(values), float(np.mean(values)), *quantiles)


def curve_panels(
    panels: Mapping[str, Mapping[str, Curve]],
    xlabel: str,
    ylabel: str,
    ticks: Sequence[float],
    top: float | None = 1.02,
) -> str:
    """A plot a name, a line a series; levels dashed in the line's colour.

    Args:
        top: where the plots end; ``None``: above the largest value.
    """
    told = Hints()
    with drawing():
        columns = 1 if len(panels) <= COLUMNS else 2
        figure, plots = _grid(list(panels), columns, width=2.9, height=1.7)
        for axes, own in zip(plots, panels.values(), strict=True):
            looks = zip(own.items(), cycle(COLOURS), cycle(MARKERS), strict=False)
            for (name, curve), colour, marker in looks:
                _draw(axes, name, curve, (colour, marker), told)
            axes.set_ylim(0, top)
            axes.set_xticks(ticks)
        for axes in plots[-columns:]:
            axes.set_xlabel(plain_label(xlabel))
        for axes in plots[::columns]:
            axes.set_ylabel(plain_label(ylabel))
        _legend(figure, plots)
        return written(figure, told)


def _draw(axes: Axes, name: str, curve: Curve, look: tuple[str, str], told: Hints) -> None:
    (colour, marker), line = look, LINES[0]
    if curve.look is not None:
        colour, line = COLOURS[curve.look[0] % len(COLOURS)], LINES[curve.look[1] % len(LINES)]
        marker = MARKERS[curve.look[0] % len(MARKERS)]
    x, y = ([point[side] for point in curve.line.points] for side in (0, 1))
    axes.plot(x, y, label=_label(name), color=colour, linestyle=line, marker=marker, markersize=4)
    if curve.line.band:
        at, low, high = zip(*curve.line.band, strict=True)
        axes.fill_between(at, low, high, color=colour, alpha=0.16, linewidth=0)
    if curve.level is not None:
        axes.axhline(curve.level, color=colour, linestyle=LINES[1], linewidth=1)
    if curve.crossing is not None:
        axes.plot(*curve.crossing, "*", color=colour, markersize=13, markeredgecolor="#222222")
    for point, text in zip(curve.line.points, curve.line.hints, strict=False):
        (mark,) = axes.plot(*point, "o", color=colour, markersize=7, alpha=0)
        told.put(mark, text)


def box_panels(
    panels: Mapping[str, Mapping[str, Sequence[Box | None]]], groups: Sequence[str], xlabel: str
) -> str:
    """A plot a name, a row a group, in it a box a series; a cross is the mean.

    Args:
        panels: name to series to one box a group.
        groups: at most ``MAX_GROUPS``.
        xlabel: of values from 0 to 1.
    """
    told = Hints()
    series = max((len(own) for own in panels.values()), default=1)
    with drawing():
        height = 1.1 + len(groups) * (0.22 * series + 0.12)
        figure, plots = _grid(list(panels), COLUMNS, width=3.2, height=height)
        for axes, own in zip(plots, panels.values(), strict=True):
            looks = zip(own.items(), cycle(COLOURS), cycle(HATCHES), strict=False)
            for place, ((name, boxes), colour, hatch) in enumerate(looks):
                _boxes(axes, (name, boxes), (place, series), (colour, hatch), told)
            axes.set_yticks(range(len(groups)), [_label(group) for group in groups])
            axes.set_ylim(len(groups) - 0.45, -0.55)
            axes.set_xlim(-0.02, 1.02)
            axes.set_xlabel(plain_label(xlabel))
        _legend(figure, plots)
        return written(figure, told)


def _boxes(
    axes: Axes,
    named: tuple[str, Sequence[Box | None]],
    place: tuple[int, int],
    look: tuple[str, str],
    told: Hints,
) -> None:
    name, boxes = named
    width = 0.8 / place[1]
    there = [(row, box) for row, box in enumerate(boxes) if box is not None]
    at = [row + (place[0] - (place[1] - 1) / 2) * width for row, _ in there]
    stats = [
        {
            "whislo": b.low,
            "q1": b.q1,
            "med": b.median,
            "q3": b.q3,
            "whishi": b.high,
            "mean": b.mean,
            "fliers": [],
        }
        for _, b in there
    ]
    drawn = axes.bxp(
        stats,
        positions=at,
        widths=width * 0.8,
        orientation="horizontal",
        showmeans=True,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": look[0], "alpha": 0.75, "hatch": look[1], "edgecolor": "#222222"},
        medianprops={"color": "#222222"},
        meanprops={"marker": "x", "markeredgecolor": "#222222", "markersize": 4},
    )
    for mark, (_, box) in zip(drawn["boxes"], there, strict=True):
        told.put(mark, f"{name}: mean {box.mean:.3f}, median {box.median:.3f}, {box.n} texts")
    axes.barh([0], [0], color=look[0], hatch=look[1], label=_label(name))


def _label(text: str) -> str:
    return plain_label(text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…")


def _legend(figure: Figure, plots: Sequence[Axes]) -> None:
    marks = {}
    for axes in plots:
        for mark, name in zip(*axes.get_legend_handles_labels(), strict=True):
            marks.setdefault(name, mark)
    if len(marks) > 1:
        place = {"loc": "outside lower center", "ncols": min(len(marks), 4)}
        figure.legend(marks.values(), marks.keys(), frameon=False, fontsize=8, **place)


def _grid(
    titles: Sequence[str], most: int, width: float, height: float
) -> tuple[Figure, list[Axes]]:
    columns = min(len(titles), most)
    rows = math.ceil(len(titles) / columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True).flatten()
    for axes in grid[len(titles) :]:
        axes.remove()
    for axes, title in zip(grid, titles, strict=False):
        axes.set_title(_label(title), fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, list(grid[: len(titles)])
