"""What the FactReasoner experiment computes of one set of scored documents."""

import math
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np

from components.statistics import balanced_accuracy, bootstrap, holm, nan_mean, paired_t
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
Judged = Sequence[tuple[Claim, Verdict]]
# An assessor's name and that of its verdicts.
Key = tuple[str, str]

# What is tested between assessors, and on which side the better values are.
TESTED: dict[str, Better] = {
    "precision": "greater",
    "recall_at_k": "greater",
    "f1_at_k": "greater",
    "e_measure": "less",
    "f1": "greater",
    "accuracy": "greater",
    "precision_mae": "less",
}


class Row(NamedTuple):
    """One assessor's verdicts on all documents: the scores, and the judged claims, of each."""

    scores: list[DocumentScore | None]
    judged: list[Judged]


def rows_of(scored: Sequence[Scored]) -> dict[Key, Row]:
    """The assessors' rows, in the order of the run.

    A document without a verdict has one score for all of them. Of one that does not respond no
    claim counts as judged, as in ``eval/metrics/corpus.py``, though a file may bring some.
    """
    keys = list(
        dict.fromkeys(
            (score.assessor, score.name) for one in scored for score in one.scores if score.assessor
        )
    )
    rows = {}
    for key in keys:
        scores = [
            next((s for s in one.scores if (s.assessor, s.name) in (key, ("", "default"))), None)
            for one in scored
        ]
        judged = [one.judged(*key, "none") if responds(one.document) else [] for one in scored]
        rows[key] = Row(scores, judged)
    return rows


def row_name(key: Key) -> str:
    """``FactScore``, or ``FactReasoner fr2`` where an assessor gives several verdicts."""
    assessor, name = key
    return assessor if name == "default" else f"{assessor} {name}"


def columns_of(row: Row, k: int) -> dict[str, np.ndarray]:
    """Metric to one value a document, shape (documents,); NaN where it does not enter the mean.

    - ``supported``, ``not_supported``, ``contradicted``, ``undecided``: numbers of claims.
    - ``precision``, ``recall_at_k``, ``f1_at_k``: as in ``eval/metrics/corpus.py``; documents that
      do not respond have 0 in the last two; where there is one, ``f1_at_k_responding`` leaves it
      out.
    - ``graded_precision``, ``e_measure`` (Eq. 1, base 10), ``binary_entropy`` (bits) and
      ``negative_log_p`` (nats): of assessors that give probabilities; with labels also
      ``brier_of_texts``, each document's Brier score.
    - ``f1`` of the class supported and ``accuracy`` against the claims' labels S and NS, over the
      claims that were judged, and ``precision_mae``: |precision - share of S|.
    """
    every = [
        _counts(score, k) | of_one_text(judged) | _labelled(score, judged)
        for score, judged in zip(row.scores, row.judged, strict=True)
    ]
    names = dict.fromkeys(name for own in every for name in own)
    if all(score is None or score.responded for score in row.scores):
        names.pop("f1_at_k_responding", None)  # f1_at_k
    return {name: np.asarray([own.get(name, math.nan) for own in every]) for name in names}


def _counts(score: DocumentScore | None, k: int) -> dict[str, float]:
    if score is None:
        return {}
    if not score.responded:
        return {"recall_at_k": 0.0, "f1_at_k": 0.0}
    decided = score.supported + score.contradicted + score.undecided
    found = {
        "supported": float(score.supported),
        "not_supported": float(score.judged - decided),
        "contradicted": float(score.contradicted),
        "undecided": float(score.undecided),
    }
    if score.precision is not None:
        found["precision"] = score.precision
        found["recall_at_k"], found["f1_at_k"] = score.at_k(k)
        found["f1_at_k_responding"] = found["f1_at_k"]
    return found


def _decided(verdict: Verdict) -> bool:
    return verdict.label not in ("failed", "irrelevant")


def _labelled(score: DocumentScore | None, judged: Judged) -> dict[str, float]:
    tp, fp, tn, fn = confusion(judged)
    total = tp + fp + tn + fn
    if score is None or not total:
        return {}
    found = {"accuracy": (tp + tn) / total}
    if tp + fp + fn:
        found["f1"] = 2 * tp / (2 * tp + fp + fn)
    labelled = labelled_precision([claim for claim, _ in judged])
    if score.precision is not None and labelled is not None:
        found["precision_mae"] = abs(score.precision - labelled)
    brier = brier_of_one_text(judged)
    return found if brier is None else found | {"brier_of_texts": brier}


