"""Metrics of the decomposition experiment, with bootstrap intervals over topics.

A value of a decomposer and a generator is a ratio of sums over passages, e.g. supported subclaims
over passages; the macro value is the mean over generators. A bootstrap sample of topics includes
the passages of all generators.

``coherence`` is pooled: supported over judged subclaims of all passages. ``coherence_per_passage``
is the mean of the passages' shares, as in Table 6 of 2403.11903 (its ChatGPT row has 93.0 % for
R-ND; Tables 2 and 3 give 43.0 / 44.2 = 97.3 %), without passages that have no judged subclaim.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from components.statistics import bootstrap, kappa, pearson, spearman
from eval.experiments.decomposition.people import columns
from eval.metrics.claim_matches import Matches
from eval.metrics.decomposition import one_of_each
from eval.metrics.document import FAILED, DocumentScore, Tally, named, tally
from records import UserError

MACRO, ALL = "macro", "all"
SUPPORTED = ("decomp_score", "coherence", "coherence_per_passage")


class Passages(NamedTuple):
    """One decomposer's passages; every list has one entry per passage.

    Attributes:
        usable, failed: numbers of claims and of failures.
        decisions: judge to the decisions (1, 0, -1) on the usable claims.
        classes: equivalence classes of the usable claims; ``None`` if not computed.
        scores: of each verifier, without and with Core.
        filtered: judge to the verifiers' scores over the claims that it labels supported.
        penalised: whether FActScore with a length penalty is computed as well.
        matches: with human claims; ``None`` if not computed.
        written: judge to the decisions by the original sentences; empty for a passage that is not
            decontextualised.
    """

    topics: Sequence[str]
    generators: Sequence[str]
    usable: Sequence[int]
    failed: Sequence[int]
    decisions: Mapping[str, Sequence[Sequence[int]]]
    classes: Sequence[Sequence[int]] | None
    scores: Sequence[Sequence[DocumentScore]]
    filtered: Mapping[str, Sequence[Sequence[DocumentScore]]]
    penalised: bool = False
    matches: Sequence[Matches] | None = None
    written: Mapping[str, Sequence[Sequence[int]]] = MappingProxyType({})


class Quantity(NamedTuple):
    """Key of a value of a decomposer and generator: fields of a result."""

    metric: str
    assessor: str | None = None
    selection: str = "none"
    variant: str | None = None


class Column(NamedTuple):
    """Numerator, denominator and failures of a metric, each of shape (passages,)."""

    above: np.ndarray
    below: np.ndarray
    failed: np.ndarray


def values_of(
    by_decomposer: Mapping[str, Passages],
    seed: int,
    reported: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> list[dict]:
    """Return the result fields, without those shared by all results.

    Args:
        by_decomposer: the same passages in the same order for every decomposer.
        seed: of the bootstrap.
        reported: metric to generator to its published value (:func:`check_reported`).
    """
    rows = []
    for name, passages in by_decomposer.items():
        rows += _means(name, passages, seed, reported)
        rows += _agreement(name, [passages], seed)
    if len(by_decomposer) > 1:
        rows += _agreement(ALL, list(by_decomposer.values()), seed)
    return rows


# Means of one decomposer


def columns_of(part: Passages) -> dict[Quantity, Column]:
    lost = np.asarray(part.failed)
    whole = [Tally(u, 0, f).scored for u, f in zip(part.usable, part.failed, strict=True)]
    table = {Quantity("subclaims"): Column(np.asarray(part.usable), np.asarray(whole), lost)}
    if part.classes is not None:
        distinct = np.asarray([len(set(classes)) for classes in part.classes])
        table[Quantity("subclaims_distinct")] = Column(distinct, np.asarray(whole), lost)
    for judge, decisions in part.decisions.items():
        scores = _supported(decisions, lost)
        for metric, column in zip(SUPPORTED, scores, strict=True):
            table[Quantity(metric, judge)] = column
        if part.classes is not None:
            merged = [one_of_each(d, c) for d, c in zip(decisions, part.classes, strict=True)]
            # Failures are counted before duplicates are merged.
            distinct = _supported(merged, lost)[0]._replace(failed=scores[0].failed)
            table[Quantity("decomp_score_distinct", judge)] = distinct
    if part.matches is not None:
        for metric, (above, below) in columns(part.matches, part.usable, part.failed).items():
            table[Quantity(metric)] = Column(above, below, lost)
    for judge, decisions in part.written.items():
        table[Quantity("context_changes", judge)] = _changed(part.decisions[judge], decisions)
    return table | _precision(part)


def _changed(forms: Sequence[Sequence[int]], written: Sequence[Sequence[int]]) -> Column:
    decision_pairs = zip(forms, written, strict=True)
    pairs = [list(zip(a, b, strict=True)) if b else [] for a, b in decision_pairs]
    both = [[(a, b) for a, b in row if FAILED not in (a, b)] for row in pairs]
    counts = [(sum(a != b for a, b in row), len(row)) for row in both]
    failed = [len(row) - len(judged) for row, judged in zip(pairs, both, strict=True)]
    above, below = np.asarray(counts).reshape(-1, 2).T
    return Column(above, below, np.asarray(failed))


def _supported(decisions: Sequence[Sequence[int]], lost: np.ndarray) -> tuple[Column, ...]:
    counts = [
        tally([*labels, *[FAILED] * number]) for labels, number in zip(decisions, lost, strict=True)
    ]
    judged, supported, failed = np.asarray(counts).reshape(-1, 3).T
    scored = np.asarray([count.scored for count in counts])
    shares = supported / np.maximum(judged, 1)
    mean = Column(shares, judged > 0, failed)
    return Column(supported, scored, failed), Column(supported, judged, failed), mean


def _precision(passages: Passages) -> dict[Quantity, Column]:
    # Over all claims and over the supported ones; the penalty counts the claims of the value.
    assessors = list(
        dict.fromkeys((s.assessor, s.name) for row in passages.scores for s in row if s.assessor)
    )
    several = len(assessors) > 1
    parts = {"factual_precision": "precision"}
    parts |= {"factscore": "factscore"} if passages.penalised else {}
    table = {}
    for assessor in assessors:
        name = named(*assessor) if several else None
        for selection in dict.fromkeys(score.selection for row in passages.scores for score in row):
            # A text without claims has no assessor name and precision 0.
            scores = [
                _score_of(row, (assessor, ("", "default")), selection) for row in passages.scores
            ]
            for metric, part in parts.items():
                table[Quantity(metric, name, selection)] = _mean(scores, part)
        for judge, rows in passages.filtered.items():
            scores = [_score_of(row, (assessor,), "none") for row in rows]
            for metric, part in parts.items():
                quantity = Quantity(f"{metric}_supported_only", name, variant=judge)
                table[quantity] = _mean(scores, part)
    return table


def _score_of(row: Sequence[DocumentScore], names: tuple, selection: str) -> DocumentScore | None:
    matches = [s for s in row if (s.assessor, s.name) in names and s.selection == selection]
    return matches[0] if matches else None


def _mean(scores: Sequence[DocumentScore | None], part: str) -> Column:
    values = [None if score is None else getattr(score, part) for score in scores]
    return Column(
        np.asarray([value or 0.0 for value in values]),
        np.asarray([value is not None for value in values]),
        np.asarray([0 if score is None else score.failed for score in scores]),
    )


def _means(
    decomposer: str, part: Passages, seed: int, reported: Mapping[str, Mapping[str, float]]
) -> list[dict]:
    columns = columns_of(part)
    above, below, failed = (
        np.stack([column[part] for column in columns.values()], axis=1).astype(float)
        for part in range(3)
    )
    names = list(dict.fromkeys(part.generators))
    generator = np.asarray([names.index(name) for name in part.generators])
    topics = np.asarray(part.topics, dtype=object)
    compared = _compared(columns, names, reported)

    def statistics(chosen: np.ndarray) -> dict[tuple, float]:
        values = []
        for place in range(len(names)):
            rows = chosen[generator[chosen] == place]
            with np.errstate(invalid="ignore", divide="ignore"):
                values.append(above[rows].sum(axis=0) / below[rows].sum(axis=0))
        correlations = {
            (quantity, ALL): float(pearson(np.asarray(values)[rows, place], theirs))
            for quantity, (place, rows, theirs) in compared.items()
        }
        values.append(np.mean(values, axis=0))
        return correlations | {
            (quantity, name): float(value)
            for name, row in zip([*names, MACRO], values, strict=True)
            for quantity, value in zip(columns, row, strict=True)
        }

    values = bootstrap(statistics, part.topics, seed=seed)
    rows = []
    for (quantity, name), value in values.items():
        if name == ALL:
            place, indexes, _ = compared[quantity]
        else:
            place = list(columns).index(quantity)
            indexes = range(len(names)) if name == MACRO else [names.index(name)]
        members = np.isin(generator, indexes)
        entered = members & (below[:, place] > 0)
        counts = {"n": len(set(topics[entered])), "failed": int(failed[members, place].sum())}
        fields = {"kind": decomposer, "generator": name}
        rows.append({**quantity._asdict(), **fields, **counts, **value})
    return rows


def _compared(
    columns: Mapping[Quantity, Column],
    names: Sequence[str],
    reported: Mapping[str, Mapping[str, float]],
) -> dict[Quantity, tuple[int, np.ndarray, np.ndarray]]:
    # Correlations with reported values (2403.11903, Table 7): quantity to its column index, the
    # indexes of the reported generators, shape (g,), and their reported values, shape (g,).
    compared = {}
    for metric, theirs in reported.items():
        rows = [place for place, name in enumerate(names) if name in theirs]
        values = np.asarray([theirs[names[row]] for row in rows])
        for place, quantity in enumerate(columns):
            if quantity.metric == metric:
                key = quantity._replace(metric="pearson_with_reported", variant=metric)
                compared[key] = (place, np.asarray(rows), values)
    return compared


def check_reported(
    reported: Mapping[str, Mapping[str, float]], metrics: Collection[str], names: Sequence[str]
) -> None:
    """Raise an error if a reported metric cannot be correlated with the run's values.

    Args:
        reported: metric to generator to its published value.
        metrics: metrics of the run.
        names: generators of the run.
    """
    for metric, theirs in reported.items():
        if metric not in metrics:
            raise UserError(
                f"reported: {metric}: expected one of {', '.join(metrics)}; factual_precision "
                "requires `verify`, and factscore also `gamma`"
            )
        shared_names = [name for name in names if name in theirs]
        if len(shared_names) < 3:
            raise UserError(
                f"reported: {metric}: values for {len(shared_names)} of the generators "
                f"{', '.join(names)}; a correlation needs 3, named as in `documents`"
            )


# Agreement of two judges


def _agreement(decomposer: str, parts: Sequence[Passages], seed: int) -> list[dict]:
    """Compare each pair of judges over the claims and passages of one or several decomposers.

    - ``agreement``, ``kappa``: of the decisions on claims, without claims on which a judge failed.
    - ``pearson``, ``spearman``: of supported claims per passage, without passages whose claims all
      failed.
    - ``pearson_of_means``: of the DecompScores of decomposers and generators, if there are several
      decomposers and at least three scores.
    """
    rows = []
    for pair in combinations(parts[0].decisions, 2):
        values, counts = _compare(pair, parts, seed)
        for metric, value in values.items():
            judges = {"metric": metric, "assessor": pair[0], "against": pair[1]}
            rows.append({**judges, "kind": decomposer, "generator": ALL, **counts, **value})
    return rows


def _compare(
    pair: tuple[str, str], parts: Sequence[Passages], seed: int
) -> tuple[dict, dict[str, int]]:
    # Shapes: counts (parts, passages, 4) of (a, b) in 00, 01, 10, 11; supported (parts, passages).
    both = [[list(zip(*d, strict=True)) for d in _paired(part, pair)] for part in parts]
    cells = [(a, b) for a in (0, 1) for b in (0, 1)]
    counts = np.asarray([[[row.count(c) for c in cells] for row in part] for part in both])
    failed = sum(FAILED in decisions for part in both for row in part for decisions in row)
    left, right = counts[..., 2] + counts[..., 3], counts[..., 1] + counts[..., 3]
    empty = np.stack([np.add(part.usable, part.failed) == 0 for part in parts])
    scored = (counts.sum(axis=-1) > 0) | empty
    names = list(dict.fromkeys(parts[0].generators))
    generator = np.asarray([names.index(name) for name in parts[0].generators])

    def statistics(chosen: np.ndarray) -> dict[str, float]:
        table = counts[:, chosen].sum(axis=(0, 1)).reshape(2, 2)
        total = table.sum()
        valid = scored[:, chosen]
        a, b = left[:, chosen][valid], right[:, chosen][valid]
        values = {
            "agreement": table.trace() / total if total else math.nan,
            "kappa": kappa(table),
            "pearson": pearson(a, b),
            "spearman": spearman(a, b),
        }
        if len(parts) > 1 and len(parts) * len(names) > 2:
            groups = [chosen[generator[chosen] == place] for place in range(len(names))]
            sizes = np.stack([scored[:, o].sum(axis=1) for o in groups])
            if sizes.all():
                sums = [np.stack([s[:, o].sum(axis=1) for o in groups]) for s in (left, right)]
                values["pearson_of_means"] = pearson(*((s / sizes).ravel() for s in sums))
            else:
                values["pearson_of_means"] = math.nan
        return values

    entered = {
        topic for topic, column in zip(parts[0].topics, scored.T, strict=True) if column.any()
    }
    counted = {"n": len(entered), "failed": failed}
    return bootstrap(statistics, parts[0].topics, seed=seed), counted


def _paired(part: Passages, pair: tuple[str, str]) -> list[tuple]:
    return list(zip(part.decisions[pair[0]], part.decisions[pair[1]], strict=True))
