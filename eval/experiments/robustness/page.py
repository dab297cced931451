"""The robustness experiment's page, all from its run folder."""

from __future__ import annotations

from pathlib import Path

from eval.experiments.robustness.figures import (
    curve_drawings,
    distributions,
    training_drawings,
)
from eval.experiments.robustness.lookup import lookups_of
from eval.experiments.robustness.tables import tables_of
from eval.experiments.robustness.texts import packed
from eval.experiments.robustness.words import summary_of
from eval.report.declare import Page, TextTable
from eval.report.svg import Drawing
from records import ResultFile


def _tables(file: ResultFile, folder: Path) -> list[TextTable]:
    """Gains, controls, what is kept, precision, curves, agreement, and single strata."""
    own, controls = lookups_of(file)
    return tables_of(own, controls, file.provenance.get("targets") or [])


def _figures(file: ResultFile, folder: Path) -> list[Drawing]:
    """Curves, distributions of the texts' precision, and the training logs."""
    own, _ = lookups_of(file)
    found = curve_drawings(own) | distributions(own, folder / "texts.jsonl")
    return list((found | training_drawings(folder / "training")[0]).values())


def _context(file: ResultFile, folder: Path) -> dict:
    """All texts."""
    own, _ = lookups_of(file)
    return {
        "packed": packed(folder),
        "curves": bool(own.curves),
        "skipped": file.provenance.get("skipped") or [],
        "without": training_drawings(folder / "training")[1],
    }


def _summary(file: ResultFile) -> list[str]:
    """The answer, and what it rests on."""
    own, controls = lookups_of(file)
    found = summary_of(own, controls)
    return [f"{one.metric}: {one.text}" if one.metric else one.text for one in found]


PAGE = Page(
    "Can the score be gamed?",
    "n counts topics; brackets hold 95 % bootstrap intervals over topics; what could not be judged "
    "is counted next to a value, never in it.",
    [_tables],
    [_figures],
    summary=_summary,
    terminal={"metric": "gain", "group": "all", "bin": "all"},
    template="experiments/robustness/robustness.html.j2",
    context=_context,
    script="experiments/robustness/texts.js",
)
