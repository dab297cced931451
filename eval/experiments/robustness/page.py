"""The robustness experiment's tables, figures and page, all from its run folder."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from eval.experiments.robustness.tables import (
    SELECTIONS,
    Curve,
    Table,
    bound,
    kind_order,
    reached,
    read_curve,
    summary_of,
    targets_of,
)
from eval.report.figures import Drawing, Line, Points, bars, lines
from eval.report.page import Page, settings_of
from eval.report.tables import (
    COMPONENTS,
    NOT_JUDGED,
    Cell,
    TextTable,
    cell,
    interval,
    number,
    strata_tables,
    unit_of,
)
from records import Result, ResultFile, UserError, read_records
from records.types import Probability, Record, VerdictLabel

MAX_DOCUMENTS = 30
REASONS = {
    "selected": "in the best selection",
    "uninformative": "says no more than a bleached claim, which holds for any topic",
    "irrelevant": "its sentence is not about the topic",
    "duplicate": "repeats a subclaim that was kept",
    "incoherent": "its sentence does not entail it and the coherence budget has no room",
    "failed": "nobody could judge whether its sentence is relevant",
}
# The dev measure that each component is selected by, in the order of search.
_MEASURES = ("pearson", "macro_f1", "entailment_auroc", "word_f1", "perplexity")


# What is read from the folder


class ClaimRow(BaseModel):
    """A subclaim of ``selections.jsonl``: what Core and the verifier said of it."""

    text: str
    label: VerdictLabel | None = None
    selected: bool
    weight: float
    document_entailment: Probability | None = None
    reason: Literal["selected", "uninformative", "irrelevant", "duplicate", "incoherent", "failed"]
    duplicate_of: str | None = None


class DocumentRow(Record):
    """A line of ``selections.jsonl``: a document with all of its subclaims."""

    id: str
    topic: str
    kind: str
    generator: str
    components: str
    claims: list[ClaimRow]


def read_documents(path: Path) -> list[DocumentRow]:
    """At most ``MAX_DOCUMENTS``: the first of each kind and components, then the second, …"""
    if not path.is_file() or not path.stat().st_size:
        return []
    ranked, seen = [], {}
    for row in read_records(path, DocumentRow):
        place = (kind_order(row.kind), row.kind, row.components, row.generator)
        seen[place] = rank = seen.get(place, -1) + 1
        ranked.append((rank, place, row))
    ranked.sort(key=lambda item: item[:2])
    chosen = sorted(ranked[:MAX_DOCUMENTS], key=lambda item: (item[1], item[0]))
    return [row for _, _, row in chosen]


def read_training(path: Path) -> dict[str, Points]:
    """Column to (step, value) of a CSV log; empty cells and values that are no number are gaps.

    Raises:
        UserError: a cell that cannot be read.
    """
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


# Tables


def _cell(row: Result | None) -> Cell:
    return cell(row, unit_of(row.metric) if row else "score", NOT_JUDGED)


def _kept_table(table: Table, targets: dict[str, dict]) -> TextTable:
    title = "What Core keeps"
    if not table.has("kept_share", "core", *COMPONENTS):
        why = "results.json has no kept_share, so the run had no Core."
        return TextTable(title, f"Left out: {why}")
    head = ["Kind of text", "Target"]
    for name in table.components:
        head += [COMPONENTS[name].capitalize(), *(["Reached"] if targets else [])]
    rows: list[list] = []
    for text in table.texts:
        target = targets.get(text.kind)
        rows.append([text.label, bound(target) if target else "none"])
        for name in table.components:
            row = table.get("kept_share", "core", text, name)
            verdict = [reached(target, row) if target else "–"] if targets else []
            rows[-1] += [_cell(row), *verdict]
    kinds = {text.kind for text in table.texts}
    absent = [
        f" The target for {kind} texts ({bound(target)}) has no value: the run has no such text."
        for kind, target in targets.items()
        if kind not in kinds
    ]
    if "untrained" not in table.components:
        absent.append(" No untrained control: the run has no rows of untrained components.")
    note = "Mean share of a text’s subclaims that Core selects."
    return TextTable(title, note + "".join(absent), head, rows)


def _of_texts(
    table: Table,
    title: str,
    note: str,
    columns: dict[str, tuple[str, str]],
    absent: str,
    figures: Sequence[str] = (),
) -> TextTable:
    """A row a kind of text and components, a column a metric and selection."""
    if not any(table.has(*column, *COMPONENTS) for column in columns.values()):
        return TextTable(title, f"Left out: {absent}")
    rows = [
        [text.label, name, *(_cell(table.get(*place, text, name)) for place in columns.values())]
        for text in table.texts
        for name in table.components
    ]
    return TextTable(title, note, ["Kind of text", "Components", *columns], rows, figures)


def _curve_table(curve: Curve) -> TextTable:
    title = "Appending adversarial sentences"
    if not curve:
        why = "the run has no results for appended sentences (it had no adversary to sample from)."
        return TextTable(title, f"Left out: {why}")
    counts = sorted({count for points in curve.values() for count, _ in points})
    cells = {place: dict(points) for place, points in curve.items()}
    return TextTable(
        title,
        "Factual precision of the same texts with more and more adversarial sentences behind them; "
        "bands are 95 % intervals. Where the line stays flat, appending such sentences does not "
        "pay.",
        ["Appended", *(f"{SELECTIONS[s]} ({generator})" for generator, s in cells)],
        [[str(count), *(_cell(own.get(count)) for own in cells.values())] for count in counts],
        figures=["curve"],
    )


# Figures


def _hint(label: str, row: Result) -> str:
    value = f"{number(row.value)} {interval(row)}".strip()
    return f"{label}, {SELECTIONS[row.selection]}: {value}, {NOT_JUDGED.format_map(dict(row))}"


def precision_bars(table: Table, components: str) -> str:
    """Factual precision without and with Core, side by side for each kind of text."""
    values, hints = {}, {}
    for selection, name in SELECTIONS.items():
        rows = [table.get("factual_precision", selection, t, components) for t in table.texts]
        values[name] = [(row.value, row.ci95) if row else (None, None) for row in rows]
        hints[name] = [
            _hint(text.label, row) if row else ""
            for text, row in zip(table.texts, rows, strict=True)
        ]
    return bars(values, [text.label for text in table.texts], "factual precision", hints)


def curve_lines(curve: Curve) -> str:
    """Precision against the number of appended adversarial sentences (2407.03572, section 5.3)."""
    several = len({generator for generator, _ in curve}) > 1
    series = {
        SELECTIONS[selection] + (f" ({generator})" if several else ""): Line(
            points=[(count, row.value) for count, row in points],
            band=[(count, *row.ci95) for count, row in points if row.ci95 is not None],
            hints=[_hint(f"{count} appended", row) for count, row in points],
        )
        for (generator, selection), points in curve.items()
    }
    counts = sorted({count for points in curve.values() for count, _ in points})
    label = "adversarial sentences appended"
    return lines(series, label, "factual precision", top=1.02, ticks=counts)


def training_lines(columns: dict[str, Points]) -> dict[str, str]:
    """Loss against the optimiser's step, and one dev measure; nothing of a log without either."""
    losses = {name: columns[name] for name in ("train/loss", "dev/loss") if name in columns}
    known = [f"dev/{name}" for name in _MEASURES]
    others = sorted(name for name in columns if name.startswith("dev/") and name != "dev/loss")
    measure = next((name for name in [*known, *others] if name in columns), None)
    parts = {"loss": losses, measure: {measure: columns[measure]} if measure else {}}
    return {
        what: lines({name: _log(points) for name, points in own.items()}, "step", what, width=5)
        for what, own in parts.items()
        if own
    }


