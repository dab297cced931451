"""The values of the FactReasoner experiment on one set of scored documents."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np

from components.statistics import balanced_accuracy, holm, paired_t
from eval.experiments.quantities import Quantity, estimate
from eval.metrics.document import DocumentScore, Scored
from eval.metrics.probabilities import (
    brier_of_one_text,
    labelled_precision,
    of_one_text,
    posterior_measures,
)
from records import Claim, Verdict
from records.abstention import responds

Better = Literal["greater", "less"]
JudgedClaims = Sequence[tuple[Claim, Verdict]]
# Assessor and verdict name.
Key = tuple[str, str]

# Tested metrics, and whether greater or smaller values are better.
TESTED: dict[str, Better] = {
    "precision": "greater",
    "recall_at_k": "greater",
    "f1_at_k": "greater",
    "e_measure": "less",
    "f1": "greater",
    "accuracy": "greater",
    "precision_mae": "less",
}


class AssessorRow(NamedTuple):
    """One assessor's scores and judged claims, one entry per document."""

    scores: list[DocumentScore | None]
    judged: list[JudgedClaims]


def collect_rows(scored: Sequence[Scored]) -> dict[Key, AssessorRow]:
    """Collect the assessors' rows; documents that do not respond have no judged claims."""
    keys = dict.fromkeys((s.assessor, s.name) for text in scored for s in text.scores if s.assessor)
    rows = {}
    for key in keys:
        scores = [
            next((s for s in text.scores if (s.assessor, s.name) in (key, ("", "default"))), None)
            for text in scored
        ]
        judged = [text.judged(*key, "none") if responds(text.document) else [] for text in scored]
        rows[key] = AssessorRow(scores, judged)
    return rows


def row_name(key: Key) -> str:
    """Return e.g. ``FactScore``, or ``FactReasoner fr2`` for a named verdict."""
    assessor, name = key
    return assessor if name == "default" else f"{assessor} {name}"


def compute_columns(row: AssessorRow, k: int) -> dict[str, np.ndarray]:
    """Compute one value per metric and document, shape (documents,); NaN is excluded from means.

    - ``supported``, ``not_supported``, ``contradicted``, ``undecided``: numbers of claims.
    - ``precision``, ``recall_at_k``, ``f1_at_k``: as in ``eval/metrics/corpus.py``; documents that
      do not respond have 0 in the last two and are excluded from ``f1_at_k_responding``.
    - ``graded_precision``, ``e_measure`` (Eq. 1, base 10), ``binary_entropy`` (bits) and
      ``negative_log_p`` (nats): for assessors with probabilities; with labels also
      ``brier_of_texts``, each document's Brier score.
    - ``f1`` of the class supported and ``accuracy`` against the labels S and NS of judged claims,
      and ``precision_mae``: |precision - share of S|.
    """
    values = [
        _counts(score, k) | of_one_text(judged) | _labelled(score, judged)
        for score, judged in zip(row.scores, row.judged, strict=True)
    ]
    names = dict.fromkeys(name for row_values in values for name in row_values)
    if all(score is None or score.responded for score in row.scores):
        names.pop("f1_at_k_responding", None)  # f1_at_k
    return {name: np.asarray([v.get(name, math.nan) for v in values]) for name in names}


def _counts(score: DocumentScore | None, k: int) -> dict[str, float]:
    if score is None:
        return {}
    if not score.responded:
        return {"recall_at_k": 0.0, "f1_at_k": 0.0}
    decided = score.supported + score.contradicted + score.undecided
    values = {
        "supported": float(score.supported),
        "not_supported": float(score.judged - decided),
        "contradicted": float(score.contradicted),
        "undecided": float(score.undecided),
    }
    if score.precision is not None:
        values["precision"] = score.precision
        values["recall_at_k"], values["f1_at_k"] = score.at_k(k)
        values["f1_at_k_responding"] = values["f1_at_k"]
    return values


def _decided(verdict: Verdict) -> bool:
    return verdict.label not in ("failed", "irrelevant")


