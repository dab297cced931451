"""What the SVG drawings share: colours, hatches, line styles, markers, and the way to text.

Colours are Okabe and Ito's, which the colour-blind can tell apart; hatches, line styles and markers
differ too.
"""

from __future__ import annotations

from io import StringIO

from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

STYLE = {"svg.hashsalt": "factfoundry", "svg.fonttype": "none", "font.family": "DejaVu Sans"}
ORANGE, BLUE, GREEN, GREY = "#D55E00", "#0072B2", "#009E73", "#7A7A7A"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", GREY, "#222222")
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
LINES = ("solid", "dashed", "dotted", "dashdot")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def new_axes(width: float, ylabel: str) -> tuple[Figure, Axes]:
    """A figure of one plot."""
    figure = Figure(figsize=(width, 4))
    axes = figure.add_subplot()
    axes.set_ylabel(plain_label(ylabel))
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def plain_label(text: str) -> str:
    """A label in one line, whose dollar signs start no formula."""
    return " ".join(text.split()).replace("$", r"\$")


def as_svg(figure: Figure, axes: Axes, inside: str | None = None) -> str:
    """The figure as a text without a time in it.

    Args:
        inside: the corner of the plot that has room for the legend; it is beside it without one.
    """
    if axes.get_legend_handles_labels()[0]:
        place = {"loc": inside} if inside else {"loc": "upper left", "bbox_to_anchor": (1, 1)}
        axes.legend(frameon=False, fontsize=8, **place)
    out = StringIO()
    nothing = {"Date": None, "Creator": None}
    FigureCanvasSVG(figure).print_figure(out, format="svg", bbox_inches="tight", metadata=nothing)
    return out.getvalue()
