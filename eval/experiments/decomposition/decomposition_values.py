"""Metrics of the decomposition experiment, with bootstrap intervals over topics.

A value of a decomposer and a generator is a ratio of sums over passages, e.g. supported subclaims
over passages; the macro value is the mean over generators. A bootstrap sample of topics includes
the passages of all generators.

``coherence`` is pooled: supported over judged subclaims of all passages. ``coherence_per_passage``
is the mean of the passages' shares, as in Table 6 of 2403.11903 (its ChatGPT row has 93.0 % for
R-ND; Tables 2 and 3 give 43.0 / 44.2 = 97.3 %), without passages that have no judged subclaim.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel

from components.statistics import confusion, kappa, pearson, spearman
from eval.experiments.quantities import Quantity, estimate, explode
from eval.metrics.claim_matches import Matches
from eval.metrics.decomposition import decision, one_of_each
from eval.metrics.document import FAILED, DocumentScore, Scored, Tally, named, tally
from records import UserError, Verdict

MACRO, ALL = "macro", "all"
SUPPORTED = ("decomp_score", "coherence", "coherence_per_passage")


class JudgedPassage(BaseModel):
    """A passage decomposed by one decomposer, with all verdicts.

    Attributes:
        scored: claims, and verdicts and scores if there is a verifier.
        support: judge to its verdicts on the usable claims given their source sentence.
        classes: equivalence classes from :func:`eval.metrics.decomposition.same_claims`.
        filtered: judge to the scores over the claims that it labels supported.
        matches: with human claims; ``None`` if not computed.
        written: judge to its verdicts by the original sentence, if the passage is decontextualised.
    """

    scored: Scored
    support: dict[str, list[Verdict]]
    classes: list[int] | None
    filtered: dict[str, list[DocumentScore]]
    matches: Matches | None = None
    written: dict[str, list[Verdict]] = {}

    @property
    def topic(self) -> str:
        """The topic, over which values are resampled."""
        return self.scored.document.topic

    @property
    def generator(self) -> str:
        """The passage's generator."""
        return self.scored.document.generator or "given"

    def decisions(self, judge: str) -> list[int]:
        """Return a judge's decisions (1, 0, or -1 for failed) on the usable claims."""
        return [decision(verdict) for verdict in self.support[judge]]


class Metric(NamedTuple):
    """Fields of a result that name a value of a decomposer and generator."""

    metric: str
    assessor: str | None = None
    selection: str = "none"
    variant: str | None = None


# Of a passage: metric to numerator, denominator and number of failures.
Parts = dict[Metric, tuple[float, float, int]]


def values_of(
    by_decomposer: Mapping[str, Sequence[JudgedPassage]],
    seed: int,
    reported: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    penalised: bool = False,
) -> list[dict]:
    """Return the result fields, without those shared by all results.

    Args:
        by_decomposer: the same passages in the same order for every decomposer.
        seed: of the bootstrap.
        reported: metric to generator to its published value (:func:`check_reported`).
        penalised: whether FActScore with a length penalty is computed as well.
    """
    rows = []
    for name, passages in by_decomposer.items():
        rows += _means(name, passages, seed, reported, penalised)
        rows += _agreement(name, [passages], seed)
    if len(by_decomposer) > 1:
        rows += _agreement(ALL, list(by_decomposer.values()), seed)
    return rows


# Means of one decomposer


def _parts_of(passage: JudgedPassage) -> Parts:
    lost = sum(claim.failed is not None for claim in passage.scored.claims)
    usable = len(passage.scored.claims) - lost
    scored = Tally(usable, 0, lost).scored
    parts: Parts = {Metric("subclaims"): (usable, scored, lost)}
    if passage.classes is not None:
        parts[Metric("subclaims_distinct")] = (len(set(passage.classes)), scored, lost)
    for judge in passage.support:
        decisions = passage.decisions(judge)
        count = tally([*decisions, *[FAILED] * lost])
        judged, supported, failed = count
        share = supported / max(judged, 1)
        parts[Metric("decomp_score", judge)] = (supported, count.scored, failed)
        parts[Metric("coherence", judge)] = (supported, judged, failed)
        parts[Metric("coherence_per_passage", judge)] = (share, judged > 0, failed)
        if passage.classes is not None:
            distinct = tally([*one_of_each(decisions, passage.classes), *[FAILED] * lost])
            # Failures are counted before duplicates are merged.
            values = (distinct.supported, distinct.scored, failed)
            parts[Metric("decomp_score_distinct", judge)] = values
    if passage.matches is not None:
        # Texts whose decomposition failed completely are excluded.
        people, matched = passage.matches.people * scored, passage.matches.matched
        parts[Metric("claim_precision")] = (matched, usable, lost)
        parts[Metric("claim_recall")] = (matched, people, lost)
        parts[Metric("claim_f1")] = (2 * matched, usable + people, lost)
        if passage.matches.covered is not None:
            parts[Metric("element_coverage")] = (passage.matches.covered, people, lost)
    for judge, verdicts in passage.written.items():
        pairs = list(zip(passage.decisions(judge), map(decision, verdicts), strict=True))
        both = [pair for pair in pairs if FAILED not in pair]
        changes = sum(form != original for form, original in both)
        parts[Metric("context_changes", judge)] = (changes, len(both), len(pairs) - len(both))
    return parts


