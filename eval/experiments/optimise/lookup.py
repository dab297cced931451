"""The results of a run, looked up by metric, defence, adversary and step."""

from __future__ import annotations

from dataclasses import dataclass, field

from eval.experiments.optimise.values import START
from eval.experiments.robustness.lookup import above_0, distinct, metrics_and_defences
from records import Result, ResultFile


@dataclass
class Steps:
    """Results by what they are of.

    Attributes:
        file: the results.
        against: kind of the honest texts.
        metrics: in the run's order, as are the others.
        defences: ``none`` first.
        adversaries: name to the steps, which ascend.
        honest: whether there are honest texts.
    """

    file: ResultFile
    against: str = field(init=False)
    metrics: list[str] = field(init=False)
    defences: list[str] = field(init=False)
    adversaries: dict[str, list[int]] = field(init=False)
    honest: bool = field(init=False)
    _found: dict[tuple, Result] = field(init=False)

    def __post_init__(self):
        rows = self.file.results
        self.against = self.file.provenance.get("against") or "normal"
        self._found = {
            (r.metric, r.assessor, r.selection, r.kind, r.variant, r.against): r for r in rows
        }
        scored = [row for row in rows if row.metric == "factual_precision"]
        self.metrics, self.defences = metrics_and_defences(scored)
        self.adversaries = {
            kind: sorted({row.variant for row in scored if row.kind == kind})
            for kind in distinct(row.kind for row in scored if row.variant is not None)
        }
        self.honest = any(row.variant is None for row in scored)

    def get(
        self,
        metric: str,
        place: tuple[str | None, str],
        adversary: str,
        step: int | None,
        against: str | None = None,
    ) -> Result | None:
        """A result, or none.

        Args:
            metric: of the result, e.g. ``claims``.
            place: the metric that scores, and the defence; ``(None, "none")`` of a text itself.
            adversary: or the kind of the honest texts, which have no step.
            step: of the training.
            against: what a gain is over.
        """
        return self._found.get((metric, *place, adversary, step, against))

    def gain(self, place: tuple[str, str], adversary: str, step: int) -> Result | None:
        """The gain over the start of the training."""
        return self.get("gain", place, adversary, step, START)

    def most(self, place: tuple[str, str], adversary: str) -> Result | None:
        """The gain over the start that says most against a metric.

        The largest of those whose interval is above 0; where none is, that of the last step.
        """
        rows = [self.gain(place, adversary, step) for step in self.adversaries[adversary][1:]]
        known = [row for row in rows if row is not None and row.value is not None]
        above = [row for row in known if above_0(row)]
        return max(above, key=lambda row: row.value, default=known[-1] if known else None)
