"""The robustness experiment's page, all from its run folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from eval.experiments.robustness.figures import (
    curve_drawings,
    distributions,
    text_scores,
    training_drawings,
)
from eval.experiments.robustness.lookup import lookups_of
from eval.experiments.robustness.tables import tables_of, terminal_table
from eval.experiments.robustness.texts import packed
from eval.experiments.robustness.words import headline, summary_of
from eval.report.comparison import TextScores
from eval.report.figures import Drawing
from eval.report.page import Page
from eval.report.tables import TextTable
from records import ResultFile


class RobustnessPage(Page):
    """Can the score be gamed?"""

    template = "experiments/robustness/robustness.html.j2"
    question = "Can the score be gamed?"
    script = "experiments/robustness/texts.js"

    def tables(self, file: ResultFile, folder: Path) -> list[TextTable]:
        """Gains, controls, what is kept, precision, curves, agreement, and single strata."""
        own, controls = lookups_of(file)
        return tables_of(own, controls, file.provenance.get("targets") or [])

    def figures(self, file: ResultFile, folder: Path) -> dict[str, Drawing]:
        """Curves, distributions of the texts' precision, and the training logs."""
        own, _ = lookups_of(file)
        found = curve_drawings(own) | distributions(own, folder / "texts.jsonl")
        return found | training_drawings(folder / "training")[0]

    def context(self, file: ResultFile, folder: Path, document: str | None) -> dict:
        """A summary, and all texts."""
        own, controls = lookups_of(file)
        return {
            "summary": summary_of(own, controls),
            "texts": packed(folder),
            "curves": bool(own.curves),
            "counts": file.provenance.get("texts") or {},
            "skipped": file.provenance.get("skipped") or [],
            "without": training_drawings(folder / "training")[1],
        }

    def compared(self, folder: Path) -> Iterator[TextScores]:
        """The precision of each text under each metric and defence."""
        return text_scores(folder)

    def told(self, file: ResultFile) -> str:
        """The answer, the gain of each attack under each metric and defence, what is left out."""
        own, _ = lookups_of(file)
        lines = [f"left out: {line}" for line in file.provenance.get("skipped") or []]
        return "\n".join(filter(None, (headline(own), terminal_table(own), *lines)))
