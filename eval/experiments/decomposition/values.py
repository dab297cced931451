"""The values of the decomposition experiment, with bootstrap intervals over topics.

Every value of a decomposer and a generator is a ratio of sums over its passages, e.g. supported
subclaims over passages; the macro value is the mean of the generators' values. In every draw of
topics all generators' passages on a topic are drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from components.statistics import bootstrap, kappa, pearson, spearman
from eval.metrics.decomposition import one_of_each
from eval.metrics.document import FAILED, DocumentScore, Tally, named, tally

MACRO, ALL = "macro", "all"


class Passages(NamedTuple):
    """One decomposer's passages; every list has one entry a passage.

    Attributes:
        usable, failed: claims, and what failed to become one.
        decisions: judge to the decisions (1, 0, -1) on the usable claims.
        classes: which usable claims say the same; ``None`` where that was not asked.
        scores: of each verifier, without and with Core.
        filtered: judge to the verifiers' scores over the claims that it calls supported.
    """

    topics: Sequence[str]
    generators: Sequence[str]
    usable: Sequence[int]
    failed: Sequence[int]
    decisions: Mapping[str, Sequence[Sequence[int]]]
    classes: Sequence[Sequence[int]] | None
    scores: Sequence[Sequence[DocumentScore]]
    filtered: Mapping[str, Sequence[Sequence[DocumentScore]]]


class Quantity(NamedTuple):
    """Which number of a decomposer and a generator it is: fields of a result."""

    metric: str
    assessor: str | None = None
    selection: str = "none"
    variant: str | None = None


class Column(NamedTuple):
    """What a metric's ratio is made of, each of shape (passages,); ``failed`` is beside it."""

    above: np.ndarray
    below: np.ndarray
    failed: np.ndarray


def values_of(by_decomposer: Mapping[str, Passages], seed: int) -> list[dict]:
    """The results' fields, without those that all of them share.

    Args:
        by_decomposer: the same passages in the same order for every decomposer.
        seed: of the bootstrap.
    """
    rows = []
    for name, own in by_decomposer.items():
        rows += _means(name, own, seed)
        rows += _agreement(name, [own], seed)
    if len(by_decomposer) > 1:
        rows += _agreement(ALL, list(by_decomposer.values()), seed)
    return rows


# Means of one decomposer


def columns_of(own: Passages) -> dict[Quantity, Column]:
    """What each quantity's values are made of."""
    lost = np.asarray(own.failed)
    whole = [Tally(u, 0, f).scored for u, f in zip(own.usable, own.failed, strict=True)]
    found = {Quantity("subclaims"): Column(np.asarray(own.usable), np.asarray(whole), lost)}
    if own.classes is not None:
        distinct = np.asarray([len(set(classes)) for classes in own.classes])
        found[Quantity("subclaims_distinct")] = Column(distinct, np.asarray(whole), lost)
    for judge, decisions in own.decisions.items():
        scores = _supported(decisions, lost)
        found[Quantity("decomp_score", judge)], found[Quantity("coherence", judge)] = scores
        if own.classes is not None:
            once = [one_of_each(d, c) for d, c in zip(decisions, own.classes, strict=True)]
            # What failed is what failed before one of each class was taken.
            distinct = _supported(once, lost)[0]._replace(failed=scores[0].failed)
            found[Quantity("decomp_score_distinct", judge)] = distinct
    return found | _precision(own)


def _supported(decisions: Sequence[Sequence[int]], lost: np.ndarray) -> tuple[Column, Column]:
    """DecompScore and coherence."""
    counts = [
        tally([*one, *[FAILED] * number]) for one, number in zip(decisions, lost, strict=True)
    ]
    judged, supported, failed = np.asarray(counts).reshape(-1, 3).T
    scored = np.asarray([count.scored for count in counts])
    return Column(supported, scored, failed), Column(supported, judged, failed)


def _precision(own: Passages) -> dict[Quantity, Column]:
    """Factual precision by each verifier, over all claims and over the supported ones."""
    assessors = list(
        dict.fromkeys((s.assessor, s.name) for row in own.scores for s in row if s.assessor)
    )
    several = len(assessors) > 1
    found = {}
    for assessor in assessors:
        name = named(*assessor) if several else None
        for selection in dict.fromkeys(score.selection for row in own.scores for score in row):
            # A text without a claim has no assessor's name, and a precision of 0.
            mine = [_score_of(row, (assessor, ("", "default")), selection) for row in own.scores]
            found[Quantity("factual_precision", name, selection)] = _mean(mine)
        for judge, rows in own.filtered.items():
            mine = [_score_of(row, (assessor,), "none") for row in rows]
            quantity = Quantity("factual_precision_supported_only", name, variant=judge)
            found[quantity] = _mean(mine)
    return found


