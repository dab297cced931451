"""The drawings of a robustness run: curves from its results, distributions from its texts."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from eval.experiments.robustness.grid import NONE
from eval.experiments.robustness.lookup import CLEAN, Lookup
from eval.experiments.robustness.tables import NO_DEFENCE, curve_names
from eval.experiments.robustness.values import SCORES, Cells, Text, cells_of
from eval.metrics.document import DocumentScore
from eval.report.declare import interval, number
from eval.report.figures import Line, Points, lines
from eval.report.panels import MAX_GROUPS, Box, Curve, box_of, box_panels, curve_panels
from eval.report.svg import Drawing
from records import Result, UserError, first_fault, iter_rows

# The dev measure that each component is selected by, in the order of search.
_MEASURES = ("pearson", "macro_f1", "entailment_auroc", "word_f1", "perplexity")


# Curves


def curve_drawings(own: Lookup) -> dict[str, Drawing]:
    """A drawing a curve: a panel a metric, a line a defence, its clean line and its break-even."""
    found = {}
    for file, name in zip(curve_names(own), own.curves, strict=True):
        panels, rows = {}, []
        for metric in own.metrics:
            curves = {}
            for defence in own.defences:
                curve, told = _curve(own, (metric, defence), name)
                if curve.line.points:
                    curves[NO_DEFENCE if defence == NONE else defence] = curve
                    rows += told
            if curves:
                panels[metric] = curves
        if panels:
            label = "adversarial sentences behind (k)"
            svg = curve_panels(panels, label, _score(own), own.curves[name])
            title = f"Corrupted texts with k adversarial sentences behind ({name})"
            found[file] = Drawing(title, svg, rows)
    return found


def _score(own: Lookup) -> str:
    by_k = any(row.metric == SCORES[1] for row in own.rows)
    return "score" if by_k else "precision"  # short: the panels are low


def _curve(own: Lookup, place: tuple[str, str], name: str) -> tuple[Curve, list[dict]]:
    points = [(k, own.score(place, name, k)) for k in own.curves[name]]
    known = [(k, row) for k, row in points if row is not None and row.value is not None]
    clean = own.score(place, name, CLEAN)
    least = own.get("break_even", place, name)
    at = None if least is None else least.value
    crossing = next(((k, row.value) for k, row in known if k == at), None)
    line = Line(
        points=[(k, row.value) for k, row in known],
        band=[(k, *row.ci95) for k, row in known if row.ci95 is not None],
        hints=[_hint(place, k, row, crossing) for k, row in known],
    )
    level = None if clean is None else clean.value
    shared = {"metric": place[0], "defence": place[1], "curve": name, "clean": level}
    rows = [
        shared | {"k": k, "score": row.value} | _ends(row) | {"break_even": at, "n": row.n}
        for k, row in known
    ]
    return Curve(line, level, crossing), rows


def _hint(place: tuple[str, str], k: int, row: Result, crossing: tuple | None) -> str:
    value = f"{number(row.value)} {interval(row)}".strip()
    mark = ", break-even" if crossing is not None and crossing[0] == k else ""
    return f"{place[0]}, {place[1]}, k = {k}{mark}: {value}, n = {row.n}"


def _ends(row: Result) -> dict:
    low, high = row.ci95 or ("", "")
    return {"low": low, "high": high}


# Distributions


class ScoredText(BaseModel):
    """A line of ``texts.jsonl`` without its claims: what a distribution needs."""

    class Meta(BaseModel):
        """The document."""

        id: str
        topic: str
        text: str
        kind: str | None = None
        generator: str | None = None
        group: str | None = None
        bin: str | None = None
        # Of ``optimise``; elsewhere a field of this name is the user's own.
        step: object = None

    class Scores(BaseModel):
        """One metric's."""

        scores: list[DocumentScore]

    document: Meta
    metrics: dict[str, Scores]


def read_scores(path: Path) -> Iterator[ScoredText]:
    """The texts with their scores; none of no file.

    Raises:
        BadInput: a line that is no such text.
    """
    if path.is_file():
        for place, row in iter_rows(path):
            try:
                yield ScoredText.model_validate(row)
            except ValidationError as error:
                raise first_fault(f"{path}:{place}", error) from None


