"""Scores of an adversary's texts over the steps of its training, by metric and defence.

A result has the adversary as its ``kind`` and the step as its ``variant``. Scores and pairs are
those of ``eval/experiments/robustness/robustness_cells.py``.
"""

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from pydantic import BaseModel

from components.statistics import ratio, t_interval
from components.words import name_key
from eval.defences import Defence
from eval.experiments.robustness.robustness_cells import (
    ALL,
    Cells,
    Text,
    Value,
    fields_of,
    mean,
    pair_texts,
    topic_gains,
)
from eval.experiments.robustness.robustness_grid import NONE, Row
from eval.experiments.robustness.robustness_values import score_values
from records import Document
from records.abstention import responds

START = "start"


class Relevance(BaseModel):
    """Number of a text's sentences that are relevant, irrelevant, and not judged."""

    id: str
    relevant: int
    irrelevant: int
    failed: int


def step_of(document: Document) -> int | None:
    """The training step at which a text was written; ``None`` for an honest text."""
    return (document.model_extra or {}).get("step")


def gold_cells(rows: Sequence[Row]) -> Cells:
    """The texts with gold F1 as their score, as of a metric named ``gold F1``; empty without."""
    values = [_gold_f1(row.document) for row in rows]
    pairs = zip(rows, values, strict=True)
    texts = [Text(row.document, value, None, value) for row, value in pairs]
    return {} if all(map(math.isnan, values)) else {("gold F1", NONE): texts}


def _gold_f1(document: Document) -> float:
    return math.nan if document.gold is None else document.gold.f1


def step_values(cells: Cells, defences: Mapping[str, Defence], seed: int) -> Iterator[Value]:
    """Score, ``claims``, ``respond_ratio`` and ``kept_share`` at each step, and of honest texts.

    Bounds by failures are left out; ``failed`` counts what could not be judged.
    """
    for step in _steps(cells):
        at_step = {
            place: [text for text in texts if step_of(text.document) == step]
            for place, texts in cells.items()
        }
        for value in score_values(at_step, defences, (), seed):
            if value["variant"] is None:
                yield value | {"variant": step}


def gain_values(cells: Cells, against: str) -> Iterator[Value]:
    """``gain`` of each step over the first one and over honest texts, paired by topic.

    Args:
        against: kind of the honest texts.
    """
    unpaired: Counter[str] = Counter()
    for (metric, defence), texts in cells.items():
        honest = [text for text in texts if step_of(text.document) is None]
        for adversary, steps in _by_step(texts).items():
            first = min(steps)
            for step, written in steps.items():
                bases = {against: honest} if honest else {}
                bases |= {START: steps[first]} if step != first else {}
                for name, base in bases.items():
                    gains = topic_gains(pair_texts(written, base))
                    if len(gains) < 2:
                        unpaired[f"{adversary} with {name}"] += 1
                        continue
                    row = {"assessor": metric, "selection": defence, "kind": adversary}
                    row |= {"generator": ALL, "variant": step, "against": name, "metric": "gain"}
                    row["failed"] = sum(text.failed for text in (*written, *base))
                    yield row | fields_of(t_interval(np.array(list(gains.values()))))
    for pair in unpaired:
        print(f"gain: {pair}: fewer than two topics have a score on both sides", file=sys.stderr)


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
            if step_of(text.document) is not None:
                groups[text.document.kind][text.document.topic].append(place)
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


def distinct_values(rows: Sequence[Row], seed: int) -> Iterator[Value]:
    """``distinct_share``: share of different texts at a step, of those that respond.

    The topic's name is removed before texts are compared: a model that writes the same text about
    everyone has a share near 0. The interval takes the frequency of each text as given.
    """
    for (adversary, step), members in _rows_by_step(rows).items():
        responding = [row for row in members if responds(row.document)]
        texts = [_without_topic(row.document) for row in responding]
        frequency = Counter(texts)
        column = np.array([1 / frequency[text] for text in texts])
        row = {"metric": "distinct_share", "kind": adversary, "variant": step, "generator": ALL}
        yield row | {"failed": 0} | mean(column, responding, seed)


def relevance_values(
    rows: Sequence[Row], judged: Sequence[Relevance], seed: int
) -> Iterator[Value]:
    """``relevance``: mean over texts of the share of relevant sentences among the judged ones."""
    by_id = {row.document.id: counts for row, counts in zip(rows, judged, strict=True)}
    for (adversary, step), members in _rows_by_step(rows).items():
        counts = [by_id[row.document.id] for row in members]
        column = np.array([_share(count) for count in counts])
        row = {"metric": "relevance", "kind": adversary, "variant": step, "generator": ALL}
        yield row | {"failed": sum(count.failed for count in counts)} | mean(column, members, seed)


def _share(count: Relevance) -> float:
    judged = count.relevant + count.irrelevant
    return count.relevant / judged if judged else math.nan


def _without_topic(document: Document) -> str:
    return name_key(document.text).replace(name_key(document.topic), "{topic}")


def _steps(cells: Cells) -> list[int | None]:
    steps = {step_of(text.document) for texts in cells.values() for text in texts}
    return sorted(steps, key=lambda step: -1 if step is None else step)


def _by_step(texts: Sequence[Text]) -> dict[str, dict[int, list[Text]]]:
    adversaries: dict[str, dict[int, list[Text]]] = defaultdict(lambda: defaultdict(list))
    for text in sorted(texts, key=lambda text: step_of(text.document) or 0):
        step = step_of(text.document)
        if step is not None:
            adversaries[text.document.kind][step].append(text)
    return adversaries


def _rows_by_step(rows: Sequence[Row]) -> dict[tuple[str, int | None], list[Row]]:
    steps: dict[tuple[str, int | None], list[Row]] = defaultdict(list)
    for row in rows:
        steps[row.document.kind, step_of(row.document)].append(row)
    return steps
