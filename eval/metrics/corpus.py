"""Aggregation of scored documents: means and counts with bootstrap intervals over topics."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import numpy as np

from components.statistics import Ratio, ratio
from eval.metrics.document import DocumentScore, Scored, median_claims, named
from eval.metrics.probabilities import labelled_precision, posterior_measures
from records import Claim, Document, Result, UserError, Verdict
from records.abstention import responds

# Metrics that are totals; ``failed`` is a field of every result.
_COUNTS = ("judged", "supported", "contradicted", "undecided", "irrelevant")

ALL = "all"
# Variants of the scores in ``_BOUNDED`` → whether failed claims count as supported.
BOUNDS = {"failed_not_supported": False, "failed_supported": True}
_BOUNDED = {
    *("factual_precision", "factual_precision_micro", "factscore"),
    *("recall_at_k", "f1_at_k", "f1_at_k_responding"),
}

Row = tuple[Scored, DocumentScore]


def expected_claims(scored: Sequence[Scored]) -> int:
    """Return the default K of recall@K: :func:`median_claims` of the responding documents.

    Claims are counted before Core, so that K is the same with and without it.
    """
    responding = [document for document in scored if responds(document.document)]
    return median_claims(sum(c.failed is None for c in document.claims) for document in responding)


def summarise(
    scored: Sequence[Scored],
    config_hash: str,
    domain: str,
    variant: str | int | None = None,
    seed: int = 0,
    k: int | None = None,
    strata: bool = True,
    failed: Literal["excluded", "wrong"] | None = None,
) -> list[Result]:
    """Compute results per kind and generator, with and without Core.

    Groups and frequency bins of documents have separate rows (:func:`strata_of`).

    Metrics, means over documents (macro) except the last two items:

    - ``factual_precision``, ``factscore``: over documents that respond and could be judged;
    - ``recall_at_k``, ``f1_at_k``: also over documents that do not respond, with 0; and
      ``f1_at_k_responding``: without them, as in VeriScore's code; only with ``k``;
    - ``claims`` (subclaims per responding text), ``respond_ratio``; with Core ``kept_share`` (share
      of kept subclaims) and ``empty_selection`` (share of responding texts without kept subclaims);
    - ``factual_precision_micro``: supported claims / judged claims of all documents;
    - ``judged``, ``supported``, ``contradicted``, ``undecided``, ``irrelevant``: numbers of claims;
      without Core also ``backed_off``: claims that are their whole sentence because the
      decomposer's prompt did not fit; and ``resolved``, if a name replaced pronouns of claims.

    Assessors with probabilities also have the metrics of :mod:`eval.metrics.probabilities`. Labels
    of claims give ``precision_mae``: document mean of |precision - S / (S + NS)| of the labels
    of the scored claims. With several verifiers or named verdicts, ``assessor`` is set.

    Args:
        variant: of all results, if a run scores the same documents several times.
        strata: whether to compute rows of groups and bins.
        failed: ``wrong`` counts failed claims as judged and not supported; ``excluded`` also gives
            scores of texts with failed claims as the ``variant``s of ``BOUNDS``: with all failed
            claims supported, and with none.
    """
    assessors = list(
        dict.fromkeys(
            (score.assessor, score.name) for d in scored for score in d.scores if score.kept
        )
    )
    parts = [({}, scored), *(strata_of(scored) if strata else [])]
    shared = {"domain": domain, "variant": variant, "config_hash": config_hash}
    return [
        Result(**(shared | row | stratum))
        for stratum, part in parts
        for row in _rows(part, assessors, k, seed, failed)
    ]


def check_strata(documents: Iterable[Document]) -> None:
    """Raise an error if a group or bin is called ``all``."""
    for document in documents:
        for field in ("group", "bin"):
            if getattr(document, field) == ALL:
                raise UserError(
                    f"document {document.id!r}: {field}: {ALL!r} is reserved; rename the {field}"
                )


def strata_of(scored: Sequence[Scored]) -> list[tuple[dict[str, str], list[Scored]]]:
    """Group the documents by ``group`` and by ``bin``.

    Groups that contain one topic each (used to separate splits) are ignored.
    """
    check_strata([row.document for row in scored])
    strata = []
    for field in ("group", "bin"):
        members: dict[str, list[Scored]] = {}
        for row in scored:
            if (name := getattr(row.document, field)) is not None:
                members.setdefault(name, []).append(row)
        topics = {row.document.topic for stratum in members.values() for row in stratum}
        if len(members) < len(topics):
            strata += [({field: name}, members[name]) for name in sorted(members)]
    return strata


def _rows(
    scored: Sequence[Scored],
    assessors: Sequence[tuple[str, str]],
    k: int | None,
    seed: int,
    count_failed: str | None,
) -> Iterator[dict]:
    cells: dict[tuple, list[Row]] = {}
    for document in scored:
        for score in document.scores:
            verdict_name = (score.assessor, score.name)
            # A document without verdicts has one score, which counts for all assessors.
            names = [verdict_name] if verdict_name in assessors else assessors
            for name in names if len(assessors) > 1 else [None]:
                key = (
                    document.document.kind or "normal",
                    document.document.generator or "given",
                    score.selection,
                    name,
                )
                cells.setdefault(key, []).append((document, score))
    for (kind, generator, selection, assessor), rows in cells.items():
        failed = sum(score.failed for _, score in rows)
        if count_failed == "wrong":
            rows = [(document, score.bound(False)) for document, score in rows]
        measures = {(m, None): v for m, v in _measures(rows, selection, k, seed).items()}
        for variant, supported in BOUNDS.items() if count_failed == "excluded" and failed else ():
            bounded = [(document, score.bound(supported)) for document, score in rows]
            values = _scores(bounded, selection, k, seed)
            measures |= {(m, variant): v for m, v in values.items() if m in _BOUNDED}
        for (metric, bound), (value, ci95, n) in measures.items():
            yield {
                "metric": metric,
                **({"variant": bound} if bound else {}),
                "assessor": None if assessor is None else named(*assessor),
                "selection": selection,
                "kind": kind,
                "generator": generator,
                "n": n,
                "failed": failed,
                "value": value,
                "ci95": ci95,
            }


def _mean(column: np.ndarray, topics: np.ndarray, seed: int) -> Ratio:
    valid = ~np.isnan(column)
    return ratio(column[valid], np.ones(valid.sum()), topics[valid], seed)


def _scores(rows: list[Row], selection: str, k: int | None, seed: int) -> dict[str, tuple]:
    topics = np.asarray([document.document.topic for document, _ in rows])
    values = {}
    for metric, column in _columns(rows, selection, k).items():
        values[metric] = _mean(column, topics, seed)
    responding = [score for _, score in rows if score.responded]
    units = [document.document.topic for document, score in rows if score.responded]
    counts = ([float(getattr(s, name)) for s in responding] for name in ("supported", "judged"))
    values["factual_precision_micro"] = ratio(*map(np.asarray, counts), np.asarray(units), seed)
    return values


def _measures(rows: list[Row], selection: str, k: int | None, seed: int) -> dict[str, tuple]:
    topics = np.asarray([document.document.topic for document, _ in rows])
    values = _scores(rows, selection, k, seed)
    judged = [document.judged(s.assessor, s.name, s.selection) for document, s in rows]
    errors = [_error(s, verdicts) for (_, s), verdicts in zip(rows, judged, strict=True)]
    if any(error is not None for error in errors):
        values["precision_mae"] = _mean(_numbers(errors), topics, seed)
    responding = np.asarray([score.responded for _, score in rows], dtype=bool)
    counts = {
        name: np.asarray([getattr(score, name) for _, score in rows], dtype=float)[responding]
        for name in _COUNTS
    }
    units = topics[responding]
    if selection == "none":
        claims = [d.claims for d, score in rows if score.responded]
        for name in ("backed_off", "resolved"):
            column = [sum(getattr(c, name, None) is not None for c in row) for row in claims]
            if name == "backed_off" or any(column):
                counts[name] = np.asarray(column)
    for name, column in counts.items():
        values[name] = (float(column.sum()), None, len(set(units.tolist())))
    answered = [pairs for pairs, valid in zip(judged, responding, strict=True) if valid]
    return values | posterior_measures(answered, units.tolist(), seed)


def _error(score: DocumentScore, judged: Sequence[tuple[Claim, Verdict]]) -> float | None:
    labelled = labelled_precision([claim for claim, _ in judged])
    themselves = score.assessor == "labels"
    if labelled is None or score.precision is None or themselves:
        return None
    return abs(score.precision - labelled)


def _columns(rows: list[Row], selection: str, k: int | None) -> dict[str, np.ndarray]:
    """Return one value per document; NaN if the document is excluded from the mean."""

    def column(value: Callable[[DocumentScore], float | None]) -> np.ndarray:
        return _numbers([value(score) for _, score in rows])

    columns = {
        "factual_precision": column(lambda s: s.precision),
        "factscore": column(lambda s: s.factscore),
        "claims": column(lambda s: s.kept if s.responded else None),
    }
    if k is not None:
        columns["recall_at_k"] = column(lambda s: s.at_k(k).recall)
        columns["f1_at_k"] = column(lambda s: s.at_k(k).f1)
        responded = column(lambda s: 1.0 if s.responded else None)
        columns["f1_at_k_responding"] = columns["f1_at_k"] * responded
    if selection == "none":
        columns["respond_ratio"] = column(lambda s: s.responded)
    else:
        columns["kept_share"] = column(lambda s: s.kept_share)
        columns["empty_selection"] = column(lambda s: s.empty_selection if s.responded else None)
    return columns


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.asarray([math.nan if value is None else float(value) for value in values])
