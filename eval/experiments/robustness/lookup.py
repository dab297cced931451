"""A grid's results, looked up by what they are of; controls apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eval.experiments.robustness.grid import NONE
from eval.experiments.robustness.values import ALL, SCORES, with_k
from records import Result, ResultFile

UNPAIRED = "unpaired"
CLEAN = "clean"
WHOLE = (ALL, ALL, ALL)
# Above this mean of honest texts there is hardly anything that an attack could gain.
ROOM = 0.9

Stratum = tuple[str, str, str]


@dataclass
class Lookup:
    """Results of one side of a run: of its metrics and defences, or of its controls.

    Attributes:
        rows: the results.
        against: kind of the honest texts.
        metrics: in the run's order, as are the others; each by F1@K is one of its own.
        precisions: those by precision; what is not a score is theirs alone.
        defences: ``none`` first.
        kinds: kinds of texts, honest ones first.
        attacks: the kinds that have a gain.
        rising: the kinds that have a rise: they are better than the honest ones.
        curves: names of curves, each to its k.
    """

    rows: Sequence[Result]
    against: str
    metrics: list[str] = field(init=False)
    precisions: list[str] = field(init=False)
    defences: list[str] = field(init=False)
    kinds: list[str] = field(init=False)
    attacks: list[str] = field(init=False)
    rising: list[str] = field(init=False)
    curves: dict[str, list[int]] = field(init=False)
    _found: dict[tuple, Result] = field(init=False)

    def __post_init__(self):
        self._found = {_key(row): row for row in self.rows}
        scored = [row for row in self.rows if row.metric in SCORES]
        self.metrics, self.defences = metrics_and_defences(scored)
        self.precisions = distinct(r.assessor for r in scored if r.metric == SCORES[0])
        curves = [row for row in self.rows if row.metric == "break_even"]
        self.curves = {
            name: sorted({r.variant for r in self.rows if of_curve(r) and r.kind == name})
            for name in distinct(row.kind for row in curves)
        }
        texts = [row for row in self.rows if _stratum(row) == WHOLE and not of_curve(row)]
        self.attacks = distinct(row.kind for row in texts if row.metric == "gain")
        self.rising = distinct(row.kind for row in texts if row.metric == "rise")
        kinds = distinct(row.kind for row in texts if row.metric == "claims")
        self.kinds = sorted(kinds, key=lambda kind: kind != self.against)

    def get(
        self,
        metric: str,
        place: tuple[str, str],
        kind: str,
        variant: str | int | None = None,
        stratum: Stratum = WHOLE,
    ) -> Result | None:
        """A result, or none.

        Args:
            metric: of the result, e.g. ``gain``.
            place: the metric that scores, and the defence.
            kind: of texts, or the curve.
            variant: a bound, ``clean`` or k.
            stratum: generator, group and bin.
        """
        return self._found.get((metric, *place, kind, variant, *stratum))

    def score(
        self,
        place: tuple[str, str],
        kind: str,
        variant: str | int | None = None,
        stratum: Stratum = WHOLE,
    ) -> Result | None:
        """The mean score: factual precision, or F1@K of a metric that is by F1@K."""
        found = (self.get(name, place, kind, variant, stratum) for name in SCORES)
        return next(filter(None, found), None)

    def gamed(self, place: tuple[str, str], kind: str) -> bool | None:
        """Whether the gain's interval is above 0; ``None`` where there is no gain or interval."""
        return above_0(self.get("gain", place, kind))

    def strata(self, field_: str) -> list[Stratum]:
        """All values of ``generator``, ``group`` or ``bin`` that results are given for."""
        place = ("generator", "group", "bin").index(field_)
        every = distinct(_stratum(row) for row in self.rows if row.metric == "claims")
        return [own for own in every if own[place] != ALL]

    def without_room(self, metric: str) -> bool:
        """Whether honest texts score so high without a defence that nothing can be gained."""
        row = self.score((metric, NONE), self.against)
        return row is not None and row.value is not None and row.value > ROOM


def lookups_of(file: ResultFile) -> tuple[Lookup, Lookup]:
    """The run's own results, and those of its controls; each with what it is compared with."""
    controls = file.provenance.get("controls") or []
    against = file.provenance.get("against") or "normal"
    own = [row for row in file.results if not _is_control(row, controls)]
    others = [row for row in file.results if _is_control(row, controls)]
    return Lookup(own, against), Lookup(others, against)


def _is_control(row: Result, controls: Sequence[str]) -> bool:
    names = {row.selection, row.assessor}
    if row.metric == "pearson":
        names.add(row.against)
    # A metric with several verdicts has their names behind its own, and by F1@K that.
    return any(
        name == control or (name or "").startswith((f"{control}.", with_k(control, "")))
        for name in names
        for control in controls
    )


def of_curve(row: Result) -> bool:
    """Whether it is of a text with k sentences behind, and not of the clean twin."""
    return isinstance(row.variant, int)


def _key(row: Result) -> tuple:
    variant = None if row.variant == UNPAIRED else row.variant
    return (row.metric, row.assessor, row.selection, row.kind, variant, *_stratum(row))


def _stratum(row: Result) -> Stratum:
    return row.generator, row.group, row.bin


def above_0(row: Result | None) -> bool | None:
    """Whether a gain's interval is above 0; ``None`` where there is no gain or no interval."""
    return None if row is None or row.ci95 is None else row.ci95[0] > 0


def metrics_and_defences(rows: Sequence[Result]) -> tuple[list[str], list[str]]:
    """The metrics in the run's order, and the defences, ``none`` first."""
    defences = distinct(row.selection for row in rows)
    return distinct(row.assessor for row in rows), sorted(defences, key=lambda d: d != NONE)


def distinct(values: Iterable) -> list:
    """The values that are there, each once, in their order."""
    return list(dict.fromkeys(value for value in values if value is not None))