def confusion(judged: Judged) -> tuple[int, int, int, int]:
    """True and false positives, true and false negatives; positive is supported."""
    pairs = [
        (verdict.label == "supported", claim.label == "S")
        for claim, verdict in judged
        if _decided(verdict) and claim.label in ("S", "NS")
    ]
    order = ((True, True), (True, False), (False, False), (False, True))
    return tuple(pairs.count(cell) for cell in order)


# The results of one set


def values_of(
    scored: Sequence[Scored], k: int, challengers: Sequence[str], seed: int
) -> list[dict]:
    """The results' fields of one set of documents, without those that all of them share.

    Of each assessor:

    - the mean of every column over the documents, with its interval over topics, and as variant
      ``sd`` the standard deviation over documents (n - 1), whose n counts documents;
    - ``f1_micro``, ``balanced_accuracy``, ``accuracy_micro`` over the claims of all documents, and
      ``brier`` and ``ece``.

    Of every two assessors, the first of which is tested to be better than the one that it is
    ``against``:

    - differences of the means of ``TESTED`` over the documents that both have, as variant ``p`` the
      p-value of the one-sided paired t-test, and as ``p_holm`` the one corrected over all tests of
      the metric; ``failed`` counts the documents that were dropped since one of the two has no
      value;
    - differences of ``balanced_accuracy`` and ``brier`` over the claims that both judged;
      ``failed`` counts the labelled claims that only one of them judged.

    Args:
        scored: with verdicts.
        k: of recall@K and F1@K.
        challengers: assessors that are tested to be better than the others; all if empty.
        seed: of the bootstrap.
    """
    rows = rows_of(scored)
    topics = [one.document.topic for one in scored]
    columns = {key: columns_of(row, k) for key, row in rows.items()}
    found = []
    for key, row in rows.items():
        found += _of_assessor(key, row, columns[key], topics, seed)
    pairs = [
        (one, other)
        for one, other in permutations(rows, 2)
        if not challengers or (one[0] in challengers and other[0] not in challengers)
    ]
    found += _tests(pairs, columns, topics, seed)
    for one, other in pairs:
        found += _pooled_difference((one, other), (rows[one], rows[other]), topics, seed)
    return found


def _of_assessor(
    key: Key, row: Row, columns: Mapping[str, np.ndarray], topics: Sequence[str], seed: int
) -> list[dict]:
    failed = sum(score.failed for score in row.scores if score is not None)
    shared = {"assessor": row_name(key), "failed": failed}
    found = []
    for metric, value, entered in _means(columns, topics, seed):
        own = columns[metric][entered]
        sd = float(np.std(own, ddof=1)) if len(own) > 1 else None
        spread = {"value": sd, "ci95": None, "n": len(own)}
        found.append({"metric": metric, "n": _distinct(topics, entered), **value, **shared})
        found.append({"metric": metric, "variant": "sd", **spread, **shared})
    cells = np.asarray([confusion(judged) for judged in row.judged], dtype=float).reshape(-1, 4)
    if cells.sum():
        pooled = bootstrap(lambda rows: _pooled(cells[rows].sum(axis=0)), topics, seed=seed)
        n = _distinct(topics, cells.sum(axis=1) > 0)
        found += [{"metric": name, "n": n, **value, **shared} for name, value in pooled.items()]
    for name, (value, ci95, n) in posterior_measures(row.judged, topics, seed).items():
        if name in ("brier", "ece"):
            found.append({"metric": name, "n": n, "value": value, "ci95": ci95, **shared})
    return found


def _means(
    columns: Mapping, topics: Sequence[str], seed: int
) -> list[tuple[object, dict, np.ndarray]]:
    table = {name: values for name, values in columns.items() if not np.isnan(values).all()}
    if not table:
        return []
    matrix = np.stack(list(table.values()), axis=1)  # (documents, columns)

    def statistics(rows: np.ndarray) -> dict:
        return dict(zip(table, nan_mean(matrix[rows]).tolist(), strict=True))

    found = bootstrap(statistics, topics, seed=seed)
    return [(name, found[name], ~np.isnan(values)) for name, values in table.items()]


