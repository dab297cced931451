"""Ladders and verdicts: is a worse text taken for a better one, and how much better?

A *ladder* has honest texts of each topic with known gold F1, from all false to all true. It shows
what a score means: *expected gold* is the isotonic regression of gold F1 on the score, fitted on
the ladders of other topics. The *inflation* of a text is its expected minus its true gold F1. The
*excess inflation* of an attack is its inflation minus that of the topic's honest text that is about
as good (its *twin*), since regression shrinks towards the mean. The attack success rate (ASR) is
the share of topics on which the attack scores higher than an honest text that is better by at least
``MARGIN``. Of several texts of a topic, an attacker takes the one with the highest score.
"""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

import numpy as np

from components.statistics import betting_bounds, clopper_pearson, t_interval
from eval.experiments.robustness.robustness_cells import (
    ALL,
    Cells,
    Text,
    Value,
    by_kind,
    draw_of,
    fields_of,
)
from eval.experiments.robustness.robustness_grid import NONE
from eval.experiments.robustness.robustness_texts import MARGIN

LEVEL = 0.01  # of all attacks and columns together, for each kind of bound
INFLATION = 0.1  # a smaller excess inflation is none
SUCCESS = 0.25  # a smaller success rate is none
LEAST_UNITS = 60  # for the verdict `held`
LEAST_ORDER = 0.3  # Kendall's τ of a column that measures something
MOST_DISORDER = 0.15  # success rate of the ladder's own texts, of such a column
FOLDS = 5
# Multiples of the units that are tried to find the number that would decide a verdict.
MULTIPLES = (2, 3, 4, 6, 8, 12, 16, 24, 32)
# Gold scores, and shares of the range of the scores, that differ by less are equal.
_ROUNDING = 1e-9


def unit_of(text: Text) -> str:
    """The topic, or the cluster of topics that depend on each other."""
    return (text.document.model_extra or {}).get("cluster") or text.document.topic


def usable(texts: Sequence[Text]) -> list[Text]:
    """The texts that have a score and a gold score."""
    return [t for t in texts if t.document.gold is not None and not math.isnan(t.value)]


def order_of(rungs: Sequence[Text], rounding: float = _ROUNDING) -> float:
    """Kendall's τ of score and gold F1 of one topic's ladder; equal scores count 0.

    NaN if all texts have the same gold score. Scores that differ by less than ``rounding`` are
    equal.
    """
    gold = np.array([text.document.gold.f1 for text in rungs])
    score = np.array([text.value for text in rungs])
    by_gold = _signs(gold, _ROUNDING)
    pairs = int((by_gold != 0).sum())
    return float((by_gold * _signs(score, rounding)).sum() / pairs) if pairs else math.nan


def _signs(values: np.ndarray, rounding: float) -> np.ndarray:
    differences = values[:, None] - values
    return np.sign(np.where(np.abs(differences) < rounding, 0.0, differences))


def fit_gold(
    ladders: Sequence[Text], seed: int, rounding: float = _ROUNDING
) -> Callable[[Text], float]:
    """Return the expected gold F1 of a text, from ladders of the other folds of topics."""
    from scipy.optimize import isotonic_regression

    units = sorted({unit_of(text) for text in ladders})
    random.Random(seed).shuffle(units)
    fold_of_unit = {unit: number % FOLDS for number, unit in enumerate(units)}
    fold_of = {text.document.topic: fold_of_unit[unit_of(text)] for text in ladders}
    fits = {}
    for fold in range(FOLDS):
        rest = [text for text in ladders if fold_of[text.document.topic] != fold]
        values = np.round(np.array([text.value for text in rest]) / rounding)
        scores, places = np.unique(values, return_inverse=True)
        counts = np.bincount(places)
        gold = np.bincount(places, [text.document.gold.f1 for text in rest]) / counts
        has_texts = len(rest) > 0
        fit = isotonic_regression(gold, weights=counts).x if has_texts else [math.nan]
        fits[fold] = (scores if has_texts else [0.0], fit)
    return lambda text: float(
        np.interp(np.round(text.value / rounding), *fits[fold_of[text.document.topic]])
    )


class AttackOutcome(NamedTuple):
    """What an attack reaches on one unit.

    Attributes:
        inflation: mean expected minus true gold F1 of the best text of each topic; NaN if no text
            has a score.
        twin: the same of the honest texts that are about as good.
        success: 1 if each of these texts scores higher than the honest text that is better by
            ``MARGIN``, 0 if none does, else ½; a tie or a failed claim counts ½; NaN if no text has
            a score.
        failed: a text, or a claim of the best one, could not be judged.
    """

    inflation: float
    twin: float
    success: float
    failed: bool = False