def _precision(
    passage: JudgedPassage, assessors: Sequence[tuple[str, str]], penalised: bool
) -> Parts:
    # Over all claims and over the supported ones; the penalty counts the claims of the value.
    parts: Parts = {}
    for assessor in assessors:
        name = named(*assessor) if len(assessors) > 1 else None
        # A text without claims has no assessor name and precision 0.
        names = (assessor, ("", "default"))
        scores = [
            (score, "", score.selection, None)
            for score in passage.scored.scores
            if (score.assessor, score.name) in names
        ]
        scores += [
            (score, "_supported_only", "none", judge)
            for judge, judged in passage.filtered.items()
            for score in judged
            if (score.assessor, score.name) == assessor
        ]
        for score, end, selection, judge in scores:
            values = {"factual_precision": score.precision}
            values |= {"factscore": score.factscore} if penalised else {}
            for metric, value in values.items():
                key = Metric(metric + end, name, selection, judge)
                parts.setdefault(key, (value or 0.0, value is not None, score.failed))
    return parts


def _means(
    decomposer: str,
    passages: Sequence[JudgedPassage],
    seed: int,
    reported: Mapping[str, Mapping[str, float]],
    penalised: bool,
) -> Iterator[dict]:
    names = list(dict.fromkeys(passage.generator for passage in passages))
    generator = np.asarray([names.index(passage.generator) for passage in passages])
    scores = [score for passage in passages for score in passage.scored.scores]
    assessors = list(dict.fromkeys((s.assessor, s.name) for s in scores if s.assessor))
    rows = [_parts_of(p) | _precision(p, assessors, penalised) for p in passages]
    table = {
        metric: np.asarray([row.get(metric, (0, 0, 0)) for row in rows], dtype=float).T
        for metric in dict.fromkeys(metric for row in rows for metric in row)
    }

    def quantity(key: Metric, places: Sequence[int], statistic=None, **fields) -> Quantity:
        members = np.isin(generator, places)
        above, below, failed = table[key]
        columns = [np.where(members & (below > 0), side, np.nan) for side in (above, below)]
        fields = {**key._asdict(), "kind": decomposer, **fields}
        columns += [generator] if statistic else []
        return Quantity(fields, columns, statistic, int(failed[members].sum()))

    def macro(*columns: np.ndarray) -> float:
        return float(np.mean(_ratios(*columns, len(names))))

    quantities = []
    for metric in table:
        theirs = reported.get(metric.metric, {})
        # Correlation with reported values (2403.11903, Table 7).
        places = [place for place, name in enumerate(names) if name in theirs]
        published = np.asarray([theirs[names[place]] for place in places])

        def correlation(*columns: np.ndarray, places=places, published=published) -> float:
            return float(pearson(_ratios(*columns, len(names))[places], published))

        if theirs:
            more = {"metric": "pearson_with_reported", "variant": metric.metric}
            quantities.append(quantity(metric, places, correlation, generator=ALL, **more))
    for place, name in enumerate(names):
        quantities += [quantity(metric, [place], generator=name) for metric in table]
    places = range(len(names))
    quantities += [quantity(metric, places, macro, generator=MACRO) for metric in table]
    return estimate(quantities, [passage.topic for passage in passages], seed)


def _ratios(
    above: np.ndarray, below: np.ndarray, generator: np.ndarray, generators: int
) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.bincount(generator, above, generators) / np.bincount(generator, below, generators)


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


def _agreement(
    decomposer: str, parts: Sequence[Sequence[JudgedPassage]], seed: int
) -> Iterator[dict]:
    """Compare each pair of judges over the claims and passages of one or several decomposers.

    - ``agreement``, ``kappa``: of the decisions on claims, without claims on which a judge failed.
    - ``pearson``, ``spearman``: of supported claims per passage, without passages whose claims all
      failed.
    - ``pearson_of_means``: of the DecompScores of decomposers and generators, if there are several
      decomposers and at least three scores.
    """
    passages = [passage for part in parts for passage in part]
    topics = [passage.topic for passage in passages]
    groups = [(number, passage.generator) for number, part in enumerate(parts) for passage in part]
    names = list(dict.fromkeys(groups))
    group = np.asarray([names.index(key) for key in groups])

    def of_means(left: np.ndarray, right: np.ndarray, group: np.ndarray) -> float:
        means = [_ratios(side, np.ones(len(side)), group, len(names)) for side in (left, right)]
        return float(pearson(*means))

    for first, second in combinations(passages[0].support, 2):
        pairs = [
            list(zip(passage.decisions(first), passage.decisions(second), strict=True))
            for passage in passages
        ]
        judged = [[pair for pair in row if FAILED not in pair] for row in pairs]
        scored = [bool(row or not p.scored.claims) for row, p in zip(judged, passages, strict=True)]
        supported = [np.sum(row or [(0, 0)], axis=0) for row in judged]
        left, right = np.where(np.asarray(scored)[:, None], supported, np.nan).T
        claims, units = explode(judged, topics, 2)
        of_claims = [
            Quantity({"metric": "agreement"}, claims, lambda a, b: float((a == b).mean())),
            Quantity({"metric": "kappa"}, claims, lambda a, b: kappa(confusion(a == 1, b == 1))),
        ]
        of_passages = [
            Quantity({"metric": "pearson"}, [left, right], pearson),
            Quantity({"metric": "spearman"}, [left, right], spearman),
        ]
        if len(parts) > 1 and len(names) > 2:
            means = Quantity({"metric": "pearson_of_means"}, [left, right, group], of_means)
            of_passages.append(means)
        rows = [*estimate(of_claims, units, seed), *estimate(of_passages, topics, seed)]
        # Passages without claims count as well.
        n = len({topic for topic, enters in zip(topics, scored, strict=True) if enters})
        counts = {"n": n, "failed": sum(map(len, pairs)) - sum(map(len, judged))}
        sides = {"assessor": first, "against": second, "kind": decomposer, "generator": ALL}
        yield from ({**row, **counts, **sides} for row in rows)
