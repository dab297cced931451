"""The cells as a heat map and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from data_builders.splits import SPLITS

# The same bytes every time: ids are hashed from this, and texts stay texts.
STYLE = {"svg.hashsalt": "factfoundry", "svg.fonttype": "none", "font.family": "DejaVu Sans"}
DARK = 0.6  # share of the largest number from which text is white


def heat_map(numbers: Sequence[Sequence[int]], rows: Sequence[str], columns: Sequence[str]) -> str:
    """An SVG drawing of the number of topics by group (rows) and frequency bin (columns)."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(1.6 + 1.1 * len(columns), 1.2 + 0.6 * len(rows)))
        axes = figure.add_subplot()
        most = max(1, max(map(max, numbers)))
        axes.pcolormesh(numbers, cmap="Blues", vmin=0, vmax=most)
        axes.set_xticks([x + 0.5 for x in range(len(columns))], columns)
        axes.set_yticks([y + 0.5 for y in range(len(rows))], rows)
        axes.invert_yaxis()
        axes.set_xlabel("frequency")
        axes.set_ylabel("group")
        axes.set_title("Topics by group and frequency")
        for y, line in enumerate(numbers):
            for x, number in enumerate(line):
                colour = "white" if number > DARK * most else "black"
                axes.text(x + 0.5, y + 0.5, str(number), ha="center", va="center", color=colour)
        figure.tight_layout()
        out = StringIO()
        nothing = {"Date": None, "Creator": None}
        FigureCanvasSVG(figure).print_svg(out, metadata=nothing)
    return out.getvalue()


def table(
    topics: Sequence[Mapping], rows: Sequence[str], columns: Sequence[str], splits: Mapping
) -> str:
    """A Markdown table of the number of topics, each cell as train/dev/test."""
    head = f"| group | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}\n"
    lines = []
    for letter in rows:
        cells = []
        for name in columns:
            own = [r["topic"] for r in topics if r["group"] == letter and r["bin"] == name]
            counts = [sum(splits[topic] == split for topic in own) for split in SPLITS]
            cells.append(f"{len(own)} ({'/'.join(map(str, counts))})")
        lines.append(f"| {letter} | {' | '.join(cells)} |\n")
    return head + "".join(lines)
