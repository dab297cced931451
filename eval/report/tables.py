"""The numbers of a run as the report shows them: looked up, put in words, held against targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from records import Result

COMPONENTS = {"trained": "trained components", "untrained": "untrained control"}
_KINDS = ("normal", "uninformative", "repetitive", "sampled")
_SHARES = {"kept_share", "respond_ratio", "empty_selection"}
_COUNTS = {"judged", "supported", "contradicted", "undecided", "irrelevant"}


@dataclass(frozen=True)
class Text:
    """A row of the tables: a kind of text by one generator, named alone where it is the only."""

    kind: str
    generator: str
    label: str


@dataclass
class Table:
    """The results over all groups, looked up by what they are of."""

    rows: Sequence[Result]
    found: dict[tuple, Result] = field(init=False)
    texts: list[Text] = field(init=False)
    components: list[str] = field(init=False)

    def __post_init__(self):
        whole = [row for row in self.rows if row.group == "all"]
        self.found = {(r.metric, r.selection, r.components, r.kind, r.generator): r for r in whole}
        cells = list(dict.fromkeys((r.kind, r.generator) for r in whole))
        cells.sort(key=lambda cell: kind_order(cell[0]))  # stable: else as the run has them
        kinds = [kind for kind, _ in cells]
        self.texts = [
            Text(kind, generator, f"{kind} ({generator})" if kinds.count(kind) > 1 else kind)
            for kind, generator in cells
        ]
        self.components = [c for c in COMPONENTS if any(r.components == c for r in whole)]

    def get(self, metric: str, selection: str, text: Text, components: str) -> Result | None:
        """The result, or none where the run has none."""
        return self.found.get((metric, selection, components, text.kind, text.generator))

    def has(self, metric: str, selection: str, components: str) -> bool:
        """Whether any kind of text has a value."""
        rows = (self.get(metric, selection, text, components) for text in self.texts)
        return any(row is not None and row.value is not None for row in rows)


@dataclass(frozen=True)
class StratumRow:
    """The results of one group or bin of frequency: of a kind, generator, assessor, components."""

    name: str
    kind: str
    generator: str
    assessor: str
    components: str
    results: dict[tuple[str, str], Result]


def strata_of(rows: Sequence[Result]) -> list[StratumRow]:
    """A row a group, or bin, and text; empty for a run whose texts have neither."""
    found: dict[tuple, dict[tuple[str, str], Result]] = {}
    for row in rows:
        if row.group == "all" or row.group.startswith("appended="):
            continue
        metric, _, assessor = row.metric.partition(":")
        name = f"group {row.group}"
        if row.group.startswith("bin="):
            name = f"frequency {row.group.removeprefix('bin=')}"
        key = (name, row.kind, row.generator, assessor, row.components)
        found.setdefault(key, {})[metric, row.selection] = row
    return [StratumRow(*key, own) for key, own in found.items()]


def kind_order(kind: str) -> int:
    """Sort key of a kind: the known ones in their order, then all others."""
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)


# Numbers as text


def number(value: float | None, metric: str = "") -> str:
    """A value with the digits and the unit that its metric is read in; a dash for no value."""
    if value is None:
        return "–"
    name = metric.partition(":")[0]  # of several assessors
    if name in _SHARES:
        return f"{100 * value:.1f} %"
    if name in _COUNTS:
        return f"{value:,.0f}"
    return f"{value:.1f}" if name == "claims" else f"{value:.3f}"


def interval(row: Result) -> str:
    """The 95 % interval in brackets, in the unit of the value."""
    if row.ci95 is None:
        return ""
    low, high = (number(end, row.metric).removesuffix(" %") for end in row.ci95)
    return f"[{low}, {high}]" + (" %" if row.metric.partition(":")[0] in _SHARES else "")


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
    met = (low is None or row.value >= low) and (high is None or row.value <= high)
    crossed = row.ci95 is not None and any(
        end is not None and row.ci95[0] < end < row.ci95[1] for end in (low, high)
    )
    return ("yes" if met else "no") + (" (its interval holds the bound)" if crossed else "")


def targets_of(provenance: dict) -> dict[str, dict]:
    """The bounds on the kept share by kind of text."""
    targets = provenance.get("targets") or []
    return {t["kind"]: t for t in targets if t.get("metric", "kept_share") == "kept_share"}


# The summary


def summarise(table: Table, targets: dict[str, dict], curve: dict) -> list[str]:
    """Three sentences that say what the numbers say, for a reader in a hurry."""
    return [_precision_line(table), _kept_line(table, targets), _curve_line(curve)]


def _precision_line(table: Table) -> str:
    parts = []
    for text in sorted(table.texts, key=lambda text: text.kind == "normal"):  # adversaries first
        none, core = (table.get("factual_precision", s, text, "trained") for s in ("none", "core"))
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
    scores = {c: _count_reached(table, targets, c) for c in table.components}
    if not any(total for _, total in scores.values()):
        return line + "; no target was set."
    for components, (met, total) in scores.items():
        line += f"; the {COMPONENTS[components]} reach{_s(components)} {met} of {total} targets"
    met, total = scores.get("untrained", (0, 1))
    return line + (", so these targets do not show that training matters." if met == total else ".")


def _s(components: str) -> str:
    return "es" if components == "untrained" else ""


def _count_reached(table: Table, targets: dict[str, dict], components: str) -> tuple[int, int]:
    aimed = [text for text in table.texts if text.kind in targets]
    rows = [(targets[t.kind], table.get("kept_share", "core", t, components)) for t in aimed]
    met = sum(reached(target, row).startswith("yes") for target, row in rows)
    # A target of a kind that the run has no text of is not reached.
    return met, len(rows) + len(set(targets) - {text.kind for text in aimed})


def _curve_line(curve: dict) -> str:
    parts = [
        f"from {points[0][1].value:.2f} to {points[-1][1].value:.2f} "
        + ("with" if selection == "core" else "without")
        + " Core"
        for (_, selection), points in curve.items()
    ]
    if not parts:
        return "Appending adversarial sentences was not measured in this run."
    most = max(points[-1][0] for points in curve.values())
    return f"{most} appended adversarial sentences move precision {', '.join(parts)}."
