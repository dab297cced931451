"""The optimisation experiment's page, all from its run folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eval.experiments.optimise.lookup import Steps
from eval.experiments.optimise.values import START
from eval.experiments.optimise.words import summary_of
from eval.experiments.robustness.cells import shown
from eval.experiments.robustness.figures import read_scores
from eval.experiments.robustness.grid import NONE
from eval.experiments.robustness.tables import NO_DEFENCE, gain_cell
from eval.report.declare import Cell, Page, TextTable, interval, number
from eval.report.figures import Line
from eval.report.panels import Curve, curve_panels
from eval.report.svg import Drawing
from eval.report.tables import unit_of
from records import Result, ResultFile

_GAIN = (
    "Precision of a step’s texts minus that of the first step’s, paired by topic; gamed: its "
    "interval is above 0. Of several steps one may be above 0 by chance: with four steps and no "
    "effect about one series in ten."
)


# Tables


def _gains(
    own: Steps, against: str, title: str, note: str, figures: Sequence[str] = ()
) -> TextTable:
    def cells(metric: str, adversary: str, step: int) -> list[Cell]:
        rows = (own.get("gain", (metric, d), adversary, step, against) for d in own.defences)
        return [gain_cell(row) for row in rows]

    return _by_step(own, title, note, _heads(own, own.defences), cells, figures)


def _precision(own: Steps) -> TextTable:
    title, note = "Factual precision", "Mean share of supported subclaims."
    return _of_metric(own, "factual_precision", title, note, own.defences)


def _claims(own: Steps) -> TextTable:
    note = "Mean number of subclaims of a text that responds; with a defence, of those it keeps."
    return _of_metric(own, "claims", "Subclaims", note, own.defences, ["claims"])


def _kept(own: Steps) -> TextTable:
    if not own.defences[1:]:
        return TextTable("What a defence keeps", "Left out: the run has no defence.")
    note = "Mean share of a text’s subclaims that a defence selects."
    title = "What a defence keeps"
    return _of_metric(own, "kept_share", title, note, own.defences[1:], ["kept"])


def _of_metric(
    own: Steps,
    metric: str,
    title: str,
    note: str,
    defences: Sequence[str],
    figures: Sequence[str] = (),
) -> TextTable:
    def cells(assessor: str, kind: str, step: int | None) -> list[Cell]:
        return [shown(own.get(metric, (assessor, d), kind, step)) for d in defences]

    return _by_step(own, title, note, _heads(own, defences), cells, figures)


def _by_step(
    own: Steps, title: str, note: str, heads: Sequence[str], cells, figures: Sequence[str]
) -> TextTable:
    rows = []
    for metric in own.metrics:
        places = [(own.against, None)] if own.honest else []
        places += [(name, step) for name, steps in own.adversaries.items() for step in steps]
        for kind, step in places:
            found = cells(metric, kind, step)
            if any(cell != Cell("–") for cell in found):  # what all failed has its number
                rows.append([metric, kind, "" if step is None else str(step), *found])
    if not rows:
        return TextTable(title, "Left out: nothing could be measured.")
    return TextTable(title, note, ["Metric", "Adversary", "Step", *heads], rows, figures)


def _texts(own: Steps) -> TextTable:
    rows = []
    for name, steps in own.adversaries.items():
        for step in steps:
            respond = own.get("respond_ratio", (own.metrics[0], NONE), name, step)
            others = [own.get(m, (None, NONE), name, step) for m in _OF_TEXTS]
            rows.append([name, str(step), *map(_percent, (respond, *others))])
    note = (
        "Of the texts themselves: the share that responds; of these the share of different ones, "
        "the topic’s name aside; and, where a judge was given, the mean share of a text’s "
        "sentences that are relevant."
    )
    head = ["Adversary", "Step", "Texts that respond", "Different texts", "Relevant"]
    return TextTable("The texts", note, head, rows, ["texts"])


def _read(own: Steps, folder: Path) -> TextTable:
    title = "What they write"
    by_place: dict[tuple[str, int | None], dict[str, str]] = {}
    for row in read_scores(folder / "texts.jsonl"):
        given = row.document
        by_place.setdefault((given.kind, given.step), {}).setdefault(given.topic, given.text)
    steps = {place: texts for place, texts in by_place.items() if place[1] is not None}
    shared = [t for t in next(iter(steps.values()), {}) if all(t in own for own in steps.values())]
    if not shared:
        return TextTable(title, "Left out: no topic has a text of every step.")
    rows = [[name, str(step), texts[shared[0]]] for (name, step), texts in steps.items()]
    note = f"The first text on {shared[0]} of each step; all are in texts.jsonl."
    return TextTable(title, note, ["Adversary", "Step", "Text"], rows)


_OF_TEXTS = ("distinct_share", "relevance")


def _percent(row: Result | None) -> Cell:
    if row is None or row.value is None:
        return Cell("–")
    note = f"n = {row.n}" + f", {row.failed:,} not judged" * bool(row.failed)
    return Cell(number(row.value, "share"), interval(row, "share"), note)


def _heads(own: Steps, defences: Sequence[str]) -> list[str]:
    return [NO_DEFENCE if defence == NONE else defence for defence in defences]


# Figures


def _drawing(own: Steps, metric: str, ylabel: str, defences: Sequence[str]) -> Drawing | None:
    panels, rows = {}, []
    for assessor in own.metrics:
        curves = {}
        for colour, name in enumerate(own.adversaries):
            for kind, defence in enumerate(defences):
                said = name if defence == NONE else f"{name}, {defence}"
                found = _points(own, metric, (assessor, defence), name)
                curves[said] = _curve(said, found, (colour, kind))
                rows += _rows(found, metric=assessor, adversary=name, defence=defence)
        panels[assessor] = {said: curve for said, curve in curves.items() if curve.line.points}
    return _drawn({name: own for name, own in panels.items() if own}, ylabel, own, rows, metric)


def _drawing_of_texts(own: Steps) -> Drawing | None:
    panels, rows = {}, []
    for metric, title in zip(_OF_TEXTS, ("different texts", "relevance"), strict=True):
        found = {name: _points(own, metric, (None, NONE), name) for name in own.adversaries}
        curves = {n: _curve(n, found[n], (at, 0)) for at, n in enumerate(found) if found[n]}
        if curves:
            panels[title] = curves
        for name, points in found.items():
            rows += _rows(points, metric=metric, adversary=name, defence=NONE)
    return _drawn(panels, "share", own, rows, "texts")


def _drawn(
    panels: dict[str, dict[str, Curve]], ylabel: str, own: Steps, rows: list[dict], what: str
) -> Drawing | None:
    if not panels:
        return None
    ticks = sorted({step for steps in own.adversaries.values() for step in steps})
    top = None if what == "claims" else 1.02
    svg = curve_panels(panels, "step of training", ylabel, ticks, top)
    return Drawing(f"{ylabel.capitalize()} over the steps of training", svg, rows)


def _points(own: Steps, metric: str, place: tuple[str | None, str], name: str) -> list[Result]:
    rows = (own.get(metric, place, name, step) for step in own.adversaries[name])
    return [row for row in rows if row is not None and row.value is not None]


def _curve(said: str, rows: Sequence[Result], look: tuple[int, int]) -> Curve:
    line = Line(
        points=[(row.variant, row.value) for row in rows],
        band=[(row.variant, *row.ci95) for row in rows if row.ci95 is not None],
        hints=[f"{said}, step {row.variant}: {_value(row)}, n = {row.n}" for row in rows],
    )
    return Curve(line, look=look)


def _value(row: Result) -> str:
    unit = unit_of(row.metric)
    return f"{number(row.value, unit)} {interval(row, unit)}".strip()


def _rows(found: Sequence[Result], **place: str) -> list[dict]:
    rows = []
    for row in found:
        low, high = row.ci95 or ("", "")
        ends = {"low": low, "high": high, "n": row.n, "failed": row.failed}
        rows.append(place | {"step": row.variant, "value": row.value} | ends)
    return rows


def _all_tables(file: ResultFile, folder: Path) -> list[TextTable]:
    """Gains, precision, claims and what is kept, the texts themselves, and one of each."""
    own = Steps(file)
    found = [_gains(own, START, "Gain over the start of the training", _GAIN)]
    if own.honest:
        note = f"Precision of a step’s texts minus that of {own.against} texts, by topic."
        found.append(_gains(own, own.against, f"Gain over {own.against} texts", note))
    found += [_precision(own), _claims(own), _kept(own), _texts(own), _read(own, folder)]
    return found


def _figures(file: ResultFile, folder: Path) -> list[Drawing]:
    """Curves over the steps: a plot a metric, a colour an adversary, a dash a defence."""
    own = Steps(file)
    found = [
        _drawing(own, "factual_precision", "factual precision", own.defences),
        _drawing(own, "claims", "subclaims a text", own.defences),
        _drawing(own, "kept_share", "share that is kept", own.defences[1:]),
        _drawing_of_texts(own),
    ]
    return [drawing for drawing in found if drawing is not None]


PAGE = Page(
    "Does the defence hold under optimisation?",
    "Step 0 or the least one is the start of the training. n counts topics; brackets hold 95 % "
    "bootstrap intervals over topics; what could not be judged is counted next to a value, never "
    "in it.",
    [_all_tables],
    [_figures],
    summary=lambda file: [": ".join(filter(None, one)) for one in summary_of(Steps(file))],
    terminal={"metric": "gain", "group": "all", "bin": "all"},
)