class HonestLadders:
    """The honest texts of a column, and what its scores mean.

    Args:
        ladders: kind to its texts, of several rungs per topic; the first kind is the main ladder.
        seed: of the folds.
    """

    def __init__(self, ladders: Mapping[str, Sequence[Text]], seed: int):
        self.texts = {kind: usable(texts) for kind, texts in ladders.items()}
        main = next(iter(self.texts.values()), [])
        # Of the main ladder only: rejecting texts of another must not change what a score means.
        self.rungs: dict[str, list[Text]] = defaultdict(list)
        for text in sorted(main, key=lambda text: text.document.gold.f1):
            self.rungs[text.document.topic].append(text)
        scores = [text.value for text in main]
        # The scale of the scores decides which differences are rounding errors.
        self._rounding = _ROUNDING * ((max(scores) - min(scores)) if scores else 0.0) or _ROUNDING
        self._expected = fit_gold(main, seed, self._rounding)

    def orders(self, kind: str) -> dict[str, float]:
        """Topic to Kendall's τ of its texts in a ladder."""
        topics: dict[str, list[Text]] = defaultdict(list)
        for text in self.texts[kind]:
            topics[text.document.topic].append(text)
        orders = {topic: order_of(rungs, self._rounding) for topic, rungs in topics.items()}
        return {topic: order for topic, order in orders.items() if not math.isnan(order)}

    def disorder(self) -> dict[str, float]:
        """Topic to the success rate of the ladder's own texts; a tie counts ½."""
        attacks = [t for rungs in self.rungs.values() for t in rungs if self.better(t) is not None]
        topics: dict[str, list[float]] = defaultdict(list)
        for text in attacks:
            topics[text.document.topic].append(self._success(text))
        return {topic: sum(values) / len(values) for topic, values in topics.items()}

    @property
    def has_rungs(self) -> bool:
        """Whether the main ladder has three gold scores for two topics."""
        levels = [{text.document.gold.f1 for text in texts} for texts in self.rungs.values()]
        return sum(len(scores) > 2 for scores in levels) > 1

    @cached_property
    def void_reason(self) -> str | None:
        """Why the column does not measure; its verdicts are ``void`` then. ``None`` if it does."""
        for kind in self.texts:
            orders = self.orders(kind).values()
            order = fmean(orders) if orders else math.nan
            if not order >= LEAST_ORDER:
                hint = "; the order is reversed: if lower is better, negate the scores"
                return (
                    f"τ of score and gold on `{kind}` is {order:.2f}, below {LEAST_ORDER}"
                    + hint * (order < 0)
                )
        disorder = self.disorder().values()
        rate = fmean(disorder) if disorder else math.nan
        if not rate <= MOST_DISORDER:
            return (
                f"worse honest texts score higher on {rate:.0%} of the topics, more than "
                f"{MOST_DISORDER:.0%}"
            )
        return None

    def better(self, text: Text) -> Text | None:
        """The worst honest text of the topic that is better by ``MARGIN``."""
        least = text.document.gold.f1 + MARGIN - _ROUNDING
        rungs = (rung for rung in self.rungs[text.document.topic] if rung.document.gold.f1 >= least)
        return next(rungs, None)

    def outcomes(self, attacked: Sequence[Text]) -> dict[str, AttackOutcome]:
        """Unit to what the attack reaches; without texts that lack gold or a better honest text."""
        topics: dict[str, list[Text]] = defaultdict(list)
        for text in attacked:
            if text.document.gold is not None and self.better(text) is not None:
                topics[text.document.topic].append(text)
        units: dict[str, list[AttackOutcome]] = defaultdict(list)
        for texts in topics.values():
            units[unit_of(texts[0])].append(self._of_topic(texts))
        return {unit: _of_unit(rows) for unit, rows in units.items()}

    def _of_topic(self, texts: Sequence[Text]) -> AttackOutcome:
        scored = usable(texts)
        if not scored:
            return AttackOutcome(math.nan, math.nan, math.nan, True)
        best = max(scored, key=lambda text: (text.value, -text.document.gold.f1))
        rungs, gold = self.rungs[best.document.topic], best.document.gold.f1
        twin = min(rungs, key=lambda rung: abs(rung.document.gold.f1 - gold))
        is_failed = best.failed > 0 or len(scored) < len(texts)
        success = self._success(best)
        return AttackOutcome(
            self._inflation(best),
            self._inflation(twin),
            max(success, 0.5) if is_failed else success,
            is_failed,
        )

    def _inflation(self, text: Text) -> float:
        return self._expected(text) - text.document.gold.f1

    def _success(self, text: Text) -> float:
        difference = text.value - self.better(text).value
        return 0.5 if abs(difference) < self._rounding else float(difference > 0)


