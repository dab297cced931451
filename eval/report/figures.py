"""Drawings as SVG texts: bars, lines, and what all drawings share.

Colours are Okabe and Ito's, which the colour-blind can tell apart; hatches, line styles and markers
differ too. Equal numbers give equal bytes. Every text is a text of the drawing; a mark may have a
hint, which shows where the pointer rests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from itertools import cycle
from typing import NamedTuple
from xml.sax.saxutils import escape

import matplotlib
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from cli.printable import printable

STYLE = {"svg.hashsalt": "factfoundry", "svg.fonttype": "none", "font.family": "DejaVu Sans"}
ORANGE, BLUE, GREEN, GREY = "#D55E00", "#0072B2", "#009E73", "#7A7A7A"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", GREY, "#222222")
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
LINES = ("solid", "dashed", "dotted", "dashdot")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LONG = re.compile(r"(\d\.\d\d)\d+")
MAX_HINTS = 200  # points of a line that have one

# A value and its interval's ends.
Value = tuple[float | None, tuple[float, float] | None]
Points = Sequence[tuple[float, float]]


class Line(NamedTuple):
    """A line of a drawing.

    Attributes:
        points: (x, y), in ascending order.
        band: (x, low, high), in the same order; may be empty.
        hints: one a point, or none.
    """

    points: Points
    band: Sequence[tuple[float, float, float]] = ()
    hints: Sequence[str] = ()


class Hints(dict):
    """The texts that show where the pointer rests, by the name of their mark."""

    def put(self, mark: Artist, text: str) -> None:
        """Give a mark its text."""
        name = f"hint-{len(self)}"
        mark.set_gid(name)
        self[name] = text


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the style of the pages."""
    with matplotlib.rc_context(STYLE):
        yield


def new_axes(width: float, ylabel: str) -> tuple[Figure, Axes]:
    """A figure of one plot."""
    figure = Figure(figsize=(width, 4))
    axes = figure.add_subplot()
    axes.set_ylabel(plain_label(ylabel))
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def plain_label(text: str) -> str:
    """A label in one line, whose dollar signs start no formula."""
    return " ".join(printable(text).split()).replace("$", r"\$")


def as_svg(
    figure: Figure, axes: Axes, inside: str | None = None, hints: Mapping[str, str] | None = None
) -> str:
    """The figure as a text without a time in it.

    Args:
        inside: the corner of the plot that has room for the legend; it is beside it without one.
        hints: names of marks to the texts that show where the pointer rests.
    """
    if axes.get_legend_handles_labels()[0]:
        place = {"loc": inside} if inside else {"loc": "upper left", "bbox_to_anchor": (1, 1)}
        axes.legend(frameon=False, fontsize=8, **place)
    return written(figure, hints)


def written(figure: Figure, hints: Mapping[str, str] | None = None) -> str:
    """The figure as it is, without a time in it; ``hints`` as of :func:`as_svg`."""
    out = StringIO()
    nothing = {"Date": None, "Creator": None}
    FigureCanvasSVG(figure).print_figure(out, format="svg", bbox_inches="tight", metadata=nothing)
    svg = out.getvalue()
    for name, text in (hints or {}).items():
        svg = svg.replace(
            f'<g id="{name}">', f'<g id="{name}"><title>{escape(printable(text))}</title>', 1
        )
    return svg


def inline(svg: str) -> Markup:
    """A drawing of ours as an element of a page: no head, no names and no style for other parts.

    Places are rounded to a hundredth of a point, which halves it.
    """
    found = svg[svg.index("<svg") :]
    found = re.sub(r"<[^>]+>", lambda tag: _LONG.sub(r"\1", tag[0]), found)
    found = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", found, flags=re.DOTALL)
    found = re.sub(r'<g id="[^"]*">', "<g>", found)
    joints = ' style="max-width: 100%; height: auto; stroke-linejoin: round; stroke-linecap: butt"'
    return Markup(found.replace("<svg", f"<svg{joints}", 1))


def bars(
    values: Mapping[str, Sequence[Value]],
    groups: Sequence[str],
    label: str,
    hints: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """A bar a name, side by side for each group, with intervals.

    Args:
        values: name to one value a group; one without a value has no bar.
        groups: below the bars.
        label: of the values.
        hints: name to one text a group.
    """
    told = Hints()
    with drawing():
        figure, axes = new_axes(width=2.5 + 0.3 * len(values) * len(groups), ylabel=label)
        width = 0.8 / len(values)
        looks = zip(values.items(), cycle(COLOURS), cycle(HATCHES), strict=False)
        for place, ((name, own), colour, hatch) in enumerate(looks):
            found = [(x, v, ends) for x, (v, ends) in enumerate(own) if v is not None]
            at = [x + (place - (len(values) - 1) / 2) * width for x, _, _ in found]
            heights = [value for _, value, _ in found]
            ends = [ends or (value, value) for _, value, ends in found]
            below = [max(0.0, v - low) for v, (low, _) in zip(heights, ends, strict=True)]
            above = [max(0.0, high - v) for v, (_, high) in zip(heights, ends, strict=True)]
            drawn = axes.bar(
                at,
                heights,
                width * 0.92,
                label=plain_label(name),
                color=colour,
                hatch=hatch,
                edgecolor="white",
                yerr=[below, above] if found else None,
                error_kw={"elinewidth": 1, "capsize": 2},
            )
            for mark, (x, _, _) in zip(drawn.patches, found, strict=True):
                if hints:
                    told.put(mark, hints[name][x])
        names = [plain_label(group) for group in groups]
        axes.set_xticks(range(len(groups)), names, rotation=20, ha="right")
        return as_svg(figure, axes, hints=told)


def lines(
    series: Mapping[str, Line],
    xlabel: str,
    ylabel: str,
    width: float = 7,
    top: float | None = None,
    ticks: Sequence[float] | None = None,
) -> str:
    """A line a name, with bands where it has some.

    Args:
        top: the end of an axis of values that begins at 0; found from them without it.
        ticks: of the other axis; found from the points without them.
    """
    told = Hints()
    with drawing():
        figure, axes = new_axes(width=width, ylabel=ylabel)
        axes.set_xlabel(plain_label(xlabel))
        looks = zip(series.items(), cycle(COLOURS), cycle(LINES), cycle(MARKERS), strict=False)
        for (name, own), colour, style, marker in looks:
            x, y = ([point[side] for point in own.points] for side in (0, 1))
            look = {"color": colour, "linestyle": style, "marker": marker, "markersize": 4}
            axes.plot(x, y, label=plain_label(name), **look)
            if own.band:
                at, low, high = zip(*own.band, strict=True)
                axes.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
            step = len(own.hints) // MAX_HINTS + 1
            for (left, up), text in list(zip(own.points, own.hints, strict=False))[::step]:
                (mark,) = axes.plot([left], [up], "o", color=colour, markersize=7, alpha=0)
                told.put(mark, text)
        if top is not None:
            axes.set_ylim(0, top)
        if ticks is not None:
            axes.set_xticks(ticks)
        return as_svg(figure, axes, hints=told)
