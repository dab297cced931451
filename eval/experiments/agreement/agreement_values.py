"""Metrics of the agreement experiment from judged claims."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from components.calibration import expected_calibration_error
from components.statistics import (
    auroc,
    auroc_within,
    balanced_accuracy,
    best_threshold,
    confusion,
    nan_mean,
    pearson,
    precision_recall_f1,
    quantile_bins,
)
from eval.experiments.quantities import Quantity, accuracy_of_classes, array, estimate
from records.types import ClaimLabel, Record, VerdictLabel

ALL, MACRO = "all", "macro"
# Names of all claims that people call supported, and of all others.
ALL_TRUE, ALL_FALSE = "all true", "all false"
OVERLAP, ALWAYS, PERSON = "overlap", "always supported", "a person"
# Variants: thresholds fitted on other claims, and failures counted as wrong.
HALF, SOURCES, WRONG = "other_half", "other_sources", "failed_wrong"
# Variant: the label is the majority of all people except one.
BUT_ONE = "all_people_but_one"
# Variant: claims are compared within deciles of overlap.
EQUAL, TENTHS = "equal_overlap", 10
_DECISIONS = {"supported": 1.0, "not_supported": 0.0, "contradicted": 0.0, "undecided": 0.0}


class ClaimVerdict(Record):
    label: VerdictLabel
    p: float | None = None


class ComparedClaim(Record):
    """A claim with its human label and all verdicts: a row of ``claims.jsonl``.

    Attributes:
        set: set and level.
        source: source within the set; ``all`` if none.
        unit: sampling unit.
        share: share of people who labelled it supported.
        people: number of people; ``None`` if unknown.
        overlap: share of its IDF-weighted stems in the evidence; ``None`` without evidence.
    """

    set: str
    document: str
    claim: str
    text: str
    source: str = ALL
    unit: str
    label: ClaimLabel | None = None
    finer: str
    share: float | None = None
    people: int | None = None
    overlap: float | None = None
    verdicts: dict[str, ClaimVerdict]


class Judge(NamedTuple):
    """One assessor's answers to n claims; NaN for failures.

    Attributes:
        score: probability, or else the verdict, shape (n,).
        labels: 1 for supported, 0 for not supported, shape (n,).
        fitted: variant to labels with a threshold fitted on other claims.
        probable: whether the scores are probabilities.
    """

    score: np.ndarray
    labels: np.ndarray
    fitted: Mapping[str, np.ndarray]
    probable: bool

    @property
    def failed(self) -> np.ndarray:
        """Whether the assessor failed, shape (n,)."""
        return np.isnan(self.score) & np.isnan(self.labels)


class ClaimTable(NamedTuple):
    """The claims of a set, column by column, each of shape (n,).

    Attributes:
        supported: human label as 1 or 0; NaN without a majority.
        tenth: decile of the claim's overlap in the set; -1 without evidence.
    """

    supported: np.ndarray
    finer: np.ndarray
    share: np.ndarray
    people: np.ndarray
    source: np.ndarray
    unit: np.ndarray
    tenth: np.ndarray

    @property
    def sources(self) -> list[str]:
        """Sorted names of the sources; empty if there is only one."""
        names = sorted(set(self.source) - {ALL})
        return names if len(names) > 1 else []


def values_of(claims: Sequence[ComparedClaim], seed: int) -> Iterator[dict]:
    """Yield result fields with intervals over units; all values share the bootstrap samples.

    ECE has no interval because the bootstrap biases it upwards.
    """
    table = _table_of(claims)
    judges = _judges_of(claims, table, seed)
    for row in estimate(list(_quantities(table, judges)), table.unit, seed):
        if row["value"] is None:
            continue
        subset = np.full(len(claims), True)
        if row["group"] not in (ALL, MACRO):
            subset = table.source == row["group"]
        failed = 0
        if row["assessor"] in judges:  # a person does not fail
            failed = int((judges[row["assessor"]].failed & subset).sum())
        interval = {"ci95": None} if row["metric"] == "ece" else {}
        yield {**row, **interval, "n": len(set(table.unit[subset])), "failed": failed}


def _table_of(claims: Sequence[ComparedClaim]) -> ClaimTable:
    label = {"S": 1.0, "NS": 0.0}
    finer, source, unit = (
        np.asarray([getattr(claim, name) for claim in claims], dtype=object)
        for name in ("finer", "source", "unit")
    )
    return ClaimTable(
        array(label.get(claim.label) for claim in claims),
        finer,
        array(claim.share for claim in claims),
        array(claim.people for claim in claims),
        source,
        unit,
        quantile_bins(array(claim.overlap for claim in claims), TENTHS),
    )


def _judges_of(claims: Sequence[ComparedClaim], table: ClaimTable, seed: int) -> dict[str, Judge]:
    """Return all assessors and the controls; word overlap uses the other half's threshold."""
    halves, judges = halves_of(table.unit, seed), {}
    for name in dict.fromkeys(name for claim in claims for name in claim.verdicts):
        verdicts = [claim.verdicts.get(name, ClaimVerdict(label="failed")) for claim in claims]
        labels = array(_DECISIONS.get(verdict.label) for verdict in verdicts)
        p = np.where(np.isnan(labels), np.nan, array(verdict.p for verdict in verdicts))
        probable = bool((~np.isnan(labels)).any() and not np.isnan(p[~np.isnan(labels)]).any())
        score = p if probable else labels
        judges[name] = Judge(score, labels, _fitted(score, table, halves), probable)
    score = array(claim.overlap for claim in claims)
    fitted = _fitted(score, table, halves)
    judges[OVERLAP] = Judge(score, fitted[HALF], fitted, False)
    constant = np.ones(len(claims))
    judges[ALWAYS] = Judge(constant, constant, {}, True)
    return judges


