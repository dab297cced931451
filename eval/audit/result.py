"""What an audit shows: verdicts, the worst attack with an example, and the screen."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from textwrap import wrap

import numpy as np
from pydantic import BaseModel

from eval.experiments.robustness.robustness_example import Example
from eval.experiments.robustness.robustness_verdicts import INFLATION, LEAST_ORDER, SUCCESS
from records import ResultFile

# From the worst verdict to the best.
_SEVERITY = ("unusable", "void", "gamed", "failed", "unclear", "held")
MOST_FAILED = 0.1  # share of the texts
_WIDTH = 48  # characters of each of two texts side by side
_LINES = 7


class Attack(BaseModel):
    """An attack under the metric.

    Attributes:
        family: what the attack exploits, such as ``counting``.
        verdict: ``failed`` if no text has a score.
        bounds: of the excess inflation, at the level of all attacks and columns.
        asr: attack success rate.
        asr_bounds: of the success rate. These and ``bounds`` decide the verdict.
        n: number of topics.
        failed: number of failed texts or, of a metric that judges claims, of failed claims.
    """

    kind: str
    family: str
    verdict: str
    excess_inflation: float | None
    bounds: tuple[float, float]
    asr: float | None
    asr_bounds: tuple[float, float]
    n: int
    failed: int

    @property
    def badness(self) -> tuple[int, float]:
        """Sorts attacks, the worst first."""
        return _SEVERITY.index(self.verdict), -(self.excess_inflation or 0.0)


class Audit(BaseModel):
    """The result of an audit, as written to ``audit.json``.

    Attributes:
        verdict: that of the worst attack, or ``unusable``.
        unusable: why the scores say nothing.
        void: why the metric does not measure.
        unstable: how scores differ when texts are scored again.
        texts: number of scored texts, on ``topics`` topics.
        failed: texts without a score, which count against the metric in the upper bounds.
        errors: messages of the metric's exceptions and their counts.
        order: ladder to Kendall's τ of score and gold.
        attacks: the worst first.
        control_order: ``order`` of the word test, which needs no understanding of a text.
        control_gamed: number of attacks that game the word test.
        defences: defence to the attacks under it, for a metric that judges claims.
        report: the page.
    """

    target: str
    verdict: str
    unusable: str | None
    void: str | None
    unstable: str | None
    texts: int
    topics: int
    failed: int
    errors: dict[str, int]
    order: dict[str, float | None]
    attacks: list[Attack]
    control_order: dict[str, float | None]
    control_gamed: int
    example: Example | None
    defences: dict[str, list[Attack]]
    report: str
    config_hash: str

    @property
    def gamed(self) -> bool:
        """Whether an attack is ``gamed``."""
        return self.verdict == "gamed"

    def is_at_most(self, verdict: str) -> bool:
        """Whether the metric or an attack has this verdict or a worse one."""
        verdicts = [self.verdict, *(attack.verdict for attack in self.attacks)]
        return min(map(_SEVERITY.index, verdicts)) <= _SEVERITY.index(verdict)

    def screen(self) -> str:
        """The audit on one screen."""
        reason = self.unusable or self.void
        head = f"{self.target}: {self.verdict}" + f": {reason}" * bool(reason)
        counts = f"{self.texts:,} texts on {self.topics} topics, {self.failed} failed"
        errors = "".join(f"; {count} × {message}" for message, count in self.errors.items())
        first = f"{head} ({counts}{errors})"
        unstable = [f"unstable: {self.unstable}"] if self.unstable else []
        if self.unusable:
            return "\n".join([first, *unstable])
        control = f"word test (control): τ {_joined(self.control_order)}"
        control += f"; {self.control_gamed} attacks gamed"
        is_no_better = (self.order["ladder"] or 0) <= (self.control_order["ladder"] or 0)
        lines = [
            first,
            *unstable,
            control + "; the metric orders honest texts no better" * is_no_better,
            _LINE.format("family", "verdict", "worst attack", "excess inflation", "success rate"),
            *map(_line, families(self.attacks).values()),
            f"gamed: a lower bound above {INFLATION:+} or {SUCCESS}; "
            f"order of honest texts (τ, at least {LEAST_ORDER}): {_joined(self.order)}",
            *(_side_by_side(self.example) if self.example else ()),
            *self._defence_lines(),
        ]
        return "\n".join(lines)

    def _defence_lines(self) -> Iterator[str]:
        before = families(self.attacks)
        for name, attacks in self.defences.items():
            changes = [
                f"{family} {before[family].verdict} {_signed(before[family].excess_inflation)} → "
                f"{attack.verdict} {_signed(attack.excess_inflation)}"
                for family, attack in families(attacks).items()
            ]
            yield f"with {name}: {', '.join(changes)}"


def families(attacks: Sequence[Attack]) -> dict[str, Attack]:
    """Family to its worst attack, the worst first."""
    worst: dict[str, Attack] = {}
    for attack in attacks:
        worst.setdefault(attack.family, attack)
    return worst


def _joined(order: Mapping[str, float | None]) -> str:
    return ", ".join(f"{k} {v:.2f}" for k, v in order.items() if v is not None)


_LINE = "{:10} {:8} {:23} {:21} {}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}"


def _line(attack: Attack) -> str:
    low, high = attack.bounds
    inflation = f"{_signed(attack.excess_inflation)} [{low:+.2f}, {high:+.2f}]"
    low, high = attack.asr_bounds
    rate = "–" if attack.asr is None else f"{attack.asr:.2f}"
    failed = f"  {attack.failed} failed" if attack.failed else ""
    success = f"{rate} [{low:.2f}, {high:.2f}]{failed}"
    return _LINE.format(attack.family, attack.verdict, attack.kind, inflation, success)


def _side_by_side(example: Example) -> Iterator[str]:
    sides = {"honest": example.honest, f"{example.kind}, {example.topic}": example.attacked}
    columns = [
        [
            f"{name}: score {side.score:.3g}, gold {side.gold:.2f}",
            *wrap(side.text, _WIDTH, max_lines=_LINES, placeholder=" …"),
        ]
        for name, side in sides.items()
    ]
    for left, right in zip_longest(*columns, fillvalue=""):
        yield f"  {left:{_WIDTH}} | {right}"


def orders_of(file: ResultFile, column: tuple[str, str]) -> dict[str, float | None]:
    """Ladder to Kendall's τ of score and gold under a metric and defence."""
    return {
        row.kind: row.value
        for row in file.results
        if (row.assessor, row.selection, row.metric) == (*column, "order")
    }


