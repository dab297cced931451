"""Metrics of the agreement experiment from judged claims."""

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from components.calibration import expected_calibration_error
from components.statistics import (
    auroc,
    auroc_within,
    balanced_accuracy,
    best_threshold,
    bootstrap,
    confusion,
    pearson,
    precision_recall_f1,
    quantile_bins,
)
from records.types import ClaimLabel, Record, VerdictLabel

ALL, MACRO = "all", "macro"
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


class JudgedClaim(Record):
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


class Value(NamedTuple):
    """Key of a value: the identifying fields of a result."""

    metric: str
    assessor: str
    group: str = ALL
    variant: str | None = None
    against: str | None = None


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


class Table(NamedTuple):
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


def table_of(claims: Sequence[JudgedClaim]) -> Table:
    label = {"S": 1.0, "NS": 0.0}
    return Table(
        np.asarray([label.get(claim.label, math.nan) for claim in claims]),
        np.asarray([claim.finer for claim in claims], dtype=object),
        _numbers(claim.share for claim in claims),
        _numbers(claim.people for claim in claims),
        np.asarray([claim.source for claim in claims], dtype=object),
        np.asarray([claim.unit for claim in claims], dtype=object),
        quantile_bins(_numbers(claim.overlap for claim in claims), TENTHS),
    )


def judges_of(claims: Sequence[JudgedClaim], table: Table, seed: int) -> dict[str, Judge]:
    """Return all assessors and the controls; word overlap uses the other half's threshold."""
    halves, judges = halves_of(table.unit, seed), {}
    for name in dict.fromkeys(name for claim in claims for name in claim.verdicts):
        verdicts = [claim.verdicts.get(name, ClaimVerdict(label="failed")) for claim in claims]
        labels = _numbers(_DECISIONS.get(verdict.label) for verdict in verdicts)
        p = np.where(np.isnan(labels), math.nan, _numbers(verdict.p for verdict in verdicts))
        probable = bool((~np.isnan(labels)).any() and not np.isnan(p[~np.isnan(labels)]).any())
        score = p if probable else labels
        judges[name] = Judge(score, labels, _fitted(score, table, halves), probable)
    score = _numbers(claim.overlap for claim in claims)
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


def _fitted(score: np.ndarray, table: Table, halves: np.ndarray) -> dict[str, np.ndarray]:
    fitted = {HALF: _by_others(score, table.supported, halves)}
    if table.sources:
        fitted[SOURCES] = _by_others(score, table.supported, table.source)
    return fitted


