"""The decomposition experiment's drawings, as SVG texts; equal numbers give equal bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib

from eval.report.figures import (
    COLOURS,
    HATCHES,
    LINES,
    MARKERS,
    STYLE,
    as_svg,
    new_axes,
    plain_label,
)

MOST = 30  # larger numbers of subclaims count as this

# A value and its interval's ends.
Value = tuple[float | None, tuple[float, float] | None]


def bars(values: Mapping[str, Sequence[Value]], groups: Sequence[str], label: str) -> str:
    """A bar a decomposer, side by side for each generator, with intervals.

    Args:
        values: decomposer to one value a group; one without a value has no bar.
        groups: generators.
        label: of the values.
    """
    with matplotlib.rc_context(STYLE):
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
            axes.bar(
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
        names = [plain_label(group) for group in groups]
        axes.set_xticks(range(len(groups)), names, rotation=20, ha="right")
        return as_svg(figure, axes)


def distributions(counts: Mapping[str, Sequence[int]], label: str) -> str:
    """Share of the sentences, or passages, with so many subclaims: a line a decomposer."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_axes(width=7, ylabel="share")
        axes.set_xlabel(plain_label(label) + f" ({MOST}: as many or more)")
        looks = zip(counts.items(), cycle(COLOURS), cycle(LINES), cycle(MARKERS), strict=False)
        for (name, own), colour, line, marker in looks:
            seen = Counter(min(count, MOST) for count in own)
            places = range(max(seen, default=0) + 1)
            shares = [seen[place] / max(1, len(own)) for place in places]
            style = {"color": colour, "linestyle": line, "marker": marker, "markersize": 4}
            axes.plot(places, shares, label=plain_label(name), **style)
        return as_svg(figure, axes)


def scatter(points: Mapping[str, tuple[float, float]], x: str, y: str) -> str:
    """A point a decomposer."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_axes(width=6, ylabel=y)
        axes.set_xlabel(plain_label(x))
        looks = zip(points.items(), cycle(COLOURS), cycle(MARKERS), strict=False)
        for (name, (left, up)), colour, marker in looks:
            axes.scatter([left], [up], label=plain_label(name), color=colour, marker=marker)
        return as_svg(figure, axes)
