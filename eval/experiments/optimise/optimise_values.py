"""Values of an adversary's texts, by metric and defence."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from pydantic import BaseModel

from components.statistics import ratio
from components.words import name_key
from eval.experiments.robustness.robustness_cells import (
    ALL,
    Cells,
    Text,
    Value,
    by_kind,
    fields_of,
    mean,
)
from eval.experiments.robustness.robustness_grid import NONE, TextScores
from records import Document
from records.abstention import responds


class RelevanceCounts(BaseModel):
    """Number of a text's sentences that are relevant, irrelevant, and not judged."""

    id: str
    relevant: int
    irrelevant: int
    failed: int


def gold_cells(rows: Sequence[TextScores]) -> Cells:
    """The texts with gold F1 as their score, as of a metric named ``gold F1``; empty without."""
    values = [_gold_f1(row.document) for row in rows]
    pairs = zip(rows, values, strict=True)
    texts = [Text(row.document, value, None, value) for row, value in pairs]
    return {} if all(map(math.isnan, values)) else {("gold F1", NONE): texts}


def _gold_f1(document: Document) -> float:
    return math.nan if document.gold is None else document.gold.f1


def best_of_values(cells: Cells, draws: Sequence[int], seed: int) -> Iterator[Value]:
    """``proxy``, ``gold`` and ``transfer`` of the text that scores best among N of a topic.

    The selection is by the score of a metric with a defence. ``proxy`` is that score, ``gold`` the
    text's gold F1, ``transfer`` its score by another metric without a defence (``against``), for
    the least and the largest N. N = 1 is a random text. A topic's value is the expectation over all
    subsets of N texts, without bias (2210.10760, section 2.3, has one sample per N); intervals are
    by bootstrap over topics. Texts without a score are left out and counted as ``failed``, and so
    are topics with fewer than N scored texts.
    """
    plain = {metric: texts for (metric, defence), texts in cells.items() if defence == NONE}
    for (metric, defence), texts in cells.items():
        golds = [_gold_f1(text.document) for text in texts]
        outcomes = {("proxy", None): [text.value for text in texts], ("gold", None): golds}
        outcomes |= {("transfer", m): [t.value for t in plain[m]] for m in plain if m != metric}
        groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, text in enumerate(texts):
            adversary = (text.document.model_extra or {}).get("adversary")
            if adversary is not None:
                groups[adversary][text.document.topic].append(place)
        for (adversary, topics), n, key in product(groups.items(), draws, outcomes):
            if key[1] is not None and n not in (min(draws), max(draws)):
                continue
            scores, outcome = np.array(outcomes["proxy", None]), np.array(outcomes[key])
            means = {t: _best_of(scores[at], outcome[at], n) for t, at in topics.items()}
            means = {topic: mean for topic, mean in means.items() if mean is not None}
            row = {"metric": key[0], "against": key[1], "assessor": metric, "variant": n}
            row |= {"selection": defence, "kind": adversary, "generator": ALL}
            row["failed"] = sum(int(np.isnan(scores[at]).sum()) for at in topics.values())
            values = np.array(list(means.values()))
            yield row | fields_of(ratio(values, np.ones(len(values)), list(means), seed))


def _best_of(scores: np.ndarray, outcome: np.ndarray, n: int) -> float | None:
    """Mean outcome of the best of ``n`` texts over all subsets; among equal scores at random."""
    usable = ~np.isnan(scores) & ~np.isnan(outcome)
    scores, outcome = scores[usable], outcome[usable]
    if len(scores) < n:
        return None
    levels, level = np.unique(scores, return_inverse=True)
    # The share of subsets without a higher score than each level, and with one of it.
    below = [math.comb(int((level <= at).sum()), n) for at in range(-1, len(levels))]
    shares = np.diff([part / below[-1] for part in below])
    return float(sum(s * outcome[level == at].mean() for at, s in enumerate(shares)))


def distinct_values(rows: Sequence[TextScores], seed: int) -> Iterator[Value]:
    """``distinct_share``: share of different texts of a kind, of those that respond.

    The topic's name is removed before texts are compared: a model that writes the same text about
    everyone has a share near 0. The interval takes the frequency of each text as given.
    """
    for kind, members in by_kind(rows).items():
        responding = [row for row in members if responds(row.document)]
        texts = [_without_topic(row.document) for row in responding]
        frequency = Counter(texts)
        column = np.array([1 / frequency[text] for text in texts])
        row = {"metric": "distinct_share", "kind": kind, "generator": ALL}
        yield row | {"failed": 0} | mean(column, responding, seed)


def relevance_values(
    rows: Sequence[TextScores], judged: Sequence[RelevanceCounts], seed: int
) -> Iterator[Value]:
    """``relevance``: mean over texts of the share of relevant sentences among the judged ones."""
    by_id = {row.document.id: counts for row, counts in zip(rows, judged, strict=True)}
    for kind, members in by_kind(rows).items():
        counts = [by_id[row.document.id] for row in members]
        column = np.array([_share(count) for count in counts])
        row = {"metric": "relevance", "kind": kind, "generator": ALL}
        yield row | {"failed": sum(count.failed for count in counts)} | mean(column, members, seed)


def _share(count: RelevanceCounts) -> float:
    judged = count.relevant + count.irrelevant
    return count.relevant / judged if judged else math.nan


def _without_topic(document: Document) -> str:
    return name_key(document.text).replace(name_key(document.topic), "{topic}")