def distributions(own: Lookup, path: Path) -> dict[str, Drawing]:
    """Boxes of the texts' precision by kind, by generator and by bin."""
    cells = cells_of(list(read_scores(path)))
    by = {
        "by_kind": ("kind of text", lambda text: text.document.kind),
        "by_generator": ("kind and generator", lambda text: _behind(text, "generator")),
        "by_bin": ("kind and frequency", lambda text: _behind(text, "bin")),
    }
    found = {}
    for name, (title, group_of) in by.items():
        boxes = _boxes(own, cells, group_of)
        groups = list(dict.fromkeys(group for place in boxes.values() for group in place))
        groups.sort(key=lambda group: _rank(own, group))
        if groups and (name == "by_kind" or len(groups) > 1):
            cut = f", the first {MAX_GROUPS} of {len(groups)}" * (len(groups) > MAX_GROUPS)
            svg = box_panels(_panels(own, boxes, groups[:MAX_GROUPS]), groups[:MAX_GROUPS], _X)
            rows = [
                {"metric": metric, "defence": defence, "texts": group, **box._asdict()}
                for (metric, defence), groups_ in boxes.items()
                for group, box in groups_.items()
            ]
            found[name] = Drawing(f"Precision of the texts by {title}{cut}", svg, rows)
    return found


_X = "precision of a text"


def _rank(own: Lookup, group: str) -> int:
    kind = group.split(":")[0]
    return own.kinds.index(kind) if kind in own.kinds else len(own.kinds)


def _behind(text: Text, field: str) -> str | None:
    value = getattr(text.document, field)
    return None if value is None else f"{text.document.kind}: {value}"


def _boxes(own: Lookup, cells: Cells, group_of) -> dict[tuple[str, str], dict[str, Box]]:
    found = {}
    for (metric, defence), texts in cells.items():
        if metric not in own.metrics or defence not in own.defences:
            continue  # a control
        values: dict[str, list[float]] = defaultdict(list)
        for text in texts:
            group = group_of(text)
            if group is not None and not math.isnan(text.value):
                values[group].append(text.value)
        boxes = {group: box_of(column) for group, column in values.items()}
        found[metric, defence] = {group: box for group, box in boxes.items() if box is not None}
    return found


def _panels(
    own: Lookup, boxes: Mapping[tuple[str, str], Mapping[str, Box]], groups: Sequence[str]
) -> dict[str, dict[str, list[Box | None]]]:
    return {
        metric: {
            NO_DEFENCE if defence == NONE else defence: [
                boxes.get((metric, defence), {}).get(group) for group in groups
            ]
            for defence in own.defences
        }
        for metric in own.metrics
        if any(boxes.get((metric, defence)) for defence in own.defences)  # F1@K has no boxes
    }


# Training logs


def read_training(path: Path) -> dict[str, Points]:
    """Column to (step, value) of a CSV log; empty cells and values that are no number are gaps."""
    columns: dict[str, list[tuple[float, float]]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), 2):
            for name, text in row.items():
                if name in {None, "step", "epoch"} or not text or not row.get("step"):
                    continue
                try:
                    point = float(row["step"]), float(text)
                except ValueError:
                    raise UserError(f"{path}:{line}: {name}: not a number: {text!r}") from None
                if all(map(math.isfinite, point)):
                    columns.setdefault(name, []).append(point)
    return columns


def training_drawings(folder: Path) -> tuple[dict[str, Drawing], list[str]]:
    """Loss and one dev measure of each log, and the logs that have neither."""
    found, without = {}, []
    for path in sorted(folder.glob("*.csv")):
        columns = read_training(path)
        losses = {name: columns[name] for name in ("train/loss", "dev/loss") if name in columns}
        known = [f"dev/{name}" for name in _MEASURES]
        others = sorted(n for n in columns if n.startswith("dev/") and n != "dev/loss")
        measure = next((name for name in [*known, *others] if name in columns), None)
        parts = {"loss": losses, measure: {measure: columns[measure]} if measure else {}}
        shown = {what: own for what, own in parts.items() if own}
        without += [] if shown else [path.stem]
        for place, (what, own) in enumerate(shown.items()):
            svg = lines({name: _log(points) for name, points in own.items()}, "step", what, width=5)
            rows = [
                {"column": name, "step": step, "value": value}
                for name, points in own.items()
                for step, value in points
            ]
            title = f"Training of {path.stem.replace('_', ' ')}: {what}"
            found[f"training_{path.stem}_{place}"] = Drawing(title, svg, rows)
    return found, without


def _log(points: Points) -> Line:
    return Line(points, hints=[f"step {step:g}: {value:.4g}" for step, value in points])