def _labelled(score: DocumentScore | None, judged: JudgedClaims) -> dict[str, float]:
    tp, fp, tn, fn = confusion(judged)
    total = tp + fp + tn + fn
    if score is None or not total:
        return {}
    values = {"accuracy": (tp + tn) / total}
    if tp + fp + fn:
        values["f1"] = 2 * tp / (2 * tp + fp + fn)
    labelled = labelled_precision([claim for claim, _ in judged])
    if score.precision is not None and labelled is not None:
        values["precision_mae"] = abs(score.precision - labelled)
    brier = brier_of_one_text(judged)
    return values if brier is None else values | {"brier_of_texts": brier}


def confusion(judged: JudgedClaims) -> tuple[int, int, int, int]:
    """Count (tp, fp, tn, fn); positive is supported."""
    pairs = [
        (verdict.label == "supported", claim.label == "S")
        for claim, verdict in judged
        if _decided(verdict) and claim.label in ("S", "NS")
    ]
    order = ((True, True), (True, False), (False, False), (False, True))
    return tuple(pairs.count(cell) for cell in order)


# The results of one set


def compute_values(
    scored: Sequence[Scored], k: int, challengers: Sequence[str], seed: int
) -> list[dict]:
    """Compute the fields of the results of one set of documents, without shared fields.

    - Per assessor: the mean of every column over documents, with its interval over topics; variant
      ``sd`` is the standard deviation over documents (n - 1). ``f1_micro``, ``balanced_accuracy``,
      ``accuracy_micro``, ``brier`` and ``ece`` are over the claims of all documents.
    - Per pair of a challenger (by default any assessor) and the one that it is ``against``:
      differences of the means of ``TESTED`` over documents with both values; variant ``p`` is the
      p-value of the one-sided paired t-test, ``p_holm`` is corrected over all tests of the metric;
      ``failed`` counts documents without both values. Differences of ``balanced_accuracy`` and
      ``brier`` are over claims that both judged; ``failed`` counts claims that only one judged.
    """
    rows = collect_rows(scored)
    topics = [text.document.topic for text in scored]
    columns = {key: compute_columns(row, k) for key, row in rows.items()}
    fields = []
    for key, row in rows.items():
        fields += _assessor_fields(key, row, columns[key], topics, seed)
    pairs = [
        (first, second)
        for first, second in permutations(rows, 2)
        if not challengers or (first[0] in challengers and second[0] not in challengers)
    ]
    fields += _test_fields(pairs, columns, topics, seed)
    for first, second in pairs:
        fields += _pooled_differences((first, second), (rows[first], rows[second]), topics, seed)
    return fields


def _assessor_fields(
    key: Key, row: AssessorRow, columns: Mapping[str, np.ndarray], topics: Sequence[str], seed: int
) -> Iterator[dict]:
    failed = sum(score.failed for score in row.scores if score is not None)
    shared = {"assessor": row_name(key), "failed": failed}
    quantities = [
        Quantity({"metric": metric}, [values])
        for metric, values in columns.items()
        if not np.isnan(values).all()
    ]
    for quantity, mean in zip(quantities, estimate(quantities, topics, seed), strict=True):
        yield mean | shared
        (values,) = quantity.columns
        entered = values[~np.isnan(values)]
        sd = float(np.std(entered, ddof=1)) if len(entered) > 1 else None
        spread = {"variant": "sd", "value": sd, "ci95": None, "n": len(entered)}
        yield {**quantity.fields, **spread, **shared}
    cells = _cells(row.judged)
    if not np.isnan(cells).all():
        pooled = [
            Quantity({"metric": metric}, [cells], statistic) for metric, statistic in POOLED.items()
        ]
        yield from (value | shared for value in estimate(pooled, topics, seed))
    for name, (value, ci95, n) in posterior_measures(row.judged, topics, seed).items():
        if name in ("brier", "ece"):
            yield {"metric": name, "n": n, "value": value, "ci95": ci95, **shared}