def _log(points: Points) -> Line:
    return Line(points, hints=[f"step {step:g}: {value:.4g}" for step, value in points])


# The page


class RobustnessPage(Page):
    """Can the score be gamed?"""

    template = "experiments/robustness/robustness.html.j2"
    question = "Can the score be gamed?"
    filtered = True

    def tables(self, file: ResultFile, folder: Path) -> list[TextTable]:
        """What Core keeps, precision, subclaims, the curve, groups and bins."""
        table, targets = Table(file.results), targets_of(file.provenance)
        precision = _of_texts(
            table,
            "Factual precision with and without Core",
            "Share of subclaims that the passages support, without FActScore’s length penalty; "
            "whiskers are 95 % intervals. A kind without a value has no bar.",
            {
                "Without Core": ("factual_precision", "none"),
                "With Core": ("factual_precision", "core"),
                "Texts with nothing left": ("empty_selection", "core"),
            },
            "results.json has no factual_precision.",
            [f"precision_{name}" for name in COMPONENTS],
        )
        claims = _of_texts(
            table,
            "Subclaims before and after Core",
            "Mean number of subclaims a text.",
            {"Before": ("claims", "none"), "After": ("claims", "core")},
            "results.json does not count subclaims.",
        )
        curve = _curve_table(read_curve(file.results))
        strata = strata_tables(file.results)
        return [_kept_table(table, targets), precision, claims, curve, *strata]

    def figures(self, file: ResultFile, folder: Path) -> dict[str, Drawing]:
        """Precision, the curve, and the training logs."""
        table, curve = Table(file.results), read_curve(file.results)
        found = {
            f"precision_{name}": Drawing(
                f"Factual precision by kind of text, {COMPONENTS[name]}",
                precision_bars(table, name),
            )
            for name in table.components
            if table.has("factual_precision", "none", name)
        }
        if curve:
            title = "Factual precision against the number of appended adversarial sentences"
            found["curve"] = Drawing(title, curve_lines(curve))
        for path in sorted((folder / "training").glob("*.csv")):
            for place, (what, svg) in enumerate(training_lines(read_training(path)).items()):
                title = f"Training of {path.stem.replace('_', ' ')}: {what}"
                found[f"training_{path.stem}_{place}"] = Drawing(title, svg)
        return found

    def context(self, file: ResultFile, folder: Path, document: str | None) -> dict:
        """A summary, and documents with what Core decided."""
        table, targets = Table(file.results), targets_of(file.provenance)
        logs = sorted((folder / "training").glob("*.csv"))
        config = file.provenance.get("config") or {}
        return {
            "summary": summary_of(table, targets, read_curve(file.results)),
            "documents": read_documents(folder / "selections.jsonl"),
            "unit": "" if settings_of(config, "weighting") == ["uniform"] else "nats",
            "without": [path.stem for path in logs if not training_lines(read_training(path))],
            "logs": len(logs),
            "reasons": REASONS,
        }

    def in_terminal(self, row: Result) -> bool:
        """Precision and kept share over all groups, without sentences appended."""
        whole = (row.group, row.bin) == ("all", "all") and row.variant in COMPONENTS
        return whole and row.metric in {"factual_precision", "kept_share"}