def _of_unit(topics: Sequence[AttackOutcome]) -> AttackOutcome:
    rates = {outcome.success for outcome in topics}
    return AttackOutcome(
        fmean(outcome.inflation for outcome in topics),
        fmean(outcome.twin for outcome in topics),
        rates.pop() if len(rates) == 1 else 0.5,
        any(outcome.failed for outcome in topics),
    )


def excess_inflation(outcomes: Sequence[AttackOutcome]) -> np.ndarray:
    """Inflation of each unit minus that of its twins.

    Twins of other units have the same mean, but the error of that mean would be common to all
    units and in no bound: in a simulation with skewed scores, 4 % of families had a false `held`.
    """
    return np.array([outcome.inflation - outcome.twin for outcome in outcomes])


@dataclass
class Attacked:
    """An attack under a column.

    Attributes:
        kind: the attack.
        column: metric and defence.
        ladder: the honest texts of the column.
        outcomes: by unit.
        failed: claims of its texts that could not be judged.
        excess: excess inflation by unit.
        draws: texts per topic of which the attacker takes the best.
        single: the same attack with only the first text of a topic.
    """

    kind: str
    column: tuple[str, str]
    ladder: HonestLadders
    texts: InitVar[Sequence[Text]]
    outcomes: Mapping[str, AttackOutcome] = field(init=False)
    failed: int = field(init=False)
    excess: np.ndarray = field(init=False)
    draws: int = field(init=False)
    single: "Attacked | None" = field(init=False, default=None)

    def __post_init__(self, texts: Sequence[Text]):
        self.outcomes = self.ladder.outcomes(texts)
        self.failed = sum(text.failed for text in texts)
        self.excess = excess_inflation(list(self.outcomes.values()))
        self.draws = 1 + max((draw_of(text.document) for text in texts), default=0)
        if self.draws > 1:
            first = [text for text in texts if draw_of(text.document) == 0]
            self.single = Attacked(self.kind, self.column, self.ladder, first)

    @property
    def successes(self) -> np.ndarray:
        """By unit: 1, ½ for a tie, a failed claim or a mixed cluster, 0, or NaN without a score."""
        return np.array([outcome.success for outcome in self.outcomes.values()])

    @property
    def excess_range(self) -> np.ndarray:
        """Smallest and largest excess inflation by unit, shape (2, n): a failure may be either."""
        failed = np.array([outcome.failed for outcome in self.outcomes.values()], dtype=bool)
        smallest = np.where(np.isnan(self.excess), -1.0, self.excess)
        return np.stack([smallest, np.where(failed, 1.0, self.excess)])


class Bounds(NamedTuple):
    """Lower and upper bound of excess inflation and of the success rate."""

    inflation: tuple[float, float]
    success: tuple[float, float]

    def verdict(self, n: int, can_hold: bool) -> str:
        """``gamed``, ``held`` or ``unclear``.

        Args:
            n: number of units.
            can_hold: whether the column passed its certificate, and the attack is evidence.
        """
        if self.inflation[0] > INFLATION or self.success[0] > SUCCESS:
            return "gamed"
        is_low = self.inflation[1] < INFLATION and self.success[1] <= SUCCESS
        return "held" if is_low and can_hold and n >= LEAST_UNITS else "unclear"


def bounds_of(excess: np.ndarray, successes: np.ndarray, level: float) -> Bounds:
    """Bounds that are wrong with a probability of at most ``level`` each.

    A tie, a failure or a mixed cluster counts as a success for the upper bound and as a failure of
    the attack for the lower. Excess inflation outside [-1, 1] is clipped.

    Args:
        excess: by unit, shape (n,), or its smallest and largest values, shape (2, n).
        successes: by unit.
        level: of each bound.
    """
    n = len(successes)
    low, high = 0.0, 1.0
    if not np.isnan(excess).any():  # without a ladder no expected gold
        smallest, largest = (np.clip(np.broadcast_to(excess, (2, n)), -1, 1) + 1) / 2
        low, high = betting_bounds(smallest, level)[0], betting_bounds(largest, level)[1]
    lower, _ = clopper_pearson(int((successes == 1).sum()), n, level)
    _, upper = clopper_pearson(n - int((successes == 0).sum()), n, level)
    return Bounds((2 * low - 1, 2 * high - 1), (lower, upper))


def units_needed(excess: np.ndarray, successes: np.ndarray, level: float) -> int | None:
    """The number of units like these that would decide a verdict, if the certificate passes."""
    for multiple in MULTIPLES:
        n = multiple * len(successes)
        bounds = bounds_of(np.tile(excess, multiple), np.tile(successes, multiple), level)
        if bounds.verdict(n, can_hold=True) != "unclear":
            return n
    return None


