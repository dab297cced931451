"""The report's plotly figures: bars of precision, the curve of section 5.3, training curves.

Colours are Okabe and Ito's, which the colour-blind can tell apart; line and marker styles differ
too. Labels come from generated data: they are escaped, since plotly reads a little HTML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import plotly.graph_objects as go

from eval.report.figures import BLUE, GREEN, GREY, ORANGE
from records import Result

SELECTIONS = {"none": "without Core", "core": "with Core"}
_COLOURS = {"none": ORANGE, "core": BLUE}
_SYMBOLS = {"none": "circle", "core": "square"}
_DASHES = ("solid", "dash", "dot", "dashdot")
_BAR = 0.36  # width of a bar, in kinds

Points = list[tuple[float, float]]
Bar = tuple[str, Result | None, Result | None]


def _figure(**layout: object) -> go.Figure:
    shared = {
        "template": "none",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "#222"},
        "margin": {"l": 52, "r": 14, "t": 40, "b": 48},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hoverlabel": {"align": "left"},
    }
    return go.Figure(layout=shared | layout)


def _axis(title: str, **more: object) -> dict:
    label = {"text": escape(title), "standoff": 8}
    return {"title": label, "automargin": True, "gridcolor": "#e4e4e4", "zeroline": False, **more}


def _hover(label: str, selection: str, row: Result) -> str:
    interval = "" if row.ci95 is None else f" [{row.ci95[0]:.3f}, {row.ci95[1]:.3f}]"
    return (
        f"{escape(label)}, {SELECTIONS[selection]}<br>{row.value:.3f}{interval}"
        f"<br>n = {row.n}, {row.failed} not judged"
    )


def precision_bars(bars: Sequence[Bar]) -> go.Figure:
    """Factual precision without and with Core, side by side for each kind of text.

    Args:
        bars: label, result without Core, result with Core. A result without a value has no bar.
    """
    top = {"range": [0, 1.15], "tickvals": [0, 0.2, 0.4, 0.6, 0.8, 1]}
    names = [escape(label) for label, _, _ in bars]
    kinds = {
        "tickvals": list(range(len(bars))),
        "ticktext": names,
        "tickfont_size": 11,
        "showgrid": False,
    }
    span = {"range": [-0.5, len(bars) - 0.5]}
    figure = _figure(
        barmode="overlay",  # the places are given
        xaxis=_axis("", **kinds, **span),
        yaxis=_axis("factual precision", **top),
    )
    for side, (selection, name) in enumerate(SELECTIONS.items(), 1):
        found = [
            (place + (side - 1.5) * _BAR, bar[0], bar[side])
            for place, bar in enumerate(bars)
            if bar[side] is not None and bar[side].value is not None
        ]
        values = [row.value for _, _, row in found]
        ends = [row.ci95 or (row.value, row.value) for _, _, row in found]
        figure.add_bar(
            x=[x for x, _, _ in found],
            y=values,
            width=_BAR * 0.94,
            name=name,
            marker_color=_COLOURS[selection],
            error_y={
                "array": [max(0.0, high - v) for v, (_, high) in zip(values, ends, strict=True)],
                "arrayminus": [max(0.0, v - low) for v, (low, _) in zip(values, ends, strict=True)],
                "color": "#222",
                "thickness": 1.2,
                "width": 4,
            },
            hoverinfo="text",
            hovertext=[_hover(label, selection, row) for _, label, row in found],
        )
        # The value stands above the interval, where no whisker runs through it.
        figure.add_scatter(
            x=[x for x, _, _ in found],
            y=[max(v, high) for v, (_, high) in zip(values, ends, strict=True)],
            mode="text",
            text=[f"{v:.2f}" for v in values],
            textposition="top center",
            textfont={"size": 11},
            hoverinfo="skip",
            showlegend=False,
        )
    return figure


def appended_curve(series: Mapping[tuple[str, str], Sequence[tuple[int, Result]]]) -> go.Figure:
    """Precision against the number of appended adversarial sentences (2407.03572, section 5.3).

    Args:
        series: (generator, selection) to points (number appended, result), in ascending order;
            every result has a value. Intervals are drawn as bands.
    """
    generators = list(dict.fromkeys(generator for generator, _ in series))
    figure = _figure(
        xaxis=_axis("adversarial sentences appended"),
        yaxis=_axis("factual precision", range=[0, 1.02]),
    )
    for (_, selection), points in series.items():
        band = [(k, *row.ci95) for k, row in points if row.ci95 is not None]
        figure.add_scatter(
            x=[k for k, _, _ in band] + [k for k, _, _ in reversed(band)],
            y=[high for _, _, high in band] + [low for _, low, _ in reversed(band)],
            fill="toself",
            fillcolor=_COLOURS[selection],
            opacity=0.18,
            line_width=0,
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
        )
    for (generator, selection), points in series.items():
        several = f" ({escape(generator)})" if len(generators) > 1 else ""
        figure.add_scatter(
            x=[k for k, _ in points],
            y=[row.value for _, row in points],
            mode="lines+markers",
            name=SELECTIONS[selection] + several,
            line={
                "color": _COLOURS[selection],
                "dash": _DASHES[generators.index(generator) % len(_DASHES)],
            },
            marker={"symbol": _SYMBOLS[selection], "size": 8},
            hoverinfo="text",
            hovertext=[_hover(f"{k} appended", selection, row) for k, row in points],
        )
    return figure


def training_curve(losses: Mapping[str, Points], metric: tuple[str, Points] | None) -> go.Figure:
    """Loss against the optimiser's step and, in a panel below, one dev metric.

    Args:
        losses: column name to (step, loss); steps without a value are left out, so lines join.
        metric: name and (step, value) of the dev metric, if one was logged.
    """
    split = bool(losses and metric)
    figure = _figure(margin={"l": 56, "r": 14, "t": 34, "b": 44}, legend_y=1.01)
    figure.layout.font.size = 11
    figure.layout.xaxis = _axis("step", anchor="y2" if metric else "y", rangemode="tozero")
    if losses:
        figure.layout.yaxis = _axis("loss", domain=[0.52, 1] if split else [0, 1])
    for (name, points), colour in zip(losses.items(), (GREY, BLUE, GREEN, ORANGE), strict=False):
        figure.add_scatter(**_line(name, points, colour), yaxis="y")
    if metric:
        title = metric[0].removeprefix("dev/").replace("_", " ")
        figure.layout.yaxis2 = _axis(title, domain=[0, 0.42] if split else [0, 1], anchor="x")
        figure.add_scatter(**_line(metric[0], metric[1], ORANGE, "diamond"), yaxis="y2")
    return figure


def _line(name: str, points: Points, colour: str, symbol: str = "circle") -> dict:
    return {
        "x": [step for step, _ in points],
        "y": [float(f"{value:.6g}") for _, value in points],
        "name": escape(name),
        "mode": "lines+markers" if len(points) <= 30 else "lines",
        "line": {"color": colour, "width": 1.8},
        "marker": {"size": 5, "symbol": symbol},
        "hovertemplate": "step %{x}: %{y:.4g}<extra></extra>",
    }