def halves_of(units: np.ndarray, seed: int) -> np.ndarray:
    """Return the random half, 0 or 1, of each row's unit; shape (n,)."""
    names = sorted(set(units))
    random.Random(seed).shuffle(names)
    half = {name: place % 2 for place, name in enumerate(names)}
    return np.asarray([half[name] for name in units])


def _fitted(score: np.ndarray, table: ClaimTable, halves: np.ndarray) -> dict[str, np.ndarray]:
    fitted = {HALF: _by_others(score, table.supported, halves)}
    if table.sources:
        fitted[SOURCES] = _by_others(score, table.supported, table.source)
    return fitted


def _by_others(score: np.ndarray, supported: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Label each part's rows with the best threshold of all other parts.

    Returns:
        Shape (n,); NaN without a score or if the other parts do not have both classes.
    """
    labels = np.full(len(score), np.nan)
    usable = ~np.isnan(score) & ~np.isnan(supported)
    for part in set(parts):
        rest, rows = usable & (parts != part), (parts == part) & ~np.isnan(score)
        threshold = best_threshold(score[rest], supported[rest] == 1)
        if not np.isnan(threshold):
            labels[rows] = score[rows] >= threshold
    return labels


# Values


def _quantities(table: ClaimTable, judges: Mapping[str, Judge]) -> Iterator[Quantity]:
    macro: list[Quantity] = []
    for assessor, judge in judges.items():
        quantities = list(_agreement(table, judge))
        if assessor not in (OVERLAP, ALWAYS):
            quantities += _beyond(table, judge, judges[OVERLAP])
        named = [
            q._replace(fields={"assessor": assessor, "group": ALL} | q.fields) for q in quantities
        ]
        yield from named
        for source in table.sources:
            for quantity in named:
                columns = [np.where(table.source == source, c, np.nan) for c in quantity.columns]
                fields = {**quantity.fields, "group": source}
                yield quantity._replace(fields=fields, columns=columns)
        if table.sources:
            macro += [_mean_over_sources(table, quantity) for quantity in named]
        for quantity in _finer(table, judge):
            yield quantity._replace(fields={"assessor": assessor, "group": ALL} | quantity.fields)
    yield from _but_one(table, judges)
    yield from macro


def _mean_over_sources(table: ClaimTable, quantity: Quantity) -> Quantity:
    def mean(*columns: np.ndarray) -> float:
        *columns, code = columns
        values = array(
            (quantity.statistic or np.mean)(*(column[code == number] for column in columns))
            for number in np.unique(code)
        )
        return float(nan_mean(values))

    codes = [table.sources.index(name) if name in table.sources else None for name in table.source]
    fields = {**quantity.fields, "group": MACRO}
    return Quantity(fields, [*quantity.columns, array(codes)], mean)


def _fields(metric: str, variant: str | None = None, against: str | None = None) -> dict:
    return {"metric": metric, "variant": variant, "against": against}


def _agreement(table: ClaimTable, judge: Judge) -> Iterator[Quantity]:
    """Compare an assessor with human labels; only ``failed_wrong`` includes its failures."""
    true, score, failed = table.supported, judge.score, judge.failed
    yield Quantity(_fields("coverage"), [np.where(np.isnan(true), np.nan, ~failed)])
    yield Quantity(_fields("auroc"), [score, true], auroc)
    tenth = np.where(table.tenth >= 0, table.tenth, np.nan)
    yield Quantity(
        _fields("auroc", EQUAL),
        [true, score, tenth],
        lambda t, s, bins: auroc_within(s, t == 1, bins),
    )
    wrong = np.where(failed, 1 - true, judge.labels)
    variants = {None: judge.labels, **judge.fitted} | ({WRONG: wrong} if failed.any() else {})
    for variant, labels in variants.items():
        columns = [true, labels]
        yield Quantity(_fields("balanced_accuracy", variant), columns, accuracy_of_classes)
        yield Quantity(_fields("f1_unsupported", variant), columns, _f1_unsupported)
    if judge.probable:
        columns = [score, true]
        yield Quantity(_fields("ece"), columns, expected_calibration_error)
        yield Quantity(_fields("brier"), [(score - true) ** 2])


def _f1_unsupported(true: np.ndarray, labels: np.ndarray) -> float:
    counts = confusion(true == 1, labels == 1)
    gold, called = int(counts[0].sum()), int(counts[:, 0].sum())
    return precision_recall_f1(int(counts[0, 0]), called, gold)[2] if gold else np.nan


def _beyond(table: ClaimTable, judge: Judge, overlap: Judge) -> Iterator[Quantity]:
    def gain(true: np.ndarray, left: np.ndarray, right: np.ndarray) -> float:
        return auroc(left, true) - auroc(right, true)

    def gained_accuracy(true: np.ndarray, left: np.ndarray, right: np.ndarray) -> float:
        return accuracy_of_classes(true, left) - accuracy_of_classes(true, right)

    true = table.supported
    yield Quantity(_fields("auroc", None, OVERLAP), [true, judge.score, overlap.score], gain)
    pairs = {None: (judge.labels, overlap.labels)}
    pairs |= {name: (judge.fitted[name], overlap.fitted[name]) for name in judge.fitted}
    for variant, sides in pairs.items():
        fields = _fields("balanced_accuracy", variant, OVERLAP)
        yield Quantity(fields, [true, *sides], gained_accuracy)


def _finer(table: ClaimTable, judge: Judge) -> Iterator[Quantity]:
    true, score = table.supported, judge.score
    groups = {word: table.finer == word for word in sorted(set(table.finer))}
    for word, chosen in (groups | {ALL_TRUE: true == 1, ALL_FALSE: true == 0}).items():
        yield Quantity(_fields("called_supported", word), [np.where(chosen, judge.labels, np.nan)])
    negative = sorted(set(table.finer[true == 0]))
    for word in negative if len(negative) > 1 else ():
        chosen = np.where((true == 1) | (table.finer == word), true, np.nan)
        fields = _fields("auroc", f"against {word}")
        yield Quantity(fields, [score, chosen], auroc)
    if not np.isnan(table.share).all():
        yield Quantity(_fields("pearson_votes"), [score, table.share], pearson)


def _but_one(table: ClaimTable, judges: Mapping[str, Judge]) -> Iterator[Quantity]:
    """Balanced accuracy against the majority of all people except one, also of that person.

    This is human performance on labels that the person did not contribute to. Each person of a
    claim is left out in turn, with a total weight of one claim; ties are skipped.
    """
    several = table.people > 1
    if not several.any():
        return
    people, rest = table.people, table.people - 1
    yes = np.rint(table.share * people)
    for name in [*judges, PERSON]:
        cells = np.where(several[:, None, None], np.zeros((2, 2)), np.nan)
        for voted, voters, agreeing in ((1, yes, yes - 1), (0, people - yes, yes)):
            called = judges[name].labels if name in judges else np.full(len(people), voted)
            counts = several & (voters > 0) & (2 * agreeing != rest) & ~np.isnan(called)
            most = (2 * agreeing > rest).astype(int)
            place = np.flatnonzero(counts), most[counts], called[counts].astype(int)
            cells[place] += voters[counts] / people[counts]
        fields = {"assessor": name, "group": ALL} | _fields("balanced_accuracy", BUT_ONE)
        yield Quantity(
            fields,
            [cells.reshape(-1, 4)],
            lambda cells: balanced_accuracy(cells.sum(axis=0).reshape(2, 2)),
        )
