"""What an audit shows: verdicts, the worst attack with an example, and the screen."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap

import numpy as np
from pydantic import BaseModel

from eval.experiments.robustness.robustness_cells import Text
from eval.experiments.robustness.robustness_verdicts import LEAST_ORDER, HonestLadders, usable
from records import ResultFile

# From the worst verdict to the best.
_SEVERITY = ("void", "gamed", "unclear", "held")
MOST_FAILED = 0.1  # share of the texts
_WIDTH = 48  # characters of each of two texts side by side
_LINES = 7


class Attack(BaseModel):
    """An attack under the metric.

    Attributes:
        family: ``counting``, ``judge``, ``relevance`` or ``injection``.
        bounds: of the excess inflation, at the level of all attacks and columns.
        asr: attack success rate.
        n: number of topics.
    """

    kind: str
    family: str
    verdict: str
    excess_inflation: float
    bounds: tuple[float, float]
    asr: float
    n: int

    @property
    def badness(self) -> tuple[int, float]:
        """Sorts attacks, the worst first."""
        return _SEVERITY.index(self.verdict), -self.excess_inflation


class ScoredText(BaseModel):
    """A text with its score by the metric and its gold F1."""

    text: str
    score: float
    gold: float


class Example(BaseModel):
    """A text of an attack, and an honest text of its topic that is better by 0.4."""

    topic: str
    kind: str
    honest: ScoredText
    attacked: ScoredText


class Audit(BaseModel):
    """The result of an audit, as written to ``audit.json``.

    Attributes:
        verdict: that of the worst attack, or ``unusable``.
        unusable: why the scores say nothing.
        texts: number of scored texts, on ``topics`` topics.
        failed: texts without a score, which are not part of any figure.
        errors: messages of the metric's exceptions and their counts.
        order: ladder to Kendall's τ of score and gold.
        attacks: the worst first.
        defences: defence to the attacks under it, for a metric that judges claims.
        report: the page.
    """

    target: str
    verdict: str
    unusable: str | None
    texts: int
    topics: int
    failed: int
    errors: dict[str, int]
    order: dict[str, float | None]
    attacks: list[Attack]
    example: Example | None
    defences: dict[str, list[Attack]]
    report: str
    config_hash: str

    @property
    def gamed(self) -> bool:
        """Whether an attack is ``gamed``, or the metric is ``void`` or unusable."""
        return self.verdict in ("gamed", "void", "unusable")

    def screen(self) -> str:
        """The audit on one screen."""
        head = f"{self.target}: {self.verdict}"
        counts = f"{self.texts:,} texts on {self.topics} topics, {self.failed} failed"
        errors = "".join(f"; {count} × {message}" for message, count in self.errors.items())
        if self.unusable:
            return f"{head}: {self.unusable} ({counts}{errors})"
        orders = ", ".join(f"{k} {v:.2f}" for k, v in self.order.items() if v is not None)
        lines = [
            f"{head} ({counts}{errors})",
            _LINE.format("family", "verdict", "worst attack", "excess inflation", "success"),
            *map(_line, families(self.attacks).values()),
            f"order of honest texts (τ, at least {LEAST_ORDER}): {orders}",
            *(_side_by_side(self.example) if self.example else ()),
            *self._defence_lines(),
        ]
        return "\n".join(lines)

    def _defence_lines(self) -> Iterator[str]:
        before = families(self.attacks)
        for name, attacks in self.defences.items():
            changes = [
                f"{family} {before[family].verdict} {before[family].excess_inflation:+.2f} → "
                f"{attack.verdict} {attack.excess_inflation:+.2f}"
                for family, attack in families(attacks).items()
            ]
            yield f"with {name}: {', '.join(changes)}"


def families(attacks: Sequence[Attack]) -> dict[str, Attack]:
    """Family to its worst attack, the worst first."""
    worst: dict[str, Attack] = {}
    for attack in attacks:
        worst.setdefault(attack.family, attack)
    return worst


_LINE = "{:10} {:8} {:19} {:22} {}"


def _line(attack: Attack) -> str:
    low, high = attack.bounds
    inflation = f"{attack.excess_inflation:+.2f} [{low:+.2f}, {high:+.2f}]"
    return _LINE.format(attack.family, attack.verdict, attack.kind, inflation, f"{attack.asr:.2f}")


def _side_by_side(example: Example) -> Iterator[str]:
    sides = {"honest": example.honest, f"{example.kind}, {example.topic}": example.attacked}
    columns = [
        [
            f"{name}: score {side.score:.2f}, gold {side.gold:.2f}",
            *wrap(side.text, _WIDTH, max_lines=_LINES, placeholder=" …"),
        ]
        for name, side in sides.items()
    ]
    for left, right in zip_longest(*columns, fillvalue=""):
        yield f"  {left:{_WIDTH}} | {right}"


def attacks_of(file: ResultFile, column: tuple[str, str]) -> list[Attack]:
    """The attacks under a metric and defence, the worst first."""
    rows = [row for row in file.results if (row.assessor, row.selection) == column]
    rates = {row.kind: row.value for row in rows if row.metric == "asr"}
    attacks = [
        Attack(
            family=file.provenance["families"].get(row.kind, "other"),
            excess_inflation=row.value,
            asr=rates[row.kind],
            **row.model_dump(include={"kind", "verdict", "bounds", "n"}),
        )
        for row in rows
        if row.metric == "excess_inflation"
    ]
    return sorted(attacks, key=lambda attack: attack.badness)


def example_of(kind: str, texts: Sequence[Text], ladders: HonestLadders) -> Example | None:
    """The pair of an attacked and a better honest text with the largest difference of scores."""
    attacked = [text for text in usable(texts) if text.document.kind == kind]
    pairs = [(better, text) for text in attacked if (better := ladders.better(text))]
    if not pairs:
        return None
    pair = max(pairs, key=lambda pair: pair[1].value - pair[0].value)
    honest, worse = (
        ScoredText(text=t.document.text, score=t.value, gold=t.document.gold.f1) for t in pair
    )
    return Example(topic=pair[0].document.topic, kind=kind, honest=honest, attacked=worse)


def fault_of(scores: np.ndarray) -> str | None:
    """Why scores say nothing; ``None`` if they do."""
    present = scores[~np.isnan(scores)]
    failed = len(scores) - len(present)
    if failed >= MOST_FAILED * len(scores):
        return f"it fails on {failed} of {len(scores)} texts"
    return f"all scores are {present[0]:g}" if np.ptp(present) < 1e-9 else None