def _distinct(topics: Sequence[str], entered: np.ndarray) -> int:
    return len({topic for topic, own in zip(topics, entered, strict=True) if own})


def _pooled(cells: np.ndarray) -> dict[str, float]:
    """Measures of a confusion table (tp, fp, tn, fn); NaN where a class is absent."""
    tp, fp, tn, fn = cells
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "f1_micro": float(2 * tp / (2 * tp + fp + fn)),
            "accuracy_micro": float((tp + tn) / cells.sum()),
            "balanced_accuracy": balanced_accuracy(np.array([[tn, fp], [fn, tp]])),
        }


def _tests(
    pairs: Sequence[tuple[Key, Key]],
    columns: Mapping[Key, Mapping[str, np.ndarray]],
    topics: Sequence[str],
    seed: int,
) -> list[dict]:
    differences = {
        (metric, one, other): columns[one][metric] - columns[other][metric]
        for metric in TESTED
        for one, other in pairs
        if metric in columns[one] and metric in columns[other]
    }
    means = {name: value for name, value, _ in _means(differences, topics, seed)}
    found = []
    for metric, better in TESTED.items():
        own = [name for name in means if name[0] == metric]
        tests = [paired_t(columns[a][metric], columns[b][metric], better) for _, a, b in own]
        corrected = holm([test.p for test in tests])
        for name, test, p_holm in zip(own, tests, corrected, strict=True):
            shared = {"metric": metric, "n": test.n, "failed": test.dropped}
            shared |= _sides(name[1], name[2])
            found.append(means[name] | shared)
            for title, p in (("p", test.p), ("p_holm", p_holm)):
                found.append({"variant": title, "value": p, "ci95": None, **shared})
    return found


def _sides(one: Key, other: Key) -> dict[str, str]:
    return {"assessor": row_name(one), "against": row_name(other)}


def _pooled_difference(
    names: tuple[Key, Key], rows: tuple[Row, Row], topics: Sequence[str], seed: int
) -> list[dict]:
    tables: list[np.ndarray] = []  # of each assessor (documents, 6): confusion, squares, number
    kept, alone = _common(rows)
    for side in range(2):
        own = [[pair[side] for pair in pairs] for pairs in kept]
        tables.append(np.asarray([[*confusion(one), *_squares(one)] for one in own], dtype=float))
    if not tables[0][:, :4].sum():
        return []

    def statistics(chosen: np.ndarray) -> dict[str, float]:
        one, other = (table[chosen].sum(axis=0) for table in tables)
        measures = (_pooled(one[:4]), _pooled(other[:4]))
        name = "balanced_accuracy"
        found = {name: measures[0][name] - measures[1][name]}
        both = one[5] and one[5] == other[5]
        brier = one[4] / one[5] - other[4] / other[5] if both else math.nan
        return found | {"brier": brier}

    # Documents, as of the tests beside it.
    n = int((tables[0][:, :4].sum(axis=1) > 0).sum())
    shared = {**_sides(*names), "n": n, "failed": alone}
    found = bootstrap(statistics, topics, seed=seed)
    return [
        {"metric": metric, **value, **shared}
        for metric, value in found.items()
        if value["value"] is not None
    ]


def _common(rows: tuple[Row, Row]) -> tuple[list[list[tuple]], int]:
    kept, alone = [], 0
    for judged in zip(rows[0].judged, rows[1].judged, strict=True):
        one, other = (
            {c.id: (c, v) for c, v in own if _decided(v) and c.label in ("S", "NS")}
            for own in judged
        )
        kept.append([(one[name], other[name]) for name in one if name in other])
        alone += len(one.keys() ^ other.keys())
    return kept, alone


def _squares(judged: Judged) -> tuple[float, float]:
    """Sum of squared errors of the probabilities, and their number."""
    errors = [(v.p - (c.label == "S")) ** 2 for c, v in judged if v.p is not None]
    return math.fsum(errors), float(len(errors))