def _score_of(row: Sequence[DocumentScore], names: tuple, selection: str) -> DocumentScore | None:
    own = [s for s in row if (s.assessor, s.name) in names and s.selection == selection]
    return own[0] if own else None


def _mean(scores: Sequence[DocumentScore | None]) -> Column:
    values = [None if score is None else score.precision for score in scores]
    return Column(
        np.asarray([value or 0.0 for value in values]),
        np.asarray([value is not None for value in values]),
        np.asarray([0 if score is None else score.failed for score in scores]),
    )


def _means(decomposer: str, own: Passages, seed: int) -> list[dict]:
    columns = columns_of(own)
    above, below, failed = (
        np.stack([column[part] for column in columns.values()], axis=1).astype(float)
        for part in range(3)
    )
    names = list(dict.fromkeys(own.generators))
    generator = np.asarray([names.index(name) for name in own.generators])
    topics = np.asarray(own.topics, dtype=object)

    def statistics(chosen: np.ndarray) -> dict[tuple, float]:
        values = []
        for place in range(len(names)):
            rows = chosen[generator[chosen] == place]
            with np.errstate(invalid="ignore", divide="ignore"):
                values.append(above[rows].sum(axis=0) / below[rows].sum(axis=0))
        values.append(np.mean(values, axis=0))
        return {
            (quantity, name): float(value)
            for name, row in zip([*names, MACRO], values, strict=True)
            for quantity, value in zip(columns, row, strict=True)
        }

    found = bootstrap(statistics, own.topics, seed=seed)
    rows = []
    for (quantity, name), value in found.items():
        place = list(columns).index(quantity)
        mine = np.ones(len(topics), bool) if name == MACRO else generator == names.index(name)
        entered = mine & (below[:, place] > 0)
        counts = {"n": len(set(topics[entered])), "failed": int(failed[mine, place].sum())}
        own_place = {"kind": decomposer, "generator": name}
        rows.append({**quantity._asdict(), **own_place, **counts, **value})
    return rows


# How far two judges agree


def _agreement(decomposer: str, parts: Sequence[Passages], seed: int) -> list[dict]:
    """Of every two judges, over the claims and passages of one decomposer or of several.

    - ``agreement``, ``kappa``: of the decisions on single claims (Cohen's kappa), claims on which a
      judge failed left out.
    - ``pearson``, ``spearman``: of the numbers of supported claims of the passages.
    - ``pearson_of_means``: of the DecompScores of the decomposers and generators, where there are
      at least three; of several decomposers only.
    """
    rows = []
    for pair in combinations(parts[0].decisions, 2):
        found, failed = _compare(pair, parts, seed)
        for metric, value in found.items():
            judges = {"metric": metric, "assessor": pair[0], "against": pair[1]}
            place = {"kind": decomposer, "generator": ALL, "n": len(set(parts[0].topics))}
            rows.append({**judges, **place, "failed": failed, **value})
    return rows


def _compare(pair: tuple[str, str], parts: Sequence[Passages], seed: int) -> tuple[dict, int]:
    """The measures of two judges, and on how many claims one of them failed."""
    # Shapes: counts (parts, passages, 4) of (a, b) in 00, 01, 10, 11; supported (parts, passages).
    both = [[list(zip(*d, strict=True)) for d in _paired(part, pair)] for part in parts]
    cells = [(a, b) for a in (0, 1) for b in (0, 1)]
    counts = np.asarray([[[row.count(c) for c in cells] for row in part] for part in both])
    failed = sum(FAILED in decisions for part in both for row in part for decisions in row)
    left, right = counts[..., 2] + counts[..., 3], counts[..., 1] + counts[..., 3]
    names = list(dict.fromkeys(parts[0].generators))
    generator = np.asarray([names.index(name) for name in parts[0].generators])

    def statistics(chosen: np.ndarray) -> dict[str, float]:
        table = counts[:, chosen].sum(axis=(0, 1)).reshape(2, 2)
        total = table.sum()
        a, b = left[:, chosen].ravel(), right[:, chosen].ravel()
        found = {
            "agreement": table.trace() / total if total else math.nan,
            "kappa": kappa(table),
            "pearson": pearson(a, b),
            "spearman": spearman(a, b),
        }
        if len(parts) > 1 and len(parts) * len(names) > 2:
            own = [chosen[generator[chosen] == place] for place in range(len(names))]
            if all(map(len, own)):
                means = [np.stack([s[:, o].mean(axis=1) for o in own]) for s in (left, right)]
                found["pearson_of_means"] = pearson(*(m.ravel() for m in means))
            else:
                found["pearson_of_means"] = math.nan
        return found

    return bootstrap(statistics, parts[0].topics, seed=seed), failed


def _paired(part: Passages, pair: tuple[str, str]) -> list[tuple]:
    return list(zip(part.decisions[pair[0]], part.decisions[pair[1]], strict=True))