def attacks_of(file: ResultFile, column: tuple[str, str]) -> list[Attack]:
    """The attacks under a metric and defence, the worst first."""
    rows = [row for row in file.results if (row.assessor, row.selection) == column]
    rates = {row.kind: row for row in rows if row.metric == "asr"}
    attacks = [
        Attack(
            family=file.provenance["families"].get(row.kind, "other"),
            verdict="failed" if row.value is None else row.verdict,
            excess_inflation=row.value,
            asr=rates[row.kind].value,
            asr_bounds=rates[row.kind].bounds,
            **row.model_dump(include={"kind", "bounds", "n", "failed"}),
        )
        for row in rows
        if row.metric == "excess_inflation"
    ]
    return sorted(attacks, key=lambda attack: attack.badness)


def fault_of(scores: np.ndarray) -> str | None:
    """Why scores say nothing; ``None`` if they do."""
    present = scores[~np.isnan(scores)]
    failed = len(scores) - len(present)
    if failed >= MOST_FAILED * len(scores):
        return f"it fails on {failed} of {len(scores)} texts"
    is_constant = np.ptp(present) <= 1e-12 * np.abs(present).max()
    return f"all scores are {present[0]:g}" if is_constant else None


def change_of(before: np.ndarray, after: np.ndarray, span: float) -> str | None:
    """How scores of texts differ when these are scored again; ``None`` if they do not.

    Args:
        span: range of all scores.
    """
    differences = np.abs(after - before)
    is_changed = ~(differences <= 1e-9 * span)
    if not is_changed.any():
        return None
    largest = f", by up to {np.nanmax(differences):.3g}" if not np.isnan(differences).all() else ""
    return f"{is_changed.sum()} of {len(before)} texts have another score at a second try{largest}"
