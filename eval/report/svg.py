"""Plots as byte-reproducible SVG, with Okabe and Ito's colour-blind safe palette."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from cli.printable import printable
from eval.report.declare import Plot, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLE = {"svg.hashsalt": "factfoundry", "svg.fonttype": "none", "font.family": "DejaVu Sans"}
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A7A7A", "#222222")
_HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
_LINES = ("solid", "dashed", "dotted", "dashdot")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LONG = re.compile(r"(\d\.\d\d)\d+")
_MOST_MARKERS = 40  # points of a line that have one


class Drawing(NamedTuple):
    """A plot as SVG text, with its data points."""

    title: str
    svg: str
    rows: Sequence[Mapping[str, object]] = ()


def draw(plot: Plot) -> Drawing:
    """Draw a plot."""
    import matplotlib  # half a second, which no --help should take
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys(x for points in plot.series.values() for x, *_ in points))
    has_bars = plot.kind == "bars"
    with matplotlib.rc_context(_STYLE):
        width = min(24.0, 2.5 + 0.3 * len(plot.series) * len(groups)) if has_bars else 6.0
        figure = Figure(figsize=(4.4 if plot.square else width, 4))
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel(_label(plot.x))
        axes.set_ylabel(_label(plot.y))
        looks = zip(cycle(_COLOURS), cycle(_HATCHES), cycle(_LINES), cycle(_MARKERS), strict=False)
        for place, ((name, pts), look) in enumerate(zip(plot.series.items(), looks, strict=False)):
            if not has_bars:
                _line(axes, name, pts, look)
                continue
            at = {
                group: number + (place - (len(plot.series) - 1) / 2) * 0.8 / len(plot.series)
                for number, group in enumerate(groups)
            }
            _bars(axes, name, pts, look, at, 0.74 / len(plot.series))
        if has_bars:
            names = [_label(str(group)) for group in groups]
            axes.set_xticks(range(len(groups)), names, rotation=20, ha="right")
        if plot.top is not None:
            axes.set_ylim(0, plot.top)
        if plot.square:
            axes.set_aspect("equal")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
        out = StringIO()
        nothing = {"Date": None, "Creator": None}
        canvas = FigureCanvasSVG(figure)
        canvas.print_figure(out, format="svg", bbox_inches="tight", metadata=nothing)
    return Drawing(plot.title, out.getvalue(), list(_rows(plot)))


def inline(svg: str) -> Markup:
    """Convert an SVG file to an inline element; coordinates are rounded to 0.01 points."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<[^>]+>", lambda tag: _LONG.sub(r"\1", tag[0]), element)
    element = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'<g id="[^"]*">', "<g>", element)
    joints = ' style="max-width: 100%; height: auto; stroke-linejoin: round; stroke-linecap: butt"'
    return Markup(element.replace("<svg", f"<svg{joints}", 1))


def _label(text: str) -> str:
    return " ".join(printable(text).split()).replace("$", r"\$")


def _line(axes: Axes, name: str, points: Sequence[Point], look: Sequence[str]) -> None:
    colour, _, style, marker = look
    axes.plot(
        [x for x, _, _ in points],
        [y for _, y, _ in points],
        label=_label(name),
        color=colour,
        linestyle=style,
        marker=marker if len(points) <= _MOST_MARKERS else "",
        markersize=4,
    )
    band = [(x, *ends) for x, _, ends in points if ends]
    if band:
        axes.fill_between(*zip(*band, strict=True), color=colour, alpha=0.18, linewidth=0)


def _bars(
    axes: Axes,
    name: str,
    points: Sequence[Point],
    look: Sequence[str],
    at: Mapping[float | str, float],
    width: float,
) -> None:
    colour, hatch, *_ = look
    ends = [band or (y, y) for _, y, band in points]
    spread = [
        [max(0.0, y - low) for (_, y, _), (low, _) in zip(points, ends, strict=True)],
        [max(0.0, high - y) for (_, y, _), (_, high) in zip(points, ends, strict=True)],
    ]
    axes.bar(
        [at[x] for x, _, _ in points],
        [y for _, y, _ in points],
        width,
        label=_label(name),
        color=colour,
        hatch=hatch,
        edgecolor="white",
        yerr=spread if points else None,
        error_kw={"elinewidth": 1, "capsize": 2},
    )


def _rows(plot: Plot) -> Iterator[dict[str, object]]:
    for name, points in plot.series.items():
        for x, y, ends in points:
            low, high = ends or ("", "")
            yield {"series": name, "x": x, "value": y, "low": low, "high": high}