def _cells(judged: Sequence[JudgedClaims]) -> np.ndarray:
    """Count (tp, fp, tn, fn) per document; NaN for documents without a labelled claim."""
    cells = np.asarray([confusion(claims) for claims in judged], dtype=float).reshape(-1, 4)
    return np.where(cells.any(axis=1, keepdims=True), cells, np.nan)


def _f1(cells: np.ndarray) -> float:
    tp, fp, _, fn = cells.sum(axis=0)
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else math.nan


def _accuracy(cells: np.ndarray) -> float:
    return cells[:, [0, 2]].sum() / cells.sum()


def _mean_recall(cells: np.ndarray) -> float:
    tp, fp, tn, fn = cells.sum(axis=0)
    return balanced_accuracy(np.array([[tn, fp], [fn, tp]]))


# Over the claims of all documents.
POOLED = {
    "f1_micro": _f1,
    "accuracy_micro": _accuracy,
    "balanced_accuracy": _mean_recall,
}


def _test_fields(
    pairs: Sequence[tuple[Key, Key]],
    columns: Mapping[Key, Mapping[str, np.ndarray]],
    topics: Sequence[str],
    seed: int,
) -> Iterator[dict]:
    for metric, better in TESTED.items():
        sides = {
            (first, second): (columns[first][metric], columns[second][metric])
            for first, second in pairs
            if metric in columns[first] and metric in columns[second]
        }
        sides = {names: (a, b) for names, (a, b) in sides.items() if not np.isnan(a - b).all()}
        quantities = [
            Quantity({"metric": metric, **_sides(*names)}, [a - b])
            for names, (a, b) in sides.items()
        ]
        tests = [paired_t(a, b, better) for a, b in sides.values()]
        corrected = holm([test.p for test in tests])
        means = estimate(quantities, topics, seed)
        for mean, test, p_holm in zip(means, tests, corrected, strict=True):
            difference = mean | {"n": test.n, "failed": test.dropped}
            yield difference
            for title, p in (("p", test.p), ("p_holm", p_holm)):
                yield difference | {"variant": title, "value": p, "ci95": None}


def _sides(first: Key, second: Key) -> dict[str, str]:
    return {"assessor": row_name(first), "against": row_name(second)}


def _pooled_differences(
    names: tuple[Key, Key], rows: tuple[AssessorRow, AssessorRow], topics: Sequence[str], seed: int
) -> list[dict]:
    paired, unpaired = _common(rows)
    sides = [[[pair[side] for pair in pairs] for pairs in paired] for side in range(2)]
    cells = [_cells(side) for side in sides]
    squares = [np.asarray([_squares(judged) for judged in side]) for side in sides]

    def gained_recall(left: np.ndarray, right: np.ndarray) -> float:
        return _mean_recall(left) - _mean_recall(right)

    def brier_difference(left: np.ndarray, right: np.ndarray) -> float:
        (first, count), (second, other_count) = left.sum(axis=0), right.sum(axis=0)
        comparable = count and count == other_count
        return first / count - second / other_count if comparable else math.nan

    quantities = [
        Quantity({"metric": "balanced_accuracy"}, cells, gained_recall),
        Quantity({"metric": "brier"}, squares, brier_difference),
    ]
    # n counts documents, as in the tests.
    n = sum(map(bool, paired))
    shared = {**_sides(*names), "n": n, "failed": unpaired}
    values = estimate(quantities, topics, seed)
    return [value | shared for value in values if value["value"] is not None]


def _common(rows: tuple[AssessorRow, AssessorRow]) -> tuple[list[list[tuple]], int]:
    paired, unpaired = [], 0
    for judged in zip(rows[0].judged, rows[1].judged, strict=True):
        left, right = (
            {c.id: (c, v) for c, v in pairs if _decided(v) and c.label in ("S", "NS")}
            for pairs in judged
        )
        paired.append([(left[name], right[name]) for name in left if name in right])
        unpaired += len(left.keys() ^ right.keys())
    return paired, unpaired


def _squares(judged: JudgedClaims) -> tuple[float, float]:
    errors = [(v.p - (c.label == "S")) ** 2 for c, v in judged if v.p is not None]
    return math.fsum(errors), float(len(errors))