def _by_others(score: np.ndarray, supported: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Label each part's rows with the best threshold of all other parts.

    Returns:
        Shape (n,); NaN without a score or if the other parts do not have both classes.
    """
    labels = np.full(len(score), math.nan)
    usable = ~np.isnan(score) & ~np.isnan(supported)
    for part in set(parts):
        rest, rows = usable & (parts != part), (parts == part) & ~np.isnan(score)
        threshold = best_threshold(score[rest], supported[rest] == 1)
        if not math.isnan(threshold):
            labels[rows] = score[rows] >= threshold
    return labels


def _numbers(values: Iterable[float | None]) -> np.ndarray:
    return np.asarray([math.nan if value is None else value for value in values], dtype=float)


# Values


def values_of(table: Table, judges: Mapping[str, Judge], seed: int) -> Iterator[dict]:
    """Yield result fields with intervals over units; all values share the bootstrap samples.

    ECE has no interval because the bootstrap biases it upwards.
    """
    values = bootstrap(lambda rows: _statistics(table, judges, rows), table.unit, seed=seed)
    for name, value in values.items():
        if value["value"] is None:
            continue
        subset = np.full(len(table.unit), True)
        if name.group not in (ALL, MACRO):
            subset = table.source == name.group
        failed = 0
        if name.assessor in judges:  # a person does not fail
            judge = judges[name.assessor]
            failed = int((np.isnan(judge.labels) & np.isnan(judge.score) & subset).sum())
        counts = {"n": len(set(table.unit[subset])), "failed": failed}
        interval = {"ci95": None} if name.metric == "ece" else {}
        yield {**name._asdict(), **counts, **value, **interval}


def _statistics(table: Table, judges: Mapping[str, Judge], rows: np.ndarray) -> dict[Value, float]:
    values: dict[Value, float] = {}
    places = {ALL: rows} | {name: rows[table.source[rows] == name] for name in table.sources}
    for assessor, judge in judges.items():
        for group, subset in places.items():
            for (metric, variant), value in _agreement(table, judge, subset).items():
                values[Value(metric, assessor, group, variant)] = value
            against = OVERLAP if assessor not in (OVERLAP, ALWAYS) else None
            for metric, variant, value in _beyond(table, judge, judges[OVERLAP], subset, against):
                values[Value(metric, assessor, group, variant, against)] = value
        for metric, variant, value in _finer(table, judge, rows):
            values[Value(metric, assessor, ALL, variant)] = value
    for assessor, value in _but_one(table, judges, rows):
        values[Value("balanced_accuracy", assessor, ALL, BUT_ONE)] = value
    return values | _macro(values, table.sources)


def _agreement(table: Table, judge: Judge, rows: np.ndarray) -> dict[tuple, float]:
    """Compare an assessor with human labels; only ``failed_wrong`` includes its failures."""
    rows = rows[~np.isnan(table.supported[rows])]
    failed = np.isnan(judge.score) & np.isnan(judge.labels)
    judged = rows[~failed[rows]]
    values: dict[tuple, float] = {
        ("coverage", None): len(judged) / len(rows) if len(rows) else math.nan,
        ("auroc", None): auroc(judge.score[judged], table.supported[judged] == 1),
        ("auroc", EQUAL): _at_equal_overlap(table, judge, judged),
    }
    wrong = np.where(failed, 1 - table.supported, judge.labels)
    variants = {None: judge.labels, **judge.fitted} | ({WRONG: wrong} if failed.any() else {})
    for variant, labels in variants.items():
        kept = rows[~np.isnan(labels[rows])]
        counts = confusion(table.supported[kept] == 1, labels[kept] == 1)
        values["balanced_accuracy", variant] = balanced_accuracy(counts)
        gold, called = int(counts[0].sum()), int(counts[:, 0].sum())
        f1 = precision_recall_f1(int(counts[0, 0]), called, gold)[2] if gold else math.nan
        values["f1_unsupported", variant] = f1
    if judge.probable and len(judged):
        p, true = judge.score[judged], table.supported[judged]
        values["ece", None] = expected_calibration_error(p, true)
        values["brier", None] = float(np.mean((p - true) ** 2))
    return values


def _at_equal_overlap(table: Table, judge: Judge, rows: np.ndarray) -> float:
    binned = rows[table.tenth[rows] >= 0]
    return auroc_within(judge.score[binned], table.supported[binned] == 1, table.tenth[binned])


def _beyond(
    table: Table, judge: Judge, overlap: Judge, rows: np.ndarray, against: str | None
) -> Iterator[tuple]:
    if against is None:
        return
    both = ~np.isnan(judge.score) & ~np.isnan(overlap.score) & ~np.isnan(table.supported)
    judged = rows[both[rows]]
    true = table.supported[judged] == 1
    yield "auroc", None, auroc(judge.score[judged], true) - auroc(overlap.score[judged], true)
    pairs = {None: (judge.labels, overlap.labels)}
    pairs |= {name: (judge.fitted[name], overlap.fitted[name]) for name in judge.fitted}
    for variant, sides in pairs.items():
        shared = judged[~np.isnan(sides[0][judged]) & ~np.isnan(sides[1][judged])]
        accuracy, baseline = (
            balanced_accuracy(confusion(table.supported[shared] == 1, labels[shared] == 1))
            for labels in sides
        )
        yield "balanced_accuracy", variant, accuracy - baseline


def _finer(table: Table, judge: Judge, rows: np.ndarray) -> Iterator[tuple]:
    judged = rows[~np.isnan(judge.labels[rows])]
    for word in sorted(set(table.finer)):
        at = judged[table.finer[judged] == word]
        yield "called_supported", word, float(judge.labels[at].mean()) if len(at) else math.nan
    scored = rows[~np.isnan(judge.score[rows])]
    negative = sorted(set(table.finer[table.supported == 0]))
    for word in negative if len(negative) > 1 else ():
        chosen = (table.supported[scored] == 1) | (table.finer[scored] == word)
        pair = scored[chosen & ~np.isnan(table.supported[scored])]
        yield "auroc", f"against {word}", auroc(judge.score[pair], table.supported[pair] == 1)
    voted = scored[~np.isnan(table.share[scored])]
    if not np.isnan(table.share).all():
        yield "pearson_votes", None, float(pearson(judge.score[voted], table.share[voted]))


def _but_one(
    table: Table, judges: Mapping[str, Judge], rows: np.ndarray
) -> Iterator[tuple[str, float]]:
    """Balanced accuracy against the majority of all people except one, also of that person.

    This is human performance on labels that the person did not contribute to. Each person of a
    claim is left out in turn, with a total weight of one claim; ties are skipped.
    """
    several = rows[table.people[rows] > 1]
    if not len(several):
        return
    people, rest = table.people[several], table.people[several] - 1
    yes = np.rint(table.share[several] * people)
    tables: dict[str, np.ndarray] = {name: np.zeros((2, 2)) for name in [*judges, PERSON]}
    labels = {name: judge.labels[several] for name, judge in judges.items()}
    for voted, voters, agreeing in ((1.0, yes, yes - 1), (0.0, people - yes, yes)):
        decided = (voters > 0) & (2 * agreeing != rest)
        most = (2 * agreeing > rest).astype(int)
        for name, each in {**labels, PERSON: np.full(len(several), voted)}.items():
            valid = decided & ~np.isnan(each)
            place = most[valid], each[valid].astype(int)
            np.add.at(tables[name], place, voters[valid] / people[valid])
    for name, confusions in tables.items():
        yield name, balanced_accuracy(confusions)


def _macro(values: Mapping[Value, float], sources: Sequence[str]) -> dict[Value, float]:
    by_name: dict[Value, list[float]] = {}
    for name, value in values.items():
        if name.group in sources and not math.isnan(value):
            by_name.setdefault(name._replace(group=MACRO), []).append(value)
    return {name: float(np.mean(group)) for name, group in by_name.items()}
