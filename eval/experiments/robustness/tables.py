"""The numbers of a robustness run: looked up, held against targets, and said in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eval.report.tables import COMPONENTS
from records import Result

SELECTIONS = {"none": "without Core", "core": "with Core"}
_KINDS = ("normal", "uninformative", "repetitive", "sampled")

# (generator, selection) to (number appended, result), in ascending order.
Curve = dict[tuple[str, str], list[tuple[int, Result]]]


class Text(NamedTuple):
    """A row of the tables: a kind of text by one generator, named alone where it is the only."""

    kind: str
    generator: str
    label: str


@dataclass
class Table:
    """The results of whole texts, without sentences appended, looked up by what they are of."""

    rows: Sequence[Result]
    found: dict[tuple, Result] = field(init=False)
    texts: list[Text] = field(init=False)
    components: list[str] = field(init=False)

    def __post_init__(self):
        own = [row for row in self.rows if row.variant in COMPONENTS]
        whole = [row for row in own if (row.group, row.bin) == ("all", "all")]
        self.found = {(r.metric, r.selection, r.variant, r.kind, r.generator): r for r in whole}
        cells = list(dict.fromkeys((r.kind, r.generator) for r in whole))
        cells.sort(key=lambda place: kind_order(place[0]))  # stable: else as the run has them
        kinds = [kind for kind, _ in cells]
        self.texts = [
            Text(kind, generator, f"{kind} ({generator})" if kinds.count(kind) > 1 else kind)
            for kind, generator in cells
        ]
        self.components = [name for name in COMPONENTS if any(r.variant == name for r in whole)]

    def get(self, metric: str, selection: str, text: Text, components: str) -> Result | None:
        """The result, or none where the run has none."""
        return self.found.get((metric, selection, components, text.kind, text.generator))

    def has(self, metric: str, selection: str, *components: str) -> bool:
        """Whether any kind of text has a value."""
        rows = (self.get(metric, selection, t, c) for t in self.texts for c in components)
        return any(row is not None and row.value is not None for row in rows)


def kind_order(kind: str) -> int:
    """Sort key of a kind: the known ones in their order, then all others."""
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)


def read_curve(rows: Iterable[Result]) -> Curve:
    """The points of the curve of section 5.3."""
    series: Curve = {}
    for row in rows:
        whole = (row.metric, row.group, row.bin) == ("factual_precision", "all", "all")
        if whole and isinstance(row.variant, int) and row.value is not None:
            series.setdefault((row.generator, row.selection), []).append((row.variant, row))
    found = {key: sorted(points, key=lambda point: point[0]) for key, points in series.items()}
    # One point is no curve.
    found = {key: points for key, points in found.items() if len(points) > 1}
    return dict(sorted(found.items(), key=lambda item: (item[0][0], item[0][1] == "core")))


# Targets


def targets_of(provenance: dict) -> dict[str, dict]:
    """The bounds on the kept share by kind of text."""
    targets = provenance.get("targets") or []
    return {t["kind"]: t for t in targets if t.get("metric", "kept_share") == "kept_share"}


def bound(target: dict) -> str:
    """A target in words, e.g. ``at most 10 %``."""
    words = {"at_most": "at most", "at_least": "at least"}
    return ", ".join(
        f"{words[k]} {100 * target[k]:g} %" for k in words if target.get(k) is not None
    )


def reached(target: dict, row: Result | None) -> str:
    """``yes`` or ``no`` by the value; says so where the interval lies on both sides."""
    if row is None or row.value is None:
        return "no value"
    low, high = target.get("at_least"), target.get("at_most")
    crossed = row.ci95 is not None and any(
        end is not None and row.ci95[0] < end < row.ci95[1] for end in (low, high)
    )
    met = "yes" if _met(target, row) else "no"
    return met + (" (its interval holds the bound)" if crossed else "")


def _met(target: dict, row: Result | None) -> bool:
    if row is None or row.value is None:
        return False
    low, high = target.get("at_least"), target.get("at_most")
    return (low is None or row.value >= low) and (high is None or row.value <= high)


# The summary


def summary_of(table: Table, targets: dict[str, dict], curve: Curve) -> list[str]:
    """Three sentences that say what the numbers say, for a reader in a hurry."""
    return [_precision_line(table), _kept_line(table, targets), _curve_line(curve)]


def _precision_line(table: Table) -> str:
    parts = []
    for text in sorted(table.texts, key=lambda text: text.kind == "normal"):  # adversaries first
        none, core = (table.get("factual_precision", s, text, "trained") for s in SELECTIONS)
        if none and core and none.value is not None and core.value is not None:
            parts.append(
                f"{text.label} texts score {none.value:.2f} without Core, "
                f"{core.value:.2f} with Core"
            )
    return "Factual precision: " + "; ".join(parts or ["not measured in this run"]) + "."


def _kept_line(table: Table, targets: dict[str, dict]) -> str:
    kept = [(text, table.get("kept_share", "core", text, "trained")) for text in table.texts]
    parts = [
        f"{100 * row.value:.0f} % of {t.label}" for t, row in kept if row and row.value is not None
    ]
    line = (
        f"Of the subclaims of a text, Core keeps {', '.join(parts)}"
        if parts
        else "What Core keeps was not measured in this run"
    )
    scores = {c: _count_met(table, targets, c) for c in table.components}
    if not any(total for _, total in scores.values()):
        return line + "; no target was set."
    verbs = {"trained": "reach", "untrained": "reaches"}
    for name, (met, total) in scores.items():
        line += f"; the {COMPONENTS[name]} {verbs[name]} {met} of {total} targets"
    met, total = scores.get("untrained", (0, 1))
    return line + (", so these targets do not show that training matters." if met == total else ".")


def _count_met(table: Table, targets: dict[str, dict], components: str) -> tuple[int, int]:
    aimed = [text for text in table.texts if text.kind in targets]
    rows = [(targets[t.kind], table.get("kept_share", "core", t, components)) for t in aimed]
    # A target of a kind that the run has no text of is not reached.
    absent = len(set(targets) - {text.kind for text in aimed})
    return sum(_met(target, row) for target, row in rows), len(rows) + absent


def _curve_line(curve: Curve) -> str:
    parts = [
        f"from {points[0][1].value:.2f} to {points[-1][1].value:.2f} {SELECTIONS[selection]}"
        for (_, selection), points in curve.items()
    ]
    if not parts:
        return "Appending adversarial sentences was not measured in this run."
    most = max(points[-1][0] for points in curve.values())
    return f"{most} appended adversarial sentences move precision {', '.join(parts)}."