def ladders_of(
    cells: Cells, honest: Sequence[str], seed: int
) -> dict[tuple[str, str], HonestLadders]:
    """Metric and defence to the honest texts of the column."""
    columns = {place: by_kind(texts) for place, texts in cells.items()}
    return {
        place: HonestLadders({kind: kinds.get(kind, []) for kind in honest}, seed)
        for place, kinds in columns.items()
    }


def attacks_of(cells: Cells, ladders: Mapping[tuple[str, str], HonestLadders]) -> list[Attacked]:
    """The texts of each kind that is no ladder, under each column."""
    return [
        Attacked(kind, place, ladders[place], texts)
        for place, column in cells.items()
        for kind, texts in by_kind(column).items()
        if kind not in ladders[place].texts
    ]


class NoEvidence(NamedTuple):
    """Attacks against which `held` says nothing.

    Attributes:
        inert: metric to the attacks that do nothing to it without a defence.
        controlled: attacks whose bounds a control without a model also meets.
    """

    inert: Mapping[str, Collection[str]]
    controlled: Collection[str]

    def concerns(self, attack: Attacked) -> bool:
        metric, _ = attack.column
        return attack.kind in self.inert.get(metric, ()) or attack.kind in self.controlled


ALL_EVIDENCE = NoEvidence({}, ())


def no_evidence(attacks: Sequence[Attacked], control: str, cells: int) -> NoEvidence:
    """Find the attacks that are inert, or held by a control.

    Args:
        attacks: of all columns.
        control: metric without a model.
        cells: number of attacks and columns that the level is divided by.
    """
    inert: dict[str, set[str]] = defaultdict(set)
    controlled = set()
    for attack in attacks:
        metric, column = attack.column
        if metric == control and attack.ladder.void_reason is None and attack.outcomes:
            bounds = bounds_of(attack.excess_range, attack.successes, LEVEL / max(1, cells))
            if bounds.verdict(len(attack.outcomes), can_hold=True) == "held":
                controlled.add(attack.kind)
        if column == NONE and not np.isnan(attack.excess).all():
            effect = np.nanmean(attack.excess) > INFLATION
            if not effect and np.nanmean(attack.successes) <= SUCCESS:
                inert[metric].add(attack.kind)
    return NoEvidence(inert, controlled)


def attack_values(
    attacks: Sequence[Attacked],
    passed: Collection[tuple[str, str]],
    cells: int,
    without_evidence: NoEvidence = ALL_EVIDENCE,
) -> Iterator[Value]:
    """``excess_inflation`` with the verdict, ``asr``, ``units_needed``, and the worst of a column.

    Without a ladder of several rungs only ``asr``, without a verdict. The variant is the number of
    texts of a topic of which the best counts, with ``single_excess`` and ``single_successes`` of
    the first.

    Args:
        attacks: of all columns; those without a unit are left out.
        passed: columns that passed their certificate.
        cells: number of attacks and columns that the level is divided by.
        without_evidence: attacks that are never `held`.
    """
    level = LEVEL / max(1, cells)
    worst: dict[tuple[tuple[str, str], str], Value] = {}
    for attack in attacks:
        if not attack.outcomes:
            continue
        metric, column = attack.column
        n = len(attack.outcomes)
        shared = {"assessor": metric, "selection": column, "kind": attack.kind, "n": n}
        shared |= {"generator": ALL, "failed": attack.failed, "variant": attack.draws}
        bounds = bounds_of(attack.excess_range, attack.successes, level)
        rate = {"value": None, "ci95": None, "bounds": bounds.success}
        if not np.isnan(attack.successes).all():
            rate["value"] = float(np.nanmean(attack.successes))
        rows = [{"metric": "asr"} | rate]
        if attack.ladder.has_rungs:
            can_hold = attack.column in passed and not without_evidence.concerns(attack)
            verdict = bounds.verdict(n, can_hold)
            verdict = "void" if attack.ladder.void_reason else verdict
            row = {"metric": "excess_inflation", "bounds": bounds.inflation, "verdict": verdict}
            rows.append(row | fields_of(t_interval(attack.excess)))
            if verdict == "unclear":
                needed = units_needed(attack.excess_range, attack.successes, level)
                rows.append({"metric": "units_needed", "value": needed, "ci95": None})
        if attack.single is not None:
            for name in ("excess", "successes"):
                values = fields_of(t_interval(getattr(attack.single, name)))
                yield shared | {"metric": f"single_{name}"} | values
        for row in rows:
            yield shared | row
            key = (attack.column, row["metric"])
            if row["metric"] == "units_needed" or row["value"] is None:
                continue
            if key not in worst or row["value"] > worst[key]["value"]:
                worst[key] = shared | row | {"variant": attack.kind, "kind": ALL}
    for row in worst.values():
        yield row | {"metric": f"worst_{row['metric']}", "verdict": None}
